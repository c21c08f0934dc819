/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small services of the host: explanations, timers, blocking work, results of controllers.
 */
#ifndef NRI_RP_HOST_H
#define NRI_RP_HOST_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * nri-rp.host.explain/1: why a container is where it is. Notes of one decision form its trail, the next decision about the
 * container starts a new one. `nri-rpctl explain` prints it. At most RP_TRAIL_MAX bytes a trail; what is more is dropped and marked.
 */
#define RP_HOST_EXPLAIN_1 "nri-rp.host.explain/1"
#define RP_TRAIL_MAX 2048u

struct rp_host_explain {
	uint32_t size;
	uint32_t pad;
	/* One candidate, score or reason; no newline. */
	void (*note)(void *ctx, rp_ctr ctr, const char *text);
	/* The configuration that decided. */
	void (*decided_by)(void *ctx, rp_ctr ctr, rp_cfg node, const char *text);
};

/* nri-rp.host.timer/1: an RP_EVENT_TIMER with `cookie` after delay_ms; arming a cookie again moves it, 0 ms cancels it. */
#define RP_HOST_TIMER_1 "nri-rp.host.timer/1"
#define RP_TIMERS_MAX 1024u

struct rp_host_timer {
	uint32_t size;
	uint32_t pad;
	int32_t (*arm)(void *ctx, uint64_t cookie, uint64_t delay_ms);
	uint64_t (*now_ms)(void *ctx); /* monotonic */
};

/*
 * nri-rp.host.work/1: things that can block. Jobs of one instance run one after the other, in order, on the host's worker thread, after
 * the reply to the runtime has left.
 */
#define RP_HOST_WORK_1 "nri-rp.host.work/1"

struct rp_host_work {
	uint32_t size;
	uint32_t pad;
	/* run [worker] may use nothing of the host but what its argument carries and the functions marked [any]; its result goes to
	 * done [main]. destroy() is called only when no job is left. */
	int32_t (*submit)(void *ctx, int32_t (*run)(void *arg),
			  void (*done)(void *arg, int32_t result), void *arg);
	/* [any] A file below the host's root (/sys, /proc), for real or simulated machines alike. Reading: at most cap bytes, NUL-terminated,
	 * returns the length. Both give -errno. */
	int32_t (*read_file)(void *ctx, const char *path, char *buf, uint32_t cap);
	int32_t (*write_file)(void *ctx, const char *path, const char *text);
	/* What became of a container's settings, for status and metrics; the text says why when it is not RP_APPLY_DONE. */
	void (*report)(void *ctx, rp_ctr ctr, uint32_t result, const char *text);
	/* Directory of the container's cgroup below the root, for a cgroup v1 controller or "" on v2. -RP_ENOENT: not known (yet). */
	int32_t (*cgroup_dir)(void *ctx, rp_ctr ctr, const char *controller, char *buf,
			      uint32_t cap);
};

#ifdef __cplusplus
}
#endif
#endif
