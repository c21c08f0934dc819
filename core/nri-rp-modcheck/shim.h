/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module whose instances see the host's services through thin covers: these count the calls, make
 * the n-th one fail, withhold services, make structs longer or shorter, and notice broken rules.
 * What is not covered goes to the host as it is. The host in turn sees the module's services
 * through covers that take the time of each call and judge what it gives. The first rule that is
 * broken goes to the scene, and fails the case.
 */
#ifndef MODCHECK_SHIM_H
#define MODCHECK_SHIM_H

#include <pthread.h>

#include <nri-rp/cache.h>
#include <nri-rp/host.h>
#include <nri-rp/topology.h>

#include "core/nri-rpd/host/instance.h"
#include "core/nri-rp-modcheck/check.h"

#define SHIM_SERVICES 14u
#define SHIM_TAIL 64u /* bytes behind a longer struct */
#define SHIM_POISON 0xa5
#define SHIM_POISONED INT64_C(-0x5a5a5a5a5a5a5a5b) /* what a number reads as that is all poison */
#define SHIM_KEYS_MAX 64u
#define SHIM_KEY_MAX 128u
#define SHIM_TIMERS_MAX 16u

struct shim {
	struct module module; /* first: an instance finds its shim by it */
	struct rp_module abi;
	const struct rp_module *real;
	struct scene *scene; /* the check's */
	pthread_t thread; /* the only one that may call, but for what is marked [any] */
	void *services[SHIM_SERVICES]; /* covers, SHIM_TAIL bytes longer than they say or not */
	struct longer_host *longer_hosts;

	/* what to do */
	uint32_t withheld; /* a bit for each service, as shim_services lists them */
	/* structs are longer than the module can know, and what it does not know is poisoned */
	bool longer;
	uint32_t minor; /* of the host: what came later is not there */
	uint64_t fail_at; /* the n-th call that can fail does so; 0: none */
	int32_t fail_code;

	/* what has happened */
	uint64_t n_calls; /* that can fail */
	bool fired;
	const char *fired_in; /* the host function */
	char asked[SHIM_KEYS_MAX][SHIM_KEY_MAX]; /* annotations that it has looked for */
	unsigned n_asked;
	unsigned n_jobs; /* that were submitted */
	uint64_t timers[SHIM_TIMERS_MAX]; /* cookies of those that are armed */
	unsigned n_timers;
	bool armed; /* a timer, at some time */
	const char *call; /* the module's function that is running; NULL: none */
	bool host_failed; /* a call of the host from within it */
};

extern const char *const shim_services[SHIM_SERVICES];

int shim_init(struct shim *s, const struct check *c);
/* The module's own pointer, of the host's. */
struct rp_instance *shim_real(struct rp_instance *inst);
/* No instance may be left. */
void shim_fini(struct shim *s);

/* ---- between the covers ---------------------------------------------------------------------- */

struct shim *shim_of(void *ctx);
/* Every covered call: notes the thread. */
struct shim *shim_enter(void *ctx, const char *name);
/* The same for a call that can fail on a healthy node too (no memory, an object gone); a negative
 * result is what it has to give. */
int32_t shim_try(void *ctx, const char *name);
/* What the host says, told to the module: whoever was refused need not say why. */
int32_t shim_result(void *ctx, int32_t result);
/* Every covered call that changes files. */
void shim_writes(void *ctx, const char *name, const char *path);
/* Out-structs have to say how large they are. */
void shim_out(void *ctx, const char *name, const void *out, uint32_t known);
/* What an older host does not know of a struct that was filled. `size` is its first member. */
void shim_shorten(void *ctx, void *out, uint32_t known);
/* Remembers the key of an annotation. */
void shim_asked(struct shim *s, const char *key);
/* A rule was broken: the case fails with this. */
void shim_broken(struct shim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes an instance whose services are covered. */
int32_t shim_create(struct shim *s, const struct rp_host *host, struct rp_instance **ret);
void shim_destroy(struct rp_instance *inst);
const void *shim_service(struct rp_instance *inst, const char *id);

extern const struct rp_host_cache shim_cache;
extern const struct rp_host_topology shim_topology;
extern const struct rp_host_config shim_config;
extern const struct rp_host_explain shim_explain;
extern const struct rp_host_timer shim_timer;
extern const struct rp_host_work shim_work;

#endif
