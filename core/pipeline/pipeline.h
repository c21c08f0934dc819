/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource manager: one request or event at a time, through policy and controllers, to a reply.
 *
 *   request.c     what the runtime asks: pods and containers come, change and go
 *   sync.c        the runtime's whole truth after a connection: compare and keep
 *   decide.c      one transaction through policy, controllers and invariants; what follows a failure
 *   confine.c     containers that nobody has pinned, beside others that own CPUs
 *   updates.c     what has to be said to the runtime without being asked
 *   rebalance.c   telling the policy when moving containers may pay
 *   attempt.c     a function in a forked child: what is tried, or takes its time
 *   config.c      configurations: reload, plan and policy switch; each attempted before
 *   first.c       the one of a start, and what is done without a good one
 *   advice.c      what of one is hardly meant
 *   undo.c        the way back to the one before
 *   cluster.c     what the node agent says of the cluster, for status
 *   pushed.c      what of them the node agent has pushed
 *   kept.c        the one that was in force last, in a file that outlives reboots
 *   report.c      what that child reports
 *   verify.c      whether the kernel has what the runtime was told
 *   drift.c       who else writes CPUs of containers
 *   persist.c     what the store is told, and when
 *   state.c       what the store tells at a start
 *   devices.c     what the kubelet says of the devices of pods, and who waits for it
 *   adjust.c      containers that are taken for others than their pods say
 *   evict.c       pods that modules want to be on another node
 *   export.c      the data files that containers can read
 *   events.c      what happened, for people: a bounded list, and a log of it for those after a restart
 *   conditions.c  what is not as it should be
 *
 * A request works like this: the front end describes pod and container (borrowed text), gets a reply that points into the cache, encodes
 * it, and says reply_sent(): that acknowledges the values, runs the out-of-band hooks and lets deferred persistence happen.
 * Between the two calls nothing else may be asked of the pipeline.
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cache/cache.h"
#include "core/cache/store.h"
#include "core/cache/txn.h"
#include "core/conf/conf.h"
#include "core/host/host.h"
#include "core/host/instance.h"
#include "core/pipeline/attempt.h"
#include "core/topo/topo.h"
#include "core/util/buf.h"
#include "core/util/err.h"
#include "core/util/loop.h"

struct pipeline;

/* ---- replies -------------------------------------------------------------------------------------------------------- */

/* What a container is to be told. */
struct update {
	struct ctr *
		ctr; /* to be sent; what is answered later finds it by its handle, or not any more */
	rp_ctr handle;
	uint32_t fields; /* DIFF_…: which of the values */
	bool loses; /* CPUs that it has */
	struct values values; /* as decided when the update was made */
};

struct reply {
	struct ctr *created; /* whose adjustment this is; NULL: none */
	uint32_t created_fields; /* DIFF_… of its decision */
	const struct extra *extras; /* its creation-only values */
	uint32_t n_extras;
	const char *const
		*args; /* the process arguments that replace its own; NULL: it keeps them */
	uint32_t n_args;
	uint32_t
		taken; /* RP_TAKES_…: classes that controllers give it, and the runtime is not told of */
	bool data_dir; /* it gets the data directory mounted: source in data_path */
	char data_path[CACHE_PATH_MAX];
	/* Other containers (and for an UpdateContainer the container itself): those that lose CPUs first. */
	const struct update *updates;
	uint32_t n_updates;
};

/* ---- what the runtime asks (request.c, sync.c) --------------------------------------------------------------------------- */

enum request {
	REQ_CONFIGURE,
	REQ_SYNCHRONIZE,
	REQ_RUN_POD,
	REQ_UPDATE_POD,
	REQ_STOP_POD,
	REQ_REMOVE_POD,
	REQ_CREATE,
	REQ_POST_CREATE,
	REQ_START,
	REQ_POST_START,
	REQ_UPDATE,
	REQ_POST_UPDATE,
	REQ_STOP,
	REQ_REMOVE,
	REQ_OTHER,
	N_REQUESTS
};
const char *request_name(enum request r); /* "CreateContainer" */

/*
 * Each begins with request_begin and ends with reply_sent (reply_dropped when the reply could not be delivered: its changes go to the
 * unsolicited queue). An error comes with the sentence that the runtime passes on to people; nothing has changed then. Pods and
 * containers that are not known are adopted from the request.
 */
void request_begin(struct pipeline *p, enum request r);
int request_run_pod(struct pipeline *p, const struct pod_desc *pod, struct err *err);
void request_stop_pod(struct pipeline *p, const struct pod_desc *pod);
void request_remove_pod(struct pipeline *p, const struct pod_desc *pod);
int request_create(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   struct reply *ret, struct err *err);
void request_start(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* PostStart, PostCreate, PostUpdate: what they tell of the container's state. */
void request_note(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
int request_update(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   const struct res_desc *res, struct reply *ret, struct err *err);
void request_stop(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		  struct reply *ret);
void request_remove(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* Synchronize, an object at a time: all pods, then all containers, then the end, which decides. `later`: what can be asked of a new one until
 * then, its environment, mounts and devices; NULL: nothing. sync_abandon instead of sync_end: the list was not complete, nothing is dropped. */
void sync_begin(struct pipeline *p);
void sync_pod(struct pipeline *p, const struct pod_desc *pod);
void sync_ctr(struct pipeline *p, const struct ctr_desc *ctr, const struct ctr_desc *later);
void sync_end(struct pipeline *p, struct reply *ret);
void sync_abandon(struct pipeline *p);
/* `failed`: the request was answered with an error. */
void reply_sent(struct pipeline *p, struct reply *reply, bool failed);
void reply_dropped(struct pipeline *p, struct reply *reply);

/* ---- unsolicited updates (updates.c) ------------------------------------------------------------------------------------ */

#define UPDATE_BATCH_MAX 2048u

/* The next batch, one at a time: NULL when nothing waits or one is outstanding. The front end sends it and answers with one of the
 * two below. */
const struct update *updates_next(struct pipeline *p, uint32_t *ret_n);
/* Nothing waits that could be sent. */
void updates_hurry(struct pipeline *p);
void updates_acked(struct pipeline *p);
/* Somebody in the batch failed, the runtime does not say who: they are sent again one by one, later and later. `retry_now`: the
 * connection ended, nothing is known. */
void updates_failed(struct pipeline *p, bool connection_lost, const char *reason);
unsigned updates_waiting(const struct pipeline *p);
bool updates_outstanding(const struct pipeline *p);

/* ---- the runtime's connection, as the front end tells it ------------------------------------------------------------------- */

struct runtime_state {
	bool connected, synchronized;
	char name[64], version[64], nri_version[64];
	uint64_t connected_ns, synchronized_ns, request_timeout_ms;
	uint64_t connects, disconnects;
	char last_error[ERR_TEXT_MAX]; /* why it is not connected */
	const char *socket; /* where it is looked for; NULL: where rp.conf says */
};
struct runtime_state *pipeline_runtime(struct pipeline *p); /* the front end fills it in */

/* ---- life --------------------------------------------------------------------------------------------------------------- */

struct pipeline_config {
	struct loop *loop;
	const char *config_path;
	const char *host_root; /* "/" */
	/* NULL: as the configuration says. */
	const char *state_dir; /* survives reboots: placements, and the configuration in force */
	const char *
		run_dir; /* survives restarts, best on a tmpfs: the breadcrumb, written with each call of a module */
	const char *const *module_dirs; /* instead of modules.path */
	unsigned n_module_dirs;
	bool reset_cache;
	bool fixed_log_level; /* the command line's stays */
	uint32_t hang_limit_ms; /* of a module call; 0: WATCHDOG_LIMIT_MS */
	/* Something waits for updates_next. Called from anywhere but within updates_*. */
	void (*updates_ready)(void *arg);
	/* A configuration has come into force (the first one included): take what concerns you from conf_core(). */
	void (*configured)(const struct conf *conf, void *arg);
	/* An event was noted that may change how the daemon is (conditions.h); may be NULL. */
	void (*changed)(void *arg);
	/* A decision is over, or a module wants the Node otherwise: what is published may be otherwise; may be NULL. */
	void (*decided)(void *arg);
	/* The first or a new synchronisation is through. */
	void (*synchronized)(void *arg);
	/* Devices that a request may have waited for are known, or will not be. */
	void (*devices_ready)(void *arg);
	void *arg;
};

/* Reads configuration and machine, opens the store, loads the policy and the controllers. Nothing leaves the process yet. Errors
 * are for people; -EINVAL means the configuration (exit status 78). */
int pipeline_new(const struct pipeline_config *config, struct pipeline **ret, struct err *err);
/* Stops the controllers, writes what is not written, closes. Returns NULL; p when a module's job hangs, in a write to the kernel that
 * does not return: all is written then, but what the job uses cannot be freed, and the process has to _exit. */
#define PIPELINE_STOP_MS 3000u
struct pipeline *pipeline_free(struct pipeline *p);

/*
 * Checks a configuration as a start would, modules, machine and all, and with a copy of the state that is in the state directory (""
 * in config: that of the configuration). Problems and warnings go to report as lines. 0: good; -EINVAL: not; another: it could not be tried.
 */
int pipeline_check(const struct pipeline_config *config, struct buf *report, struct err *err);

/* ---- configurations (config.c) ------------------------------------------------------------------------------------------- */

#define RELOAD_TEXT_MAX 65536u

struct move {
	const char *ctr; /* namespace/pod/container */
	const char *from_cpus, *to_cpus, *from_mems, *to_mems;
	const char *note; /* "", or why it is degraded */
	const char
		*why; /* of a container of a pod that is tried: the explanation, lines; else "" */
};

struct reload_result {
	int code; /* 0: in force; -EINVAL: refused, the old one stays in force; -ESHUTDOWN: the pipeline ends; another: failed */
	struct err err;
	const char *warnings; /* lines, "" */
	const char *changes; /* keys that changed, lines */
	bool restart_needed; /* some of them only count after a restart */
	const struct move *moves; /* containers that are moved */
	unsigned n_moves;
	uint64_t took_us;
};
typedef void (*reload_done)(const struct reload_result *res, void *arg);

/* Reads the configuration again, tries it in a child, puts it in force. done (may be NULL) is called once, later; the outcome is logged
 * in any case. Reloads that come meanwhile are served by one that follows. */
void pipeline_reload(struct pipeline *p, reload_done done, void *arg);
/* The same; after so many seconds without pipeline_confirm() the one before comes back. -EBUSY: a reload is under way. */
int pipeline_reload_until(struct pipeline *p, uint32_t confirm_s, reload_done done, void *arg,
			  struct err *err);
/* What is in force stays. -ENOENT: nothing awaits that. */
int pipeline_confirm(struct pipeline *p, struct err *err);
unsigned pipeline_unconfirmed_s(const struct pipeline *p); /* that are left; 0: nothing awaits it */
/* As a reload, with the configuration that was in force before; a second one leads back again. res->code is -EAGAIN when there is none. */
int pipeline_undo(struct pipeline *p, reload_done done, void *arg, struct err *err);
/* The same up to the list of moves for another file; nothing is put in force. */
int pipeline_plan(struct pipeline *p, const char *path, reload_done done, void *arg,
		  struct err *err);
/* Where would the pods of the manifest in `text` go, and who would move for them? res->code is why one would be refused; res->moves has those before it
 * even so. Controllers are not asked. `name` is that of the manifest's file, for messages. */
int pipeline_try(struct pipeline *p, const char *name, const char *text, reload_done done,
		 void *arg, struct err *err);
/*
 * As a reload, with these sources of the node agent's instead of those that it pushed before; they are copied. What is accepted is kept
 * for later starts (pushed.h). Adjustments and the rest of a configuration come from different objects: one is pushed, the other one stays. 1: that is what is in force, and done is not called; -EBUSY: a reload is under way; -E2BIG: more than
 * CONF_PUSHED_MAX.
 */
int pipeline_push(struct pipeline *p, const struct conf_source *sources, unsigned n,
		  bool adjustments, reload_done done, void *arg, struct err *err);
const struct conf *pipeline_conf(const struct pipeline *p);
uint64_t pipeline_conf_generation(const struct pipeline *p);

/* ---- for status, metrics and the control socket ---------------------------------------------------------------------------- */

struct pipeline_status {
	const char *policy; /* in force; "none" in safe mode */
	const char *configured_policy;
	bool safe_mode;
	const char *safe_mode_reason; /* "" */
	const char *config_path;
	uint64_t config_generation;
	bool config_undone; /* what is in force was in force before what the files say */
	bool config_ok; /* what is in force is what the files said last */
	const char *config_error;
	const char *config_problems; /* all that is wrong with them, lines; NULL when nothing is */
	uint64_t
		config_kept_ns; /* the start could not use them: what is in force was so at that time; else 0 */
	uint64_t started_ns; /* wall clock */
	unsigned n_pods, n_ctrs, n_degraded, n_updates_waiting, n_module_deaths;
	const char *store_state; /* "restored", "fresh", or what became of it at the start */
	bool degraded; /* conditions.h has the reasons */
};
void pipeline_status(const struct pipeline *p, struct pipeline_status *ret);

struct controller_status {
	const char *name, *mode;
	bool running;
	bool calculator; /* and no controller */
	const char *error; /* why not */
	unsigned pending, done, partial, failed; /* containers */
};
/* What the controller said last of a container: one of RP_APPLY_…, with the reason; false: nothing. */
struct controller_result {
	uint32_t result;
	const char *text;
};
bool pipeline_controller_result(const struct pipeline *p, unsigned i, const struct ctr *ctr,
				struct controller_result *ret);
unsigned pipeline_n_controllers(const struct pipeline *p);
void pipeline_controller(const struct pipeline *p, unsigned i, struct controller_status *ret);

#define HISTOGRAM_BUCKETS 12
struct request_stats {
	uint64_t n, failed;
	uint64_t total_ns, max_ns;
	uint64_t bucket[HISTOGRAM_BUCKETS]; /* of histogram_le_us[], the last is the rest */
};
extern const uint32_t histogram_le_us[HISTOGRAM_BUCKETS - 1];

struct pipeline_stats {
	struct request_stats requests[N_REQUESTS];
	uint64_t policy_errors, invariant_breaks, resyncs, updates_sent, updates_failed,
		updates_in_replies, moved, unmanaged, reloads, reloads_refused, store_errors,
		adopted, rebalances;
};
const struct pipeline_stats *pipeline_stats(const struct pipeline *p);

/* ---- rebalancing and figures (rebalance.c) -------------------------------------------------------------------------------- */

/* Asks the policy to move containers where that pays, `budget` at most (0: any number). -ENOTSUP: it does not do so; -E2BIG: it wanted to
 * move more, and none was moved. */
int pipeline_rebalance(struct pipeline *p, uint32_t budget, unsigned *ret_moves, struct err *err);
/* A measured container has begun or ceased to lack something (RP_PRESSURE_…): people and the policy are told. */
void pipeline_pressure(struct pipeline *p, struct ctr *ctr, uint32_t pressure);
/* Controllers are asked for the figures that only they have. */
void pipeline_measure(struct pipeline *p);

/* What measuring costs; the collector fills it in. */
struct usage_stats {
	bool on;
	unsigned n_ctrs; /* in the last round */
	uint64_t rounds, skipped; /* skipped: the one before was still under way */
	uint64_t files, missing; /* missing: containers whose cgroup was not found */
	uint64_t cpu_ns; /* of its thread */
	uint64_t last_ns; /* that the last round took */
};
struct usage_stats *pipeline_usage_stats(struct pipeline *p);

struct cache *pipeline_cache(struct pipeline *p);
struct topo *pipeline_topo(struct pipeline *p);
struct store *pipeline_store(struct pipeline *p);
struct loader *pipeline_loader(struct pipeline *p);
struct crumb *pipeline_crumb(struct pipeline *p);
const struct fs_root *pipeline_root(struct pipeline *p);
struct instance *pipeline_policy(struct pipeline *p); /* NULL: none is loaded */
/* Every running instance, the policy first; for metrics. */
int pipeline_each_instance(struct pipeline *p, int (*fn)(struct instance *i, void *arg), void *arg);
/* What a module tells, under the watchdog; never call instance_zones or instance_collect past these. */
int pipeline_zones(struct pipeline *p, const struct rp_zone_sink *sink, struct err *err);
int pipeline_extended(struct pipeline *p, const struct rp_extended_sink *sink, struct err *err);
int pipeline_collect(struct pipeline *p, struct instance *i, const struct rp_metric_sink *sink,
		     struct err *err);

/* ---- what others write (drift.c) ----------------------------------------------------------------------------------------- */

enum culprit {
	CULPRIT_UNKNOWN,
	CULPRIT_KUBELET, /* its static CPU manager */
	CULPRIT_RUNC, /* one that turns bytes around */
	CULPRIT_SYSTEMD,
	CULPRIT_TUNED,
	CULPRIT_CGRULES,
	CULPRIT_RESET, /* somebody who gives all CPUs */
	N_CULPRITS
};
const char *culprit_text(enum culprit c);
const char *culprit_hint(enum culprit c);

#define DRIFT_NAME_MAX 192u

struct drift_stats {
	bool watching;
	unsigned n_watched; /* containers */
	uint64_t
		found; /* times that a container had other CPUs or memory nodes than it was given */
	uint64_t by[N_CULPRITS];
	char last[N_CULPRITS][DRIFT_NAME_MAX]; /* the last container it was found for */
};
void pipeline_drift(const struct pipeline *p, struct drift_stats *ret);

/* ---- events (events.c) --------------------------------------------------------------------------------------------------- */

#define EVENTS_MAX 512u
#define EVENT_TEXT_MAX 224u

enum event_kind {
	EV_RUNTIME, /* connected, lost, synchronised */
	EV_CONFIG, /* reloads */
	EV_CREATED, /* a container was placed */
	EV_REFUSED, /* … or refused */
	EV_MOVED, /* its CPUs or memory nodes changed */
	EV_RESIZED, /* it asked for other amounts, and has got them */
	EV_RELEASED,
	EV_DEGRADED,
	EV_UPDATE_FAILED,
	EV_MODULE, /* errors and deaths of modules */
	EV_MACHINE, /* CPUs came or went */
	EV_PRESSURE, /* a container lacks something, or no longer */
	EV_EVICTION, /* a module asks for one, or the cluster has answered */
	N_EVENT_KINDS
};
const char *event_kind_name(enum event_kind k);

struct event {
	uint64_t seq; /* from 1; goes on after a restart */
	uint64_t wall_ns;
	enum event_kind kind;
	char text[EVENT_TEXT_MAX];
	char *subject; /* the container that it is about, namespace/pod/name; NULL: none */
	char *uid; /* of the subject's pod, where the cluster may be told of it; NULL: not known, or of an earlier process */
	char *detail; /* more of it, lines: why a container was refused; NULL: nothing */
};
void pipeline_event(struct pipeline *p, enum event_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* About a container; its text has to name it. `detail`: copied, may be NULL. */
void pipeline_event_of(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
		       const char *detail, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* The first event after seq that is still there; NULL: none yet. */
const struct event *pipeline_event_after(const struct pipeline *p, uint64_t seq);
uint64_t pipeline_last_event(const struct pipeline *p);
/* Calls fn (once) when an event comes; for those who follow. */
void pipeline_on_event(struct pipeline *p, void (*fn)(void *arg), void *arg);

#endif
