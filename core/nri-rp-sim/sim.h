/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated node: a container runtime with its pods, the kubelet's arithmetic in front of it, a
 * machine below it, and a real nri-rpd that is connected to it by NRI over a unix socket.
 *
 *   machine.c tree.c shipped.c  machines, as files below sys/ and proc/
 *   files.c                     other files of the machine: those of cgroups, resctrl, interrupts …
 *   view.c                      the same read back: what is online, what is near what
 *   doc.c                       YAML and JSON
 *   release.c                   what each release of NRI can do
 *   kubelet.c                   from requests and limits to shares, quota and the rest
 *   model.c                     pods and containers
 *   messages.c                  the model as messages
 *   tap.c frames.c              between the socket and wire: is what the plugin sends fit for
 *                               a Go peer?
 *   conn.c sync.c               the socket, registration, synchronisation, requests, updates nobody
 *                               asked for
 *   lie.c                       what it says that is not so
 *   apply.c check.c             what the plugin answers, judged and taken over
 *   daemon.c                    nri-rpd: start, stop, kill, its log
 *   lifecycle.c                 pods come, change and go: which requests that makes, and what
 *                               follows an error
 *   steps.c                     what a scenario or a test can ask for
 *   expect.c                    the language of expectations
 *   map.c                       who sits where, for people
 *   play.c serve.c              a scenario file; commands on stdin
 *
 * Everything runs on one thread. A step waits by running the loop (sim_wait) until its request has
 * been answered; callbacks note what has happened and never wait.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "core/lib/machines/machine.h"
#include "core/lib/nri-runtime/release.h"
#include "core/nri-rp-sim/view.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define SIM_NOT_SET INT64_MIN
#define SIM_MODULE_DIRS_MAX 8u

struct conn;
struct daemon;

enum sim_runtime { RUNTIME_CONTAINERD, RUNTIME_CRIO };
enum sim_cgroups { CGROUPS_SYSTEMD, CGROUPS_FS };

struct sim_options {
	const char *machine; /* NULL: the scenario says, or n4c16 */
	/* command with {config} and the like; NULL: the nri-rpd beside this program */
	const char *daemon;
	const char *module_dirs[SIM_MODULE_DIRS_MAX];
	unsigned n_module_dirs;
	const char *work; /* a folder to work in that is kept; NULL: a temporary one */
	const char *nri, *runtime, *cgroups; /* names, NULL: the scenario says */
	unsigned sync_parts; /* pods and containers a Synchronize message; 0: all */
	uint64_t seed;
	uint64_t settle_ms; /* how long an expectation may take to come true */
	bool verbose, json, keep;
};

/* ---- the model ------------------------------------------------------------------------------- */

enum qos { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT };

/* What a container asks for; 0: nothing. */
struct wants {
	int64_t cpu_request, cpu_limit; /* milli */
	int64_t memory_request, memory_limit; /* bytes */
};

/* What the container runs with, as in the OCI specification. */
struct resources {
	int64_t shares, quota, period, memory_limit; /* SIM_NOT_SET */
	char *cpus, *mems; /* lists; "": all there are */
};

enum ctr_state { CTR_CREATING, CTR_CREATED, CTR_RUNNING, CTR_EXITED };

struct sim_ctr {
	struct sim_ctr *prev, *next; /* of the node, in the order of creation */
	struct sim_pod *pod;
	char *id, *name;
	enum ctr_state state;
	bool init;
	bool stop_sent; /* StopContainer comes once */
	bool failing; /* updates of it fail, as if the kernel refused them */
	struct wants wants;
	struct resources res;
	int64_t oom_score_adj;
	char *cgroups_path;
	/* args, env, mounts, devices, annotations, labels … as described and adjusted */
	json_t *spec;
	json_t *given; /* what the plugin adjusted beside resources: for expectations */
	int64_t created_ns, started_ns, finished_ns;
	int exit_code;
	uint32_t pid;
	unsigned number; /* counted from the first one of the node */
	uint64_t took_us; /* the answer to its creation */
	uint64_t n_updates,
		n_moves; /* updates of it; those that changed its CPUs or memory nodes */
};

struct sim_pod {
	struct sim_pod *prev, *next;
	char *id, *name, *ns, *uid, *handler, *cgroup_parent;
	json_t *labels, *annotations;
	enum qos qos;
	struct wants wants; /* of its containers together, or its own */
	struct wants own; /* resources of the pod itself; 0: none */
	bool critical, stopped;
	uint32_t pid;
};

/* ---- the node -------------------------------------------------------------------------------- */

struct sim {
	struct sim_options options;
	struct loop *loop;
	struct loop_timer *wait_timer;
	bool wait_over;
	struct loop_signal *interrupts[2];
	bool interrupted; /* by the user: nothing waits any longer */

	char work[PATH_MAX], root[PATH_MAX], socket[PATH_MAX], state[PATH_MAX], control[PATH_MAX];
	char config[PATH_MAX], log[PATH_MAX];
	bool remove_work;

	json_t *machine; /* its description; NULL: a recorded tree */
	json_t *cgroup_files; /* of each container; NULL: no cgroups are made */
	struct view view;
	const struct nri_release *release;
	enum sim_runtime runtime;
	enum sim_cgroups cgroups;
	unsigned sync_parts;
	uint64_t request_timeout_ms, registration_timeout_ms;

	struct sim_pod *pods, *last_pod;
	struct sim_ctr *ctrs, *last_ctr;
	uint64_t n_ids; /* made so far */
	uint32_t next_pid;
	unsigned n_ctrs_made;

	struct conn *conn; /* NULL: the runtime does not listen */
	struct daemon *daemon;
	uint64_t n_active_before; /* plugins of earlier runs of the runtime */

	json_t *lie; /* lie.h; NULL: the truth */
	json_t *updates; /* what was applied to containers, since the last time somebody asked */
	json_t *problems; /* what the plugin did that a runtime would not take, since then */
	uint64_t n_updates, n_needless, n_problems, n_unsolicited, n_synchronizations;
	void (*on_event)(json_t *event, void *arg); /* takes the reference */
	void *on_event_arg;
};

int sim_new(const struct sim_options *options, struct sim **ret, struct err *err);
struct sim *sim_free(struct sim *s); /* returns NULL; NULL is fine */

/* The setting up of a node: machine, release … from a scenario's head; the options win over it.
 * Writes the machine's tree. */
int sim_setup(struct sim *s, const json_t *head, struct err *err);
/* Runs the loop until over() says so: 0, -ETIMEDOUT, or -EINTR once the user has had enough.
 * UINT64_MAX: no limit. */
int sim_wait(struct sim *s, bool (*over)(struct sim *s, void *arg), void *arg, uint64_t timeout_ms);
/* Has sim_wait look again; for callbacks. */
void sim_wake(struct sim *s);
/* Something the plugin should not have done. */
void sim_problem(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Tells whoever watches: an object with the key "event" and what is in details, whose reference is
 * taken. */
void sim_event(struct sim *s, const char *what, json_t *details);
/* Reads the tree anew, after CPUs went or came. */
int sim_look(struct sim *s, struct err *err);

/* ---- model.c --------------------------------------------------------------------------------- */

struct sim_pod *model_find_pod(const struct sim *s, const char *name); /* NAME or NAMESPACE/NAME */
/* ID, CONTAINER if there is but one of that name, POD/CONTAINER or NAMESPACE/POD/CONTAINER; those
 * that have not exited go first. */
/* The keys of a pod and its containers, and `more` ones of the pod; "": none. */
int model_check_pod(const json_t *spec, const char *more, struct err *err);
struct sim_ctr *model_find_ctr(const struct sim *s, const char *name);
struct sim_ctr *model_ctr_of_id(const struct sim *s, const char *id);
/* From {pod, namespace, uid, labels, annotations, …}; without its containers. */
int model_new_pod(struct sim *s, const json_t *spec, struct sim_pod **ret, struct err *err);
int model_new_ctr(struct sim *s, struct sim_pod *pod, const json_t *spec, struct sim_ctr **ret,
		  struct err *err);
void model_free_pod(struct sim *s, struct sim_pod *pod); /* and its containers */
void model_free_ctr(struct sim *s, struct sim_ctr *ctr);
/* "namespace/pod/container"; "pod/container" where that says it. Returns buf. */
#define MODEL_NAME_MAX 512
const char *model_name(const struct sim_ctr *ctr, char buf[MODEL_NAME_MAX]);
/* The sets it may use: all that are online when none are set. */
void model_cpus(const struct sim *s, const struct sim_ctr *ctr, struct rp_idset *ret);
void model_mems(const struct sim *s, const struct sim_ctr *ctr, struct rp_idset *ret);
/* For results. */
json_t *model_describe(const struct sim *s, const struct sim_ctr *ctr);
const char *model_state_name(enum ctr_state state);

/* ---- kubelet.c ------------------------------------------------------------------------------- */

/* {cpu, memory, requests, limits}; what is not there keeps what ret says. */
int kubelet_wants(const json_t *spec, struct wants *ret, struct err *err);
/* Over all containers of a pod. */
enum qos kubelet_qos(const struct wants *wants, size_t n);
/* What a pod asks for: all of its containers, or the largest init container. A limit counts when
 * all have one. */
void kubelet_sum(const struct wants *wants, const bool *init, size_t n, struct wants *ret);
const char *kubelet_qos_name(enum qos qos);
/* A pod's own resources (spec.resources): in place of its containers' sums, and as limits of the
 * containers without. */
void kubelet_put_own(const struct wants *own, struct wants *sums);
void kubelet_hand_down(const struct wants *own, struct wants *ctr);
int64_t kubelet_shares(const struct wants *w);
int64_t kubelet_quota(const struct wants *w); /* 0: none */
int64_t kubelet_oom_score_adj(const struct wants *w, enum qos qos, bool critical, int64_t capacity);
#define KUBELET_PERIOD 100000
/* malloc'd; NULL when out of memory */
char *kubelet_cgroup_parent(enum sim_cgroups driver, enum qos qos, const char *uid);
char *kubelet_cgroups_path(enum sim_cgroups driver, enum sim_runtime runtime, const char *parent,
			   const char *id);

#endif
