/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource manager: one request or event at a time, through policy and controllers, to a reply.
 *
 * request/  requests, from the runtime's question to the answer, and what follows a decision
 *   request.c     what the runtime asks: pods and containers come, change and go
 *   sync.c        the runtime's whole truth after a connection: compare and keep
 *   decide.c      one transaction through policy, controllers and invariants; what follows a
 *                 failure
 *   controllers.c what controllers are told, and what they say; controllers_life.c: how they come
 *   and go
 *   empty_pods.c  pods that run nothing and whose end the runtime has not reported
 *   confine.c     containers that nobody has pinned, beside others that own CPUs
 *   updates.c     what has to be said to the runtime without being asked
 *   rebalance.c   telling the policy when moving containers may pay
 *   adjust.c      containers that are taken for others than their pods say
 *   devices.c     what the kubelet says of the devices of pods
 *   hold.c        a request that waits for what the kubelet or the cluster says
 *   export.c      the data files that containers can read
 *   persist.c     what the store is told, and when
 *   state.c       what the store tells at a start
 * config/   configurations, each attempted before it comes into force
 *   config.c      reload, plan and policy switch
 *   attempt.c     a function in a forked child: what is tried, or takes its time
 *   report.c      what that child reports
 *   try.c         the attempt to place the pods of a manifest; manifest.c, manifest_pod.c: reading
 *                 that
 *   apply.c       putting a configuration in force
 *   first.c       the one of a start, and what is done without a good one
 *   recover.c     the way out of safe mode
 *   advice.c      what of one is hardly meant
 *   undo.c        the way back to the one before
 *   pushed.c      what of them the node agent has pushed
 *   kept.c        the one that was in force last, in a file that outlives reboots
 *   speedselect.c, frequencies.c   what only the platform tells of its frequencies, read in a child
 * look/     what people and programs see
 *   status.c      how it is; conditions.c: what of that is not as it should be
 *   events.c      what happened: a bounded list, and a log of it for those after a restart
 *   verify.c      whether the kernel has what the runtime was told; drift.c: who else writes CPUs
 *                 of containers
 * node/     the Node of the cluster
 *   noderes.c     the resources that the node can lend; lending.c: publishing them
 *   evict.c       pods that modules want to be on another node
 *   cluster.c     what the node agent says of the cluster, for status
 *
 * A request works like this: the front end describes pod and container (borrowed text), gets a
 * reply that points into the cache, encodes it, and says reply_sent(): that acknowledges the
 * values, runs the out-of-band hooks and lets deferred persistence happen. Between the two calls
 * nothing else may be asked of the pipeline.
 *
 * One CreateContainer:
 *   nri_handle()          wait_behind(): behind a request that is held; else nri_handle_now()
 *   decode_event()        bytes → struct pod_desc, struct ctr_desc, once
 *   request_hold()        parks it with a continuation while somebody outside has to say something
 *                         first
 *   request_begin(), request_create()
 *     adopt()             pod and container into the cache
 *     decide(place)       decide_begin(): a transaction
 *                         instance_allocate(): the policy stages CPUs and memory;
 *                         ask_controllers(): who has to agree
 *                         confine(): those whom nobody pins; decide_check(): the invariants
 *                         commit(): the cache has it; persist_txn(): the store has it before the
 *                         answer
 *     decide_reply()      what other containers have to be told, those that lose CPUs first
 *   answer()              encoded and sent
 *   reply_sent()          ack_reply(): the runtime has it; decide_close(): hooks, data files, the
 *                         end of the transaction
 *
 * One reload:
 *   pipeline_reload()     config_read(): the files, once
 *   attempt_start()       a child: config_try() parses these bytes, puts all in force in its copy
 *                         of the node, and reports
 *   tried()               report_read(); a child that died, hung or refused ends it here
 *   put_in_force()        config_parse() of the same bytes, then apply_config():
 *                         controllers_prepare(), controllers_switch(), put_policy()
 *                         with place_and_commit(), controllers_take_over(); an error on the way
 *                         puts everything back
 *   accepted()            kept for later starts; config_in_force() tells the rest of the daemon
 *   tell_all()            whoever has asked
 *
 * A Synchronize after a restart:
 *   state_open()          the store's records into the cache, with the decisions of the last
 *                         process
 *   config_first()        the configuration, attempted as in a reload
 *   sync_begin(), sync_pod(), sync_ctr()   the runtime's list: take_known() keeps the decision of
 *                                          what is known
 *   sync_end()            drop_unlisted(), settle_names(), decide(synchronize): the policy takes
 *                         over what is right and places the rest
 *   decide_reply()        only what the runtime has otherwise
 *   reply_sent()          settings_release_former(): what the last process had set and nobody wants
 *                         any more
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/store/store.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/host.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/reload/attempt.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct pipeline;

/* ---- life ------------------------------------------------------------------------------------ */

struct pipeline_config {
	struct loop *loop;
	const char *config_path;
	const char *host_root; /* "/" */
	/* NULL: as the configuration says. */
	const char *state_dir; /* survives reboots: placements, and the configuration in force */
	/* survives restarts, best on a tmpfs: the breadcrumb, written with each call of a module */
	const char *run_dir;
	const char *const *module_dirs; /* instead of modules.path */
	unsigned n_module_dirs;
	bool reset_cache;
	bool fixed_log_level; /* the command line's stays */
	uint32_t hang_limit_ms; /* of a module call; 0: WATCHDOG_LIMIT_MS */
	/* Something waits for updates_next. Called from anywhere but within updates_*. */
	void (*updates_ready)(void *arg);
	/* A configuration has come into force (the first one included): take what concerns you from
	 * conf_core(). */
	void (*configured)(const struct conf *conf, void *arg);
	/* An event was noted that may change how the daemon is (conditions.h); may be NULL. */
	void (*changed)(void *arg);
	/* A decision is over, or a module wants the Node otherwise: what is published may be
	 * otherwise; may be NULL. */
	void (*decided)(void *arg);
	/* The first or a new synchronisation is through. */
	void (*synchronized)(void *arg);
	void *arg;
};

/* Reads configuration and machine, opens the store, loads the policy and the controllers. Nothing
 * leaves the process yet. Errors are for people; -EINVAL means the configuration (exit status
 * 78). */
int pipeline_new(const struct pipeline_config *config, struct pipeline **ret, struct err *err);
/* Stops the controllers, writes what is not written, closes. Returns NULL; p when a module's job
 * hangs, in a write to the kernel that does not return: all is written then, but what the job uses
 * cannot be freed, and the process has to _exit. */
#define PIPELINE_STOP_MS 3000u
struct pipeline *pipeline_free(struct pipeline *p);
/* The process ends as its event loop cannot go on: the next start treats that as a crash. */
void pipeline_failed(struct pipeline *p);

/*
 * Checks a configuration as a start would, modules, machine and all, and with a copy of the state
 * that is in the state directory ("" in config: that of the configuration). Problems and warnings
 * go to report as lines. 0: good; -EINVAL: not; another: it could not be tried.
 */
int pipeline_check(const struct pipeline_config *config, struct buf *report, struct err *err);

struct cache *pipeline_cache(struct pipeline *p);
struct topo *pipeline_topo(struct pipeline *p);
struct store *pipeline_store(struct pipeline *p);
struct loader *pipeline_loader(struct pipeline *p);
struct crumb *pipeline_crumb(struct pipeline *p);
const struct fs_root *pipeline_root(struct pipeline *p);
struct instance *pipeline_policy(struct pipeline *p); /* NULL: none is loaded */
/* Every running instance, the policy first; for metrics. */
int pipeline_each_instance(struct pipeline *p, int (*fn)(struct instance *i, void *arg), void *arg);
/* What a module tells, under the watchdog; never call instance_zones or instance_collect past
 * these. */
int pipeline_zones(struct pipeline *p, const struct rp_zone_sink *sink, struct err *err);
int pipeline_extended(struct pipeline *p, const struct rp_extended_sink *sink, struct err *err);
/* As instance_allocatable(); 0 as well when there is no policy. */
int pipeline_allocatable(struct pipeline *p, struct rp_idset *ret, struct err *err);
int pipeline_memory(struct pipeline *p, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err);
int pipeline_collect(struct pipeline *p, struct instance *i, const struct rp_metric_sink *sink,
		     struct err *err);

struct runtime_state;

struct runtime_state *pipeline_runtime(struct pipeline *p); /* the front end fills it in */

#endif
