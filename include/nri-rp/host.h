/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small services of the host: explanations, timers, blocking work, results of controllers, settings
 * that modules share, evictions, hints of others.
 */
#ifndef NRI_RP_HOST_H
#define NRI_RP_HOST_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>
#include <nri-rp/set.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * nri-rp.host.explain/1: why a container is where it is. Notes of one decision form its trail, the
 * next decision about the container starts a new one. `nri-rpctl explain` prints it. At most
 * RP_TRAIL_MAX bytes a trail; what is more is dropped and marked.
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

/* nri-rp.host.timer/1: an RP_EVENT_TIMER with `cookie` (a controller: its timer()) after delay_ms;
 * arming a cookie again moves it, 0 ms cancels it. */
#define RP_HOST_TIMER_1 "nri-rp.host.timer/1"
#define RP_TIMERS_MAX 1024u

struct rp_host_timer {
	uint32_t size;
	uint32_t pad;
	int32_t (*arm)(void *ctx, uint64_t cookie, uint64_t delay_ms);
	uint64_t (*now_ms)(void *ctx); /* monotonic */
};

/*
 * nri-rp.host.work/1: things that can block. Jobs of one instance run one after the other, in
 * order, on the host's worker thread, after the reply to the runtime has left.
 */
#define RP_HOST_WORK_1 "nri-rp.host.work/1"
#define RP_CGROUP_REF_MAX 4352u /* bytes of a text of cgroup_ref() */

/* Kinds of list_dir(). */
#define RP_FILE_OTHER 0u
#define RP_FILE_DIR 1u
#define RP_FILE_LINK 2u

struct rp_host_work {
	uint32_t size;
	uint32_t pad;
	/* run [worker] may use nothing of the host but what its argument carries and the functions
	 * marked [any]; its result goes to done [main]. destroy() is called only when no job is
	 * left. */
	int32_t (*submit)(void *ctx, int32_t (*run)(void *arg),
			  void (*done)(void *arg, int32_t result), void *arg);
	/* [any] A file below the host's root (/sys, /proc), for real or simulated machines alike.
	 * Reading: at most cap bytes, NUL-terminated, returns the length. Both give -errno. */
	int32_t (*read_file)(void *ctx, const char *path, char *buf, uint32_t cap);
	int32_t (*write_file)(void *ctx, const char *path, const char *text);
	/* What became of a container's settings, for status and metrics; the text says why when it
	 * is not RP_APPLY_DONE. */
	void (*report)(void *ctx, rp_ctr ctr, uint32_t result, const char *text);
	/* Directory of the container's cgroup below the root, for a cgroup v1 controller or "" on
	 * v2. -RP_ENOENT: not known (yet). */
	int32_t (*cgroup_dir)(void *ctx, rp_ctr ctr, const char *controller, char *buf,
			      uint32_t cap);
	/* The same in two steps: a text that stands for the container's cgroup, and [any] where
	 * that is now. A cgroup that is not where the runtime said is looked for by the container's
	 * process. */
	int32_t (*cgroup_ref)(void *ctx, rp_ctr ctr, char *buf, uint32_t cap);
	int32_t (*cgroup_find)(void *ctx, const char *ref, const char *controller, char *buf,
			       uint32_t cap);
	/* [any] Entries of a directory in natural order; `each` ends the walk by a result other
	 * than 0, which is returned. */
	int32_t (*list_dir)(void *ctx, const char *path,
			    int32_t (*each)(void *arg, const char *name, uint32_t kind), void *arg);
	/* [any] One directory: cgroups, resctrl groups. -errno. */
	int32_t (*make_dir)(void *ctx, const char *path);
	int32_t (*remove_dir)(void *ctx, const char *path);
	/* [any] move_pages(2), for processes of a real machine: nodes NULL asks where the pages
	 * are. -RP_ENOTSUP below another root. */
	int64_t (*move_pages)(void *ctx, int32_t pid, uint64_t n, void **pages,
			      const int32_t *nodes, int32_t *status);
	/* [any] Where a symbolic link points to, as it is written there. The length; -errno
	 * (-RP_EINVAL: it is no link). */
	int32_t (*read_link)(void *ctx, const char *path, char *buf, uint32_t cap);
	/* A figure of a container that only the controller can read (RP_FIGURE_…), in answer to
	 * measure(). */
	void (*figure)(void *ctx, rp_ctr ctr, uint32_t figure, uint64_t value);

	/* ---- since 1.3 ---- */

	/* [any] An RP_EVENT_POSTED of the policy that posts it, with `cookie` and a copy of `data`,
	 * soon, on the main thread and in a transaction of its own: so a job tells what it has
	 * found, and a callback puts off what need not be in its transaction. Events come in the
	 * order of posting, each as often as it was posted, those of a job before its done(). After
	 * stop() none comes. -RP_E2BIG: over RP_POST_BYTES_MAX, or RP_POSTS_MAX have not come yet;
	 * -RP_ENOTSUP: in a trial, and of others than policies with event(); -RP_ENOMEM. */
	int32_t (*post)(void *ctx, uint64_t cookie, const void *data, uint32_t data_size);
	/* [any] A whole file of the node outside of /sys and /proc, below the host's root, as
	 * "/etc/machine-id": at most cap-1 bytes and a NUL behind them; its length. It can wait for
	 * a disk: a job for the worker, but for prepare(). Only the policy's author vouches for
	 * whose file that is. -RP_EINVAL: it is no regular file, or the path is not absolute or has
	 * "..";
	 * -RP_E2BIG: it is longer, or over RP_NODE_FILE_MAX; else -errno, as of read_file(). A
	 * daemon that systemd hides a folder from, as nri-rpd.service does with /home, finds
	 * nothing there. */
	int32_t (*read_node)(void *ctx, const char *path, char *buf, uint32_t cap);
};

#define RP_POST_BYTES_MAX 4096u /* of one event's data */
#define RP_POSTS_MAX 256u /* of one instance */
#define RP_NODE_FILE_MAX 1048576u /* bytes of a file of read_node() */

#define RP_FIGURE_LLC 1u /* bytes of the last level cache in use */
#define RP_FIGURE_TRAFFIC 2u /* bytes moved to and from memory since it was first counted */

/*
 * nri-rp.host.usage/1: what containers really use, as it was measured last. The host reads cgroups
 * every metrics.collectInterval, off the main thread; without that key nothing is known of anybody.
 * RP_EVENT_PRESSURE tells of those that lack something.
 */
#define RP_HOST_USAGE_1 "nri-rp.host.usage/1"

/* What a container lacks. */
#define RP_PRESSURE_THROTTLED 0x1u /* its CPU limit stops it */
#define RP_PRESSURE_CPU 0x2u /* it waits for CPUs */
#define RP_PRESSURE_MEMORY 0x4u
#define RP_PRESSURE_IO 0x8u

/* Rates are those of the last interval. A member that is not known is RP_NOT_MEASURED: the first
 * reading gives no rates, cgroup v1 has no pressure, the cache is told by the rdt controller
 * alone. */
#define RP_NOT_MEASURED (-1)

struct rp_usage {
	uint32_t size;
	uint32_t pressure; /* RP_PRESSURE_…: told by the last RP_EVENT_PRESSURE */
	int64_t age_ms; /* since it was read */
	int64_t cpu; /* milli-CPU */
	int64_t throttled; /* per mille of its periods */
	int64_t memory; /* bytes */
	int64_t cpu_wait, memory_wait,
		io_wait; /* per mille of the time that any of its tasks waited */
	int64_t io_read, io_written; /* bytes a second */
	int64_t llc; /* bytes of the last level cache */
	int64_t traffic; /* bytes a second to and from memory */
};

struct rp_host_usage {
	uint32_t size;
	uint32_t pad;
	/* -RP_ENOENT: nothing was measured yet. */
	int32_t (*get)(void *ctx, rp_ctr ctr, struct rp_usage *out);
};

/*
 * nri-rp.host.settings/1 [since 1.2, a host may not have it]: files of the machine that are put
 * back when nobody wants them to be otherwise, such as those of cpufreq and the affinities of
 * interrupts. What one module has set, another one may set meanwhile: a policy that takes over from
 * one, or from a controller. So none knows by itself what to put back. The host keeps what was
 * found before any module came, and what each one has made of it since. What an instance has not
 * dropped when it is destroyed, or when its create() fails, the host puts back. It does so after
 * the death of the whole process, too: what was found below /sys/devices/system and /proc/irq
 * before that, and is one line, counts for the next process of the same boot, whatever that finds
 * there. In a trial there is nothing to set: -RP_ENOTSUP.
 */
#define RP_HOST_SETTINGS_1 "nri-rp.host.settings/1"
#define RP_SETTING_MAX 4096u /* bytes of a value, with the NUL */
#define RP_SETTING_PATH_MAX 4096u /* bytes of a path, with the NUL */

struct rp_host_settings {
	uint32_t size;
	uint32_t pad;
	/* [any] The caller is about to set `path` to `value`, in place of what it said of it
	 * before, and finds `found` there, which counts unless another module has said something of
	 * it. -RP_ENOMEM, -RP_E2BIG. */
	int32_t (*keep)(void *ctx, const char *path, const char *value, const char *found);
	/* [any] What it has to be but for the caller: the value that another one gave it last, else
	 * what was found. Its length; -RP_ENOENT: the caller has set nothing there; -RP_E2BIG. */
	int32_t (*without)(void *ctx, const char *path, char *buf, uint32_t cap);
	/* [any] The caller has put it back, or does not care any more. May read the file, to see
	 * which, if the process before has set it. */
	void (*drop)(void *ctx, const char *path);
	/* [any] What was found before any module came; its length. -RP_ENOENT: nobody has set
	 * anything there; -RP_E2BIG. It is what to decide from: a file that another module is about
	 * to put back says nothing. */
	int32_t (*found)(void *ctx, const char *path, char *buf, uint32_t cap);
};

/*
 * nri-rp.host.evict/1 [since 1.3, a host may not have it]: pods that had better run on another
 * node. The node agent asks the API server to evict them, which obeys disruption budgets and ends
 * the pod as `kubectl drain` would: its containers stop, the pod is removed, and the cluster starts
 * another one elsewhere. What is refused for now is asked for again, after 10 s doubling to 5 min,
 * until the pod is gone, the module withdraws it or is destroyed. Nothing is answered at once:
 * state() tells what has become of it.
 */
#define RP_HOST_EVICT_1 "nri-rp.host.evict/1"
#define RP_EVICTIONS_MAX 64u /* of all modules, that are not over */

#define RP_EVICTION_NONE 0u /* nobody has asked for it, or the pod is gone */
#define RP_EVICTION_ASKED 1u /* there is no answer yet */
#define RP_EVICTION_REFUSED 2u /* not now, by a disruption budget for example */
#define RP_EVICTION_GRANTED 3u /* the pod is being ended */
#define RP_EVICTION_FAILED                                                                         \
	4u /* the cluster does not know the pod, as a static one, or the agent lacks the right */

struct rp_host_evict {
	uint32_t size;
	uint32_t pad;
	/* 1: an agent of the cluster is connected; 0: what is asked for waits for one. */
	int32_t (*available)(void *ctx);
	/* grace_s: that its containers have to end, -1: as the pod says. reason: a sentence, for
	 * status and the log. The first who asks for a pod counts; 0 for others, too. In a trial
	 * nothing is asked. -RP_ESTALE: no such pod; -RP_E2BIG; -RP_ENOMEM. */
	int32_t (*evict)(void *ctx, rp_pod pod, int64_t grace_s, const char *reason);
	/* The eviction is not needed any more. What was granted cannot be taken back. */
	void (*withdraw)(void *ctx, rp_pod pod);
	/* RP_EVICTION_…, of whoever has asked; why: what the server said, "" for nothing. cap 0:
	 * not wanted. */
	uint32_t (*state)(void *ctx, rp_pod pod, char *why, uint32_t cap);
};

/*
 * nri-rp.host.runtime/1 [since 1.3, a host may not have it]: what the container runtime can do that
 * is connected. It is another one, perhaps, at each synchronisation: a policy that goes by it asks
 * in sync() and in what follows. Without the service all runtimes do both of the first and not the
 * third.
 */
#define RP_HOST_RUNTIME_1 "nri-rp.host.runtime/1"

#define RP_RUNTIME_CAN_REFUSE                                                                      \
	1u /* a container or pod that allocate() or admit_pod() refuses is not made */
#define RP_RUNTIME_CAN_INJECT                                                                      \
	2u /* what exists only at creation: environment, mounts, devices, annotations, arguments */
#define RP_RUNTIME_CREATION_IS_LATE                                                                \
	4u /* containers have just begun to run when they are told as being created */
/* Parts of injecting that older runtimes leave out without a word: what is not known to work is not
 * said. */
#define RP_RUNTIME_CAN_CDI 8u /* add_cdi(); a runtime may still have CDI switched off */
#define RP_RUNTIME_CAN_ARGS 16u /* set_args() */
#define RP_RUNTIME_CAN_SCHEDULE 32u /* scheduling and I/O priority of set_int() */
#define RP_RUNTIME_CAN_SWAP 64u /* RP_F_SWAP */
#define RP_RUNTIME_CAN_MEMPOLICY 128u /* RP_F_MEMPOLICY_… [since 1.3] */

struct rp_host_runtime {
	uint32_t size;
	uint32_t pad;
	/* RP_RUNTIME_… of the one that is connected, or was last; before any: the first two. */
	uint32_t (*flags)(void *ctx);
	/* What it calls itself, as "containerd" and "v2.1.4"; "" before any is connected. They are
	 * valid until the callback returns. */
	const char *(*name)(void *ctx);
	const char *(*version)(void *ctx);
};

/*
 * nri-rp.host.hints/1 [since 1.3, a host may not have it]: which NUMA nodes suit what a pod asks of
 * resource plugins, programs outside of the daemon that allocate what it knows nothing of. There
 * are lists while admit_pod() runs, for its pod alone: those plugins that have hints were asked
 * before. A policy that has hints of its own merges them all; what it chooses the plugin is told
 * when it allocates, after the policy has admitted the pod. Where nothing is chosen the plugin
 * chooses.
 */
#define RP_HOST_HINTS_1 "nri-rp.host.hints/1"

#define RP_HINTS_MAIN 0x1u /* of the pod's main container, or of the pod as a whole */
#define RP_HINTS_NOTHING_FITS 0x2u /* n is 0; without it n 0 is no opinion, which any node suits */

struct rp_hint_list {
	uint32_t size;
	uint32_t flags; /* RP_HINTS_… */
	const char *ctr; /* name of the container; "": the pod as a whole */
	const char *resource; /* as "vendor.example/gpu" */
	uint32_t n; /* hints */
	uint32_t pad;
};

struct rp_hint {
	uint32_t size;
	uint32_t preferred; /* 0 or 1 */
	struct rp_ids nodes; /* empty: any */
};

struct rp_host_hints {
	uint32_t size;
	uint32_t pad;
	/* -RP_ENOENT past the last one. */
	int32_t (*list)(void *ctx, rp_pod pod, uint32_t list, struct rp_hint_list *out);
	int32_t (*hint)(void *ctx, rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *out);
	/* The last call for a list counts, whether the pod is admitted in the end or not. It is
	 * copied. -RP_ENOENT: there is no such list. */
	int32_t (*choose)(void *ctx, rp_pod pod, uint32_t list, const struct rp_hint *hint);
};

#ifdef __cplusplus
}
#endif
#endif
