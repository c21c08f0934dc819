/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module whose instances see the host's services through thin covers: these count the calls, make the n-th one fail, withhold
 * services, make structs longer, and notice broken rules. What is not covered goes to the host as it is.
 */
#ifndef MODCHECK_SHIM_H
#define MODCHECK_SHIM_H

#include <pthread.h>

#include <nri-rp/cache.h>
#include <nri-rp/host.h>
#include <nri-rp/topology.h>

#include "core/host/instance.h"

#define SHIM_SERVICES 7u
#define SHIM_TAIL 64u /* bytes behind a longer struct */
#define SHIM_POISON 0xa5
#define SHIM_KEYS_MAX 64u
#define SHIM_KEY_MAX 128u

struct shim {
	struct module module; /* first: an instance finds its shim by it */
	struct rp_module abi;
	const struct rp_module *real;
	pthread_t thread; /* the only one that may call, but for what is marked [any] */
	void *services[SHIM_SERVICES]; /* covers, SHIM_TAIL bytes longer than they say or not */
	struct longer_host *longer_hosts;

	/* what to do */
	uint32_t withheld; /* a bit for each service, as shim_services lists them */
	bool longer; /* structs are longer than the module can know, and what it does not know is poisoned */
	uint64_t fail_at; /* the n-th call that can fail does so; 0: none */
	int32_t fail_code;

	/* what has happened */
	uint64_t n_calls; /* that can fail */
	bool fired;
	const char *fired_in; /* the host function */
	char asked[SHIM_KEYS_MAX][SHIM_KEY_MAX]; /* annotations that it has looked for */
	unsigned n_asked;
	char broken[256]; /* the first rule that was broken; "": none */
};

extern const char *const shim_services[SHIM_SERVICES];

int shim_init(struct shim *s, struct module *m);
/* -EPROTO with the first broken rule, if there is one. */
int shim_check(const struct shim *s, struct err *err);
/* No instance may be left. */
void shim_fini(struct shim *s);

/* ---- between the covers -------------------------------------------------------------------------------------------- */

struct shim *shim_of(void *ctx);
/* Every covered call: notes the thread. */
struct shim *shim_enter(void *ctx, const char *name);
/* The same for a call that can fail on a healthy node too (no memory, an object gone); a negative result is what it has to give. */
int32_t shim_try(void *ctx, const char *name);
/* Out-structs have to say how large they are. */
void shim_out(void *ctx, const char *name, const void *out, uint32_t known);
/* Remembers the key of an annotation. */
void shim_asked(struct shim *s, const char *key);
void shim_broken(struct shim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

extern const struct rp_host_cache shim_cache;
extern const struct rp_host_topology shim_topology;
extern const struct rp_host_config shim_config;
extern const struct rp_host_explain shim_explain;
extern const struct rp_host_timer shim_timer;
extern const struct rp_host_work shim_work;

#endif
