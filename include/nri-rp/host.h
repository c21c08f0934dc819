/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small services of the host: explanations, timers, blocking work, usage of containers, files of
 * the machine that several modules set, evictions, the runtime's capabilities, topology hints.
 *
 * Functions without a mark may be called in every callback, on the main thread.
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
 * nri-rp.host.explain/1: explains where a container is placed. The notes of one decision form its
 * trail; the next decision about the container starts a new trail. `nri-rpctl explain` prints it. A
 * trail has at most RP_TRAIL_MAX bytes; notes beyond are dropped and a mark is added.
 */
#define RP_HOST_EXPLAIN_1 "nri-rp.host.explain/1"
#define RP_TRAIL_MAX 2048u

struct rp_host_explain {
	uint32_t size;
	uint32_t pad;
	/* Adds one line to the container's trail: a candidate, a score or a reason, without
	 * newline. */
	void (*note)(void *ctx, rp_ctr ctr, const char *text);
	/* Adds a line that names the configuration node that decided. */
	void (*decided_by)(void *ctx, rp_ctr ctr, rp_cfg node, const char *text);
};

/* nri-rp.host.timer/1: delivers an RP_EVENT_TIMER with `cookie` to a policy, or calls timer() of a
 * controller, after delay_ms. */
#define RP_HOST_TIMER_1 "nri-rp.host.timer/1"
#define RP_TIMERS_MAX 1024u

struct rp_host_timer {
	uint32_t size;
	uint32_t pad;
	/* Arms the timer of a cookie, or moves it if it is armed. 0 ms cancels it. -RP_E2BIG: more
	 * than RP_TIMERS_MAX timers. */
	int32_t (*arm)(void *ctx, uint64_t cookie, uint64_t delay_ms);
	uint64_t (*now_ms)(void *ctx); /* monotonic clock, milliseconds */
};

/*
 * nri-rp.host.work/1: work that can block. Jobs of one instance run one after the other, in the
 * order of submission, on the host's worker thread, after the reply to the runtime has been sent.
 */
#define RP_HOST_WORK_1 "nri-rp.host.work/1"
#define RP_CGROUP_REF_MAX 4352u /* size of a buffer for cgroup_ref(), bytes */

/* Kinds of directory entries in list_dir(). */
#define RP_FILE_OTHER 0u
#define RP_FILE_DIR 1u
#define RP_FILE_LINK 2u

struct rp_host_work {
	uint32_t size;
	uint32_t pad;
	/* Queues a job. run [worker] may use its argument and host functions marked [any], nothing
	 * else of the host. Its result is passed to done, which the host calls on the main thread.
	 * destroy() is called only when no job of the instance is left. */
	int32_t (*submit)(void *ctx, int32_t (*run)(void *arg),
			  void (*done)(void *arg, int32_t result), void *arg);
	/* [any] Read and write a file below the host's root (/sys, /proc), of a real or a
	 * simulated machine. read_file() reads at most cap bytes, adds a NUL and returns the
	 * length. Both return -errno on failure. */
	int32_t (*read_file)(void *ctx, const char *path, char *buf, uint32_t cap);
	int32_t (*write_file)(void *ctx, const char *path, const char *text);
	/* Reports the result RP_APPLY_… of applying a container's settings, for status and metrics.
	 * `text` gives the reason unless the result is RP_APPLY_DONE. */
	void (*report)(void *ctx, rp_ctr ctr, uint32_t result, const char *text);
	/* Writes the directory of the container's cgroup below the root, for a cgroup v1 controller
	 * or "" on v2. -RP_ENOENT: not known, or not yet. */
	int32_t (*cgroup_dir)(void *ctx, rp_ctr ctr, const char *controller, char *buf,
			      uint32_t cap);
	/* Do the same in two steps. cgroup_ref() writes a reference to the container's
	 * cgroup. cgroup_find() [any] resolves it to the present directory. If the cgroup is not
	 * where the runtime reported it, the host searches it by the container's process. */
	int32_t (*cgroup_ref)(void *ctx, rp_ctr ctr, char *buf, uint32_t cap);
	int32_t (*cgroup_find)(void *ctx, const char *ref, const char *controller, char *buf,
			       uint32_t cap);
	/* [any] Calls `each` for the entries of a directory in natural order. A result of `each`
	 * other than 0 ends the walk and is returned. */
	int32_t (*list_dir)(void *ctx, const char *path,
			    int32_t (*each)(void *arg, const char *name, uint32_t kind), void *arg);
	/* [any] Create and remove one directory, such as a cgroup or a resctrl group. They
	 * return -errno on failure. */
	int32_t (*make_dir)(void *ctx, const char *path);
	int32_t (*remove_dir)(void *ctx, const char *path);
	/* [any] Calls move_pages(2) for a process of a real machine. With nodes NULL it only
	 * queries the nodes of the pages. -RP_ENOTSUP: the host's root is not /. */
	int64_t (*move_pages)(void *ctx, int32_t pid, uint64_t n, void **pages,
			      const int32_t *nodes, int32_t *status);
	/* [any] Reads the target of a symbolic link as it is written there. Returns the length, or
	 * -errno (-RP_EINVAL: no symbolic link). */
	int32_t (*read_link)(void *ctx, const char *path, char *buf, uint32_t cap);
	/* Reports a figure RP_FIGURE_… of a container, in response to measure() of a controller. */
	void (*figure)(void *ctx, rp_ctr ctr, uint32_t figure, uint64_t value);

	/* ---- since 1.3 ---- */

	/* [any] Queues an RP_EVENT_POSTED with `cookie` and a copy of `data` for the calling
	 * policy. It is delivered soon, on the main thread and in a transaction of its own. With it
	 * a job reports results, and a callback defers work that need not be part of its
	 * transaction. Events are delivered in the order of posting, each as often as it was
	 * posted, and those of a job before its done(). None is delivered after stop(). -RP_E2BIG:
	 * data exceeds RP_POST_BYTES_MAX, or RP_POSTS_MAX events are queued; -RP_ENOTSUP: in a
	 * trial, and for modules other than policies with event(); -RP_ENOMEM. */
	int32_t (*post)(void *ctx, uint64_t cookie, const void *data, uint32_t data_size);
	/* [any] Reads a whole regular file of the node outside of /sys and /proc, below the host's
	 * root, such as "/etc/machine-id". Writes at most cap - 1 bytes and a NUL, and returns the
	 * length. It may wait for a disk, so call it from a job, or in prepare(). The host does not
	 * check who may read the file: the policy's author answers for the path. -RP_EINVAL: no
	 * regular file, or the path is not absolute or contains ".."; -RP_E2BIG: the file exceeds
	 * cap or RP_NODE_FILE_MAX; else -errno as of read_file(). Folders that systemd hides from
	 * the daemon (nri-rpd.service: /home) appear empty. */
	int32_t (*read_node)(void *ctx, const char *path, char *buf, uint32_t cap);
};

#define RP_POST_BYTES_MAX 4096u /* largest size of one event's data, in bytes */
#define RP_POSTS_MAX 256u /* largest number of undelivered events of one instance */
#define RP_NODE_FILE_MAX 1048576u /* largest file for read_node(), bytes */

#define RP_FIGURE_LLC 1u /* bytes of the last-level cache in use */
#define RP_FIGURE_TRAFFIC 2u /* bytes moved to and from memory since counting began */

/*
 * nri-rp.host.usage/1: the usage of containers as it was measured last. The host reads cgroups
 * every metrics.collectInterval, off the main thread. Without that key nothing is measured.
 * RP_EVENT_PRESSURE notifies of containers that lack a resource.
 */
#define RP_HOST_USAGE_1 "nri-rp.host.usage/1"

/* Resources that a container lacks. */
#define RP_PRESSURE_THROTTLED 0x1u /* throttled by its CPU limit */
#define RP_PRESSURE_CPU 0x2u /* tasks wait for CPUs */
/* tasks wait for memory */
#define RP_PRESSURE_MEMORY 0x4u
/* tasks wait for block I/O */
#define RP_PRESSURE_IO 0x8u

/* Rates refer to the last interval. A member that is unknown is RP_NOT_MEASURED: the first
 * reading has no rates, cgroup v1 has no pressure, and only the rdt controller reports cache and
 * traffic. */
#define RP_NOT_MEASURED (-1)

struct rp_usage {
	uint32_t size;
	uint32_t pressure; /* RP_PRESSURE_… as of the last RP_EVENT_PRESSURE */
	int64_t age_ms; /* time since the reading */
	int64_t cpu; /* used CPU time, in milli-CPU */
	int64_t throttled; /* per mille of its scheduling periods */
	int64_t memory; /* used memory, in bytes */
	int64_t cpu_wait, memory_wait,
		io_wait; /* per mille of the time in which at least one of its tasks waited */
	int64_t io_read, io_written; /* disk transfer rates, in bytes per second */
	int64_t llc; /* bytes of the last-level cache in use */
	int64_t traffic; /* bytes per second to and from memory */
};

struct rp_host_usage {
	uint32_t size;
	uint32_t pad;
	/* Fills *out, whose size the caller has set. -RP_ENOENT: nothing has been measured yet. */
	int32_t (*get)(void *ctx, rp_ctr ctr, struct rp_usage *out);
};

/*
 * nri-rp.host.settings/1 [since 1.2, a host may not have it]: files of the machine that are
 * restored when no module sets them any more, such as files of cpufreq and affinities of
 * interrupts.
 *
 * A file that one module has set may be set by another one meanwhile: by the policy that replaces
 * the first, or by a controller. No module knows alone which value to restore. The host therefore
 * records the value found before any module set the file, and the value that each module set. When
 * an instance is destroyed, or its create() fails, the host restores the files that the instance
 * has not dropped.
 *
 * Original values below /sys/devices/system, /sys/devices/virtual/workqueue and /proc/irq, and of
 * some files of cgroups, if they are one line, survive a crash of the daemon: the next process of
 * the same boot restores them, regardless of the present content. In a trial all
 * functions return -RP_ENOTSUP.
 */
#define RP_HOST_SETTINGS_1 "nri-rp.host.settings/1"
#define RP_SETTING_MAX 4096u /* limit of a value, with the NUL */
#define RP_SETTING_PATH_MAX 4096u /* limit of a path, with the NUL */

struct rp_host_settings {
	uint32_t size;
	uint32_t pad;
	/* [any] Records that the caller is about to write `value` to `path`, replacing the value it
	 * recorded before. `found` is the present content, which the host records as the original
	 * value unless another module has recorded the path. -RP_ENOMEM, -RP_E2BIG. */
	int32_t (*keep)(void *ctx, const char *path, const char *value, const char *found);
	/* [any] Reads the value that the file should have without the caller: the last value of
	 * another module, else the original one. Returns its length. -RP_ENOENT: the caller has
	 * recorded nothing there; -RP_E2BIG. */
	int32_t (*without)(void *ctx, const char *path, char *buf, uint32_t cap);
	/* [any] Forgets the caller's value: the caller has restored the file or needs it no longer.
	 * May read the file, to find out whether its content is the original value of a previous
	 * process. */
	void (*drop)(void *ctx, const char *path);
	/* [any] Reads the value found before any module set the file. Returns its length.
	 * -RP_ENOENT: no module has recorded the path; -RP_E2BIG. Decide by this value: the file's
	 * present content may be one that another module is about to restore. */
	int32_t (*found)(void *ctx, const char *path, char *buf, uint32_t cap);
};

/*
 * nri-rp.host.evict/1 [since 1.3, a host may not have it]: requests that a pod be evicted from this
 * node. The node agent sends them to the API server, which obeys disruption budgets and ends the
 * pod as `kubectl drain` does: its containers stop, the pod is removed, and the cluster starts a
 * replacement elsewhere. A refused request is repeated after 10 s, doubling to 5 min, until the pod
 * is gone, the module withdraws the request, or the module is destroyed. Requests are asynchronous;
 * state() returns the progress.
 */
#define RP_HOST_EVICT_1 "nri-rp.host.evict/1"
#define RP_EVICTIONS_MAX 64u /* largest number of unfinished requests of all modules */

#define RP_EVICTION_NONE 0u /* no request, or the pod was removed */
#define RP_EVICTION_ASKED 1u /* not answered yet */
#define RP_EVICTION_REFUSED 2u /* refused for now, for example by a disruption budget */
#define RP_EVICTION_GRANTED 3u /* the pod is being ended */
#define RP_EVICTION_FAILED                                                                         \
	4u /* the cluster does not know the pod (a static pod), or the agent lacks the right */

struct rp_host_evict {
	uint32_t size;
	uint32_t pad;
	/* Returns 1 if a node agent is connected, else 0: requests wait for one. */
	int32_t (*available)(void *ctx);
	/* Requests an eviction. grace_s: time in seconds that the containers have to end, -1: as
	 * the pod specifies. reason: a sentence for status and the log. The first request for a pod
	 * is effective; later ones return 0 too. In a trial nothing is requested. -RP_ESTALE: there
	 * is no such pod; -RP_E2BIG: more than RP_EVICTIONS_MAX; -RP_ENOMEM. */
	int32_t (*evict)(void *ctx, rp_pod pod, int64_t grace_s, const char *reason);
	/* Withdraws the request. A granted eviction cannot be withdrawn. */
	void (*withdraw)(void *ctx, rp_pod pod);
	/* Returns the state RP_EVICTION_… of the pod's request, whichever module made it. Writes
	 * the server's answer to `why`, "" for none. With cap 0, why may be NULL. */
	uint32_t (*state)(void *ctx, rp_pod pod, char *why, uint32_t cap);
};

/*
 * nri-rp.host.runtime/1 [since 1.3, a host may not have it]: the capabilities of the connected
 * container runtime. The runtime may be a different one after each synchronisation, so a policy
 * queries them in sync() and later. Without the service, assume RP_RUNTIME_CAN_REFUSE and
 * RP_RUNTIME_CAN_INJECT.
 */
#define RP_HOST_RUNTIME_1 "nri-rp.host.runtime/1"

#define RP_RUNTIME_CAN_REFUSE                                                                      \
	1u /* refusals of allocate() and admit_pod() prevent the container or pod */
#define RP_RUNTIME_CAN_INJECT                                                                      \
	2u /* settings of a creation apply: environment, mounts, devices, annotations, arguments */
#define RP_RUNTIME_CREATION_IS_LATE                                                                \
	4u /* containers have already begun to run when the runtime reports their creation */
/* Parts of RP_RUNTIME_CAN_INJECT that older runtimes silently ignore. A flag is set only if the
 * runtime is known to support the part. */
#define RP_RUNTIME_CAN_CDI 8u /* add_cdi(); CDI may still be disabled in the runtime */
#define RP_RUNTIME_CAN_ARGS 16u /* set_args() */
#define RP_RUNTIME_CAN_SCHEDULE 32u /* scheduling and I/O priority fields of set_int() */
#define RP_RUNTIME_CAN_SWAP 64u /* RP_F_SWAP */
#define RP_RUNTIME_CAN_MEMPOLICY 128u /* RP_F_MEMPOLICY_… [since 1.3] */
#define RP_RUNTIME_CAN_RDT 256u /* RP_F_RDT_GROUP [since 1.3] */

struct rp_host_runtime {
	uint32_t size;
	uint32_t pad;
	/* Returns RP_RUNTIME_… of the connected runtime, or of the last one. Before the first
	 * connection: RP_RUNTIME_CAN_REFUSE and RP_RUNTIME_CAN_INJECT. */
	uint32_t (*flags)(void *ctx);
	/* Return the runtime's name and version, such as "containerd" and "v2.1.4"; "" before
	 * the first connection. Valid until the callback returns. */
	const char *(*name)(void *ctx);
	const char *(*version)(void *ctx);
};

/*
 * nri-rp.host.hints/1 [since 1.3, a host may not have it]: topology hints of resource plugins,
 * programs outside of the daemon that allocate resources unknown to it. A hint names NUMA nodes
 * that suit a pod's request.
 *
 * The functions may be called only in admit_pod(), for its pod: the host has queried the plugins
 * before. A policy merges these hints with its own and chooses one per list. The plugin receives
 * the choice when it allocates, after the policy has admitted the pod. Without a choice the plugin
 * decides alone.
 */
#define RP_HOST_HINTS_1 "nri-rp.host.hints/1"

#define RP_HINTS_MAIN 0x1u /* for the pod's main container, or for the pod as a whole */
/* No node fits, and n is 0. Without this flag, n = 0 means that any node fits. */
#define RP_HINTS_NOTHING_FITS 0x2u

/* A list of hints: one resource of one container. */
struct rp_hint_list {
	uint32_t size;
	uint32_t flags; /* RP_HINTS_… */
	const char *ctr; /* name of the container; "": the pod as a whole */
	const char *resource; /* name of the resource, such as "vendor.example/gpu" */
	uint32_t n; /* number of hints */
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
	/* Fill *out with list `list` of a pod, and with hint `index` of a list, counted from
	 * 0. -RP_ENOENT: past the last one. */
	int32_t (*list)(void *ctx, rp_pod pod, uint32_t list, struct rp_hint_list *out);
	int32_t (*hint)(void *ctx, rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *out);
	/* Chooses a hint for a list. The last call for a list is effective, whether the pod is
	 * admitted or not. *hint is copied. -RP_ENOENT: there is no such list. */
	int32_t (*choose)(void *ctx, rp_pod pod, uint32_t list, const struct rp_hint *hint);
};

#ifdef __cplusplus
}
#endif
#endif
