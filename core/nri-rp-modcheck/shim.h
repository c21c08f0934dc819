/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module whose instances see the host's services through thin covers. The covers count calls,
 * make the n-th one fail, withhold services, change the length of structs, and detect broken rules.
 * Other members are the host's own. In turn the host sees the module's services through covers that
 * measure each call and check its results. The first broken rule is stored in the scene and fails
 * the case.
 */
#pragma once

#include <pthread.h>

#include <nri-rp/cache.h>
#include <nri-rp/host.h>
#include <nri-rp/topology.h>

#include "core/nri-rpd/host/instance.h"
#include "core/nri-rp-modcheck/check.h"

#define SHIM_SERVICES 14u
#define SHIM_TAIL 64u /* additional bytes of a longer struct */
#define SHIM_POISON 0xa5
/* the value of a number whose bytes are all poison */
#define SHIM_POISONED INT64_C(-0x5a5a5a5a5a5a5a5b)
#define SHIM_KEYS_MAX 64u
#define SHIM_KEY_MAX 128u
#define SHIM_TIMERS_MAX 16u

struct shim {
	struct module module; /* must be the first member: an instance finds its shim through it */
	struct rp_module abi;
	const struct rp_module *real;
	struct scene *scene; /* scene of the check */
	pthread_t thread; /* the only thread that may call functions not marked [any] */
	/* covers; SHIM_TAIL bytes longer than the services if `longer` is set */
	void *services[SHIM_SERVICES];
	struct longer_host *longer_hosts;

	/* settings: */
	uint32_t withheld; /* a bit for each service, in the order of shim_services */
	/* structs have members unknown to the module, filled with poison */
	bool longer;
	uint32_t minor; /* ABI minor of the host: later additions are absent */
	uint64_t fail_at; /* number of the call that fails, among those that can fail; 0: none */
	int32_t fail_code;
	/* refuse the policy's decisions about pods and containers afterwards */
	bool rehearses;
	/* Called before and after allocate(), in its transaction; NULL: none. */
	void (*at_allocate)(struct shim *s, bool after);

	/* Results of the calls. */
	uint64_t n_calls; /* number of calls so far that can fail */
	bool fired;
	const char *fired_in; /* name of the host function whose call failed */
	/* keys of annotations that the module has looked up */
	char asked[SHIM_KEYS_MAX][SHIM_KEY_MAX];
	unsigned n_asked;
	unsigned n_jobs; /* number of submitted jobs */
	uint64_t timers[SHIM_TIMERS_MAX]; /* cookies of the armed timers */
	unsigned n_timers;
	bool armed; /* a timer was armed at some time */
	const char *call; /* running function of the module; NULL: none */
	bool host_failed; /* a call to the host has failed within it */
	uint64_t allocate_ns; /* duration of the last allocate() */
};

extern const char *const shim_services[SHIM_SERVICES];

int shim_init(struct shim *s, const struct check *c);
/* Frees the shim. All instances must be destroyed before. */
void shim_fini(struct shim *s);

/* ---- functions between the covers ------------------------------------------------------------ */

struct shim *shim_of(void *ctx);
/* Begins every call of the module that a cover intercepts: checks the thread. */
struct shim *shim_enter(void *ctx, const char *name);
/* Reports a call on another thread that the host has noticed. `function` may have a letter for its
 * service in front: "t_memory". */
void shim_foreign(struct instance *i, const char *function);
/* Begins a call that can fail on a healthy node too (no memory, a removed object). Returns a
 * negative value if the call has to fail with it. */
int32_t shim_try(void *ctx, const char *name);
/* Passes a result of the host to the module. Records failures: after one, the module need not call
 * fail(). */
int32_t shim_result(void *ctx, int32_t result);
/* Begins an intercepted call that writes the file `path`. */
void shim_writes(void *ctx, const char *name, const char *path);
/* Checks that an out-struct has its size set. */
void shim_out(void *ctx, const char *name, const void *out, uint32_t known);
/* Overwrites the members that an older host does not fill. `size` is the struct's first member. */
void shim_shorten(void *ctx, void *out, uint32_t known);
/* Replaces the functions of a table by the covers in a table of the same kind, where it has some.
 * Tables begin with two 32-bit members. Data has no cover. */
void shim_put_covers(void *table, const void *by, size_t size);
/* Remembers the key of an annotation. */
void shim_asked(struct shim *s, const char *key);
/* Returns true if a module may return this error code. */
bool shim_may_return(int32_t code);
/* Reports a broken rule; the first one fails the case. */
void shim_broken(struct shim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Covers of a service's functions: with an out-struct, with a file, with failures. Functions that
 * only need the right thread have no cover, because the host checks that itself. */
#define COVER_OUT(service, name, params, ...)                                                      \
	static int32_t cover_##name params                                                         \
	{                                                                                          \
		(void)shim_enter(ctx, #name);                                                      \
		shim_out(ctx, #name, out, sizeof *out);                                            \
		return host_##service##_service.name(__VA_ARGS__);                                 \
	}
#define COVER_WRITE(service, name, params, ...)                                                    \
	static int32_t cover_##name params                                                         \
	{                                                                                          \
		shim_writes(ctx, #name, path);                                                     \
		return host_##service##_service.name(__VA_ARGS__);                                 \
	}
#define COVER_TRY(service, name, params, ...)                                                      \
	static int32_t cover_##name params                                                         \
	{                                                                                          \
		int32_t r = shim_try(ctx, #name);                                                  \
		return shim_result(ctx, r ? r : host_##service##_service.name(__VA_ARGS__));       \
	}

extern const struct rp_host_cache shim_cache;
extern const struct rp_host_topology shim_topology;
extern const struct rp_host_config shim_config;
extern const struct rp_host_explain shim_explain;
extern const struct rp_host_timer shim_timer;
extern const struct rp_host_work shim_work;
