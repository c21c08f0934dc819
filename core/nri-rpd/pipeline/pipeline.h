/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline is the resource manager: it handles one request or event at a time, through policy
 * and controllers, to a reply. pipeline.c opens and closes it. Its rooms (the state of a room is in
 * its room.h):
 *
 * request/      requests, from their arrival to the reply, and the decision
 *   request.c          handlers of pod and container requests
 *   sync.c             Synchronize: the runtime's list replaces the cache's containers
 *   decide.c           a transaction through policy, controllers and invariants; steps after it
 *   confine.c          unpinned containers beside containers with exclusive CPUs
 *   updates.c          updates in replies, and the queue of unsolicited updates
 *   rebalance.c        occasions at which the policy may move containers
 *   adjust.c           adjustments of rp.conf to requested resources
 *   empty_pods.c       pods that run nothing and whose end the runtime has not reported
 * wait/         reasons to defer a request
 *   hold.c             the deferred request
 *   admit.c            admission of pods, after the cluster has reported their resources
 *   devices.c          devices that the kubelet has assigned to pods
 *   plugins.c          registered resource plugins and allocations of pods
 *   plugin_question.c  the outstanding question to plugins
 *   plugin_grants.c    grants of plugins in decisions and replies
 * controllers/  controllers.c: hooks and reports; life.c: their change with a configuration
 * reload/       configurations, each tried in a forked child before it is activated
 *   reload.c           reload, plan, undo and push
 *   startup.c          choice of a configuration at a start
 *   apply.c            activation, and switch of policies
 *   attempt.c          forked attempts; report.c: their reports
 *   last_good.c        copy of the last active configuration
 *   undo.c             confirmation, and return to the previous configuration
 *   pushed.c           configurations from the cluster
 *   recover.c          recovery from safe mode
 *   advice.c           warnings about probable mistakes
 * try/          try.c: attempt to place the pods of a manifest; manifest.c, manifest_pod.c: parser
 * state/        persist.c: times of writes; state.c: the store at a start; export.c: data files
 * node/         resources of the node, and the Node object of the cluster
 *   noderes.c          passes of the calculators; inputs.c: their input
 *   measure.c          series of usage; forecast.c: models of usage; apps.c: host applications
 *   lending.c          publication of results on the Node; outcome.c: the same in a file
 *   evict.c            evictions that modules request
 *   feed.c             the agent's reports about pods; cluster.c: about cluster and Node
 *   speedselect.c, frequencies.c   data of the platform that was read in a child
 * observe/      status.c, conditions.c, events.c: for users; kubelet.c: the kubelet's state files;
 *               zones.c: modules' reports about the node
 * verify/       verify.c, amounts.c: checks of cgroups; drift.c: other programs that write them
 *
 * A request: the front end describes pod and container with borrowed text, gets a reply that points
 * into the cache, encodes it, and calls reply_sent(), which acknowledges the values and runs the
 * hooks. Between these calls no other function of the pipeline may be called.
 *
 * CreateContainer:
 *   nri_handle()           queued by wait_behind() behind a deferred request, else nri_handle_now()
 *   decode_event()         decodes the message into struct pod_desc and struct ctr_desc
 *   request_hold()         defers the request until devices and plugin allocations are known
 *   request_begin(), request_create()
 *     request_adopt()      adds pod and container to the cache
 *     decide()             decide_begin() begins the transaction
 *       request_place()    adjust_stage(): requests of an adjustment; inquiry_allows(): answers
 *                          of plugins; instance_allocate(): the policy stages CPUs and memory;
 *                          request_grant(): allocations of plugins; ask_controllers()
 *       confine()          keeps unpinned containers off exclusive CPUs
 *       decide_check()     checks the invariants
 *       decide_commit()    commits to the cache; persist_txn() writes the store before the reply
 *     decide_reply()       collects updates of other containers, those that lose CPUs first
 *   encode_adjustment()    encodes the decided values of the container
 *   handlers_answer()      sends the reply
 *   reply_sent()           ack_reply() records the runtime's values; decide_close() runs hooks,
 *                          writes data files and ends the transaction
 *
 * Reload:
 *   pipeline_reload()      reload_begin(): config_read() reads the files once
 *   attempt_start()        a child: config_try() parses the bytes, applies them to its copy of the
 *                          state, and reports
 *   reload_tried()         report_read(); a child that crashed, hung or refused ends the reload
 *   reload_conclude()      put_in_force(): config_parse() of the same bytes, apply_config() with
 *                          controllers_prepare(), controllers_switch(), put_policy() with
 *                          place_and_commit(), controllers_take_over(); an error restores all
 *     reload_accepted()    config_accepted() saves the files for later starts
 *     config_in_force()    notifies the rest of the daemon
 *   tell_all()             answers the callers
 *
 * Synchronize after a restart:
 *   state_open()           restores the cache, with the decisions of the previous process
 *   config_first()         tries and activates the configuration
 *   sync_begin(), sync_pod(), sync_ctr()   the runtime's list; take_known(): known containers
 *   sync_end()             drop_unlisted(), settle_names(), decide() with sync_synchronize(): the
 *                          policy keeps correctly placed containers and places the others. If it
 *                          fails, sync_confine_only() keeps unplaced containers off exclusive CPUs
 *   decide_reply()         collects updates; stage_differing() queues what differs from the
 *                          runtime's values
 *   reply_sent()           controllers_sync(); settings_release_former() reverts settings of the
 *                          previous process that no module has taken over; verify_all()
 */
#pragma once

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

/* ---- start and end --------------------------------------------------------------------------- */

struct pipeline_config {
	struct loop *loop;
	const char *config_path;
	const char *host_root; /* root of the host's files, "/" */
	/* NULL: taken from the configuration. */
	const char *state_dir; /* survives reboots: placements and the last good configuration */
	/* survives restarts, preferably on a tmpfs: the breadcrumb file, written with each module
	 * call */
	const char *run_dir;
	/* folders of modules; NULL: module.path of the configuration */
	const char *const *module_dirs;
	unsigned n_module_dirs;
	bool reset_cache;
	bool fixed_log_level; /* the command line has set the log level */
	uint32_t hang_limit_ms; /* longest module call; 0: WATCHDOG_LIMIT_MS */
	/* The queue has updates for updates_next(). Not called from within updates_* functions. */
	void (*updates_ready)(void *arg);
	/* A configuration was activated (also the first one); settings are in conf_core(). */
	void (*configured)(const struct conf *conf, void *arg);
	/* An event has changed a condition (conditions.h); may be NULL. */
	void (*changed)(void *arg);
	/* A decision has ended, or a module wants another Node: published data may have changed;
	 * may be NULL. */
	void (*decided)(void *arg);
	/* A synchronization has ended. */
	void (*synchronized)(void *arg);
	void *arg;
	bool alone; /* the pipeline is used without a daemon; set by pipeline_new_alone() */
};

/* Reads configuration and topology, opens the store, loads policy and controllers. Nothing leaves
 * the process before the runtime is connected. err is for users; -EINVAL: the configuration is
 * wrong (exit status 78). */
int pipeline_new(const struct pipeline_config *config, struct pipeline **ret, struct err *err);
/* Opens a pipeline for a program that brings instance and configuration itself (nri-rp-modcheck).
 * Requests run as in the daemon. Nothing is loaded, saved, recorded for users or verified in
 * cgroups. */
int pipeline_new_alone(const struct pipeline_config *config, struct pipeline **ret,
		       struct err *err);
/* Stops the controllers, saves all state and frees the pipeline. Returns NULL. Returns p if a
 * module's job hangs in a write to the kernel: all is saved then, but memory of the job cannot be
 * freed, and the process has to _exit(). */
#define PIPELINE_STOP_MS 3000u
struct pipeline *pipeline_free(struct pipeline *p);

/*
 * Checks a configuration as a start would, with modules, topology and a copy of the state in the
 * state directory ("" in config: that of the configuration). Problems and warnings go to report as
 * lines. 0: valid. -EINVAL: not valid. Other: the check was not possible.
 */
int pipeline_check(const struct pipeline_config *config, struct buf *report, struct err *err);

struct cache *pipeline_cache(const struct pipeline *p);
/* Reads the machine again if the configuration changes which memory nodes belong to devices.
 * starting: no module uses the machine yet. */
void pipeline_device_nodes(struct pipeline *p, const struct conf *conf, bool starting);
struct topo *pipeline_topo(const struct pipeline *p);
struct store *pipeline_store(const struct pipeline *p);
struct loader *pipeline_loader(const struct pipeline *p);
struct crumb *pipeline_crumb(const struct pipeline *p);
const struct fs_root *pipeline_root(const struct pipeline *p);
/* Returns the instance of the policy; NULL: no policy is loaded. */
struct instance *pipeline_policy(const struct pipeline *p);
/* Calls fn for each running instance, the policy first. Stops at a result other than 0 and returns
 * it. */
int pipeline_each_instance(struct pipeline *p, int (*fn)(struct instance *i, void *arg), void *arg);
/* Call a module under the watchdog. Use these instead of instance_zones() or instance_collect(). */
int pipeline_zones(struct pipeline *p, const struct rp_zone_sink *sink, struct err *err);
int pipeline_extended(struct pipeline *p, const struct rp_extended_sink *sink, struct err *err);
/* Finds the online CPUs that are not reserved for the system: as the policy reports them, else as
 * its zones do. */
int pipeline_allocatable(struct pipeline *p, struct rp_idset *ret, struct err *err);
int pipeline_memory(struct pipeline *p, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err);
int pipeline_collect(struct pipeline *p, struct instance *i, const struct rp_metric_sink *sink,
		     struct err *err);

struct runtime_state;

struct runtime_state *pipeline_runtime(struct pipeline *p); /* filled in by the front end */
