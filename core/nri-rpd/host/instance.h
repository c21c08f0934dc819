/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance of a module, the host services that it uses, and guarded calls into it. Every call is
 * made under a breadcrumb. Its error text is collected, and its result is judged by the rules of
 * <nri-rp/module.h>.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <nri-rp/calculator.h>
#include <nri-rp/controller.h>
#include <nri-rp/decision.h>
#include <nri-rp/host.h>
#include <nri-rp/policy.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/loader.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/loop.h"

struct instance;
struct node_object;
struct node_wish;
struct nr_input;

/* Performs the evictions that modules request (nri-rp.host.evict/1). */
struct evict_ops {
	bool (*available)(void *arg);
	int (*evict)(const struct instance *i, struct pod *pod, int64_t grace_s, const char *reason,
		     void *arg);
	void (*withdraw)(const struct instance *i, rp_pod pod, void *arg);
	uint32_t (*state)(rp_pod pod, const char **ret_why, void *arg); /* returns RP_EVICTION_… */
	/* drops the requests of an instance that is destroyed */
	void (*forget)(const struct instance *i, void *arg);
};

/* Runtime that is connected now or was connected last (nri-rp.host.runtime/1). */
struct runtime_facts {
	char name[64], version[64]; /* name and version of the runtime; "": none was connected */
	uint32_t flags; /* abilities of the runtime, RP_RUNTIME_… */
};

/* Hints of components other than the policy (nri-rp.host.hints/1), with the functions of that
 * service. */
struct hint_ops {
	int (*list)(rp_pod pod, uint32_t list, struct rp_hint_list *ret, void *arg);
	int (*hint)(rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *ret, void *arg);
	int (*choose)(rp_pod pod, uint32_t list, struct rp_ids nodes, bool preferred, void *arg);
};

/* Environment of instances. Its members may be replaced between calls, for example by a new
 * snapshot of the machine. */
struct host_env {
	struct loop *loop;
	struct worker *worker;
	struct crumb *crumb;
	struct cache *cache;
	struct topo *topo;
	const struct fs_root *root;
	/* true in a forked child: no timers, no work, no effect outside of the process */
	bool trial;
	/* Set in tests: receives the name of a function that a module has called on a wrong thread,
	 * before that ends the process. NULL: the call fails by RP_EPERM, is logged and counted. */
	void (*foreign_call)(struct instance *i, const char *function);
	/* Reports a device that the kubelet allocated to a container; 0 or -ENOENT. NULL: the
	 * kubelet is not queried. */
	int (*pod_resource)(const struct ctr *ctr, uint32_t index, struct rp_pod_resource_info *ret,
			    void *arg);
	/* inputs of the running pass of calculators; NULL: no pass is running */
	const struct nr_input *noderes;
	/* the cluster's Node object (node.h); NULL: not received yet */
	const struct node_object *node;
	struct node_wish *wishes; /* changes of the Node that modules want, oldest first */
	struct instance *sst_manager; /* instance that sets up Speed Select; NULL: none */
	/* Files of the machine that instances have set and that are not restored yet.
	 * Zero-initialized. */
	struct setting *settings;
	pthread_mutex_t settings_lock; /* protects the settings, the log and found_fails */
	struct found *found; /* log of previous contents; NULL: none */
	bool found_fails; /* a failure to write the log has been logged */
	struct post *posts, **posts_end; /* undelivered events of all instances, and their lock */
	pthread_mutex_t posts_lock;
	/* Delivers an event that an instance caused itself: a timer that expired, or a posted
	 * event. reported() delivers a controller's report. */
	void (*event)(struct instance *i, const struct rp_event *ev, void *arg);
	void (*reported)(struct instance *i, rp_ctr ctr, uint32_t result, const char *text,
			 void *arg);
	/* functions for evictions; NULL: evictions are not supported */
	const struct evict_ops *evict;
	const struct runtime_facts *runtime; /* the runtime; NULL: none was connected */
	/* functions for hints of other components; NULL: no component has hints */
	const struct hint_ops *hints;
	/* called when a module's wanted changes of the Node have changed; may be NULL */
	void (*wished)(void *arg);
	void *arg;
};

/* Returns the name of a kind for messages: "policy". `kind` is one of RP_KIND_…. */
const char *kind_name(uint32_t kind);
/* Creates an instance in one role, RP_KIND_…, which has to be one of the module's kinds. A module
 * of several kinds has one instance for each. The environment and the module have to outlive the
 * instance. */
int instance_new(struct host_env *env, struct module *m, uint32_t role, struct instance **ret,
		 struct err *err);
/* Frees the instance at once, or, while its jobs are running, when the last of them is done.
 * Returns NULL; NULL is fine. */
struct instance *instance_free(struct instance *i);
struct module *instance_module(const struct instance *i);
const char *instance_name(const struct instance *i);
/* Returns the prefixes that the site uses in place of the modules' own; NULL: no replacement. */
const struct prefixes *instance_prefixes(const struct instance *i);
/* Returns the kind for which the module was instantiated, RP_KIND_…. */
uint32_t instance_role(const struct instance *i);
bool instance_handles_events(const struct instance *i);
/* Returns false if the policy ignores RP_EVENT_STARTED under its present configuration. */
bool instance_handles_starts(const struct instance *i);
/* Returns true if the module was built for this minor version of the ABI or a later one. */
bool instance_knows(const struct instance *i, uint32_t minor);
unsigned instance_jobs(const struct instance *i);
/* Returns the number of calls of the host on a wrong thread, all of which were refused. */
uint32_t instance_foreign_calls(const struct instance *i);
/* Returns the instance's number in decisions (cache_policy_number). */
uint32_t instance_number(const struct instance *i);
uint64_t instance_failures(const struct instance *i); /* callbacks that returned an error */

/* ---- configuration, for every role ---- -------- */

int instance_prepare(struct instance *i, rp_cfg cfg, struct rp_plan **ret_plan, struct err *err);
void instance_commit(struct instance *i, struct rp_plan *plan);
void instance_abort(struct instance *i, struct rp_plan *plan);

/* ---- policies; calls work on the running transaction of the cache ---- ---- */

int instance_sync(struct instance *i, struct err *err);
int instance_allocate(struct instance *i, struct ctr *ctr, struct err *err);
int instance_update(struct instance *i, struct ctr *ctr, struct err *err);
int instance_unmanaged(struct instance *i, struct ctr *ctr,
		       struct err *err); /* 0 if the callback is missing */
int instance_release(struct instance *i, struct ctr *ctr, struct err *err);
/* Calls admit_pod(); 0 if the callback is missing. */
int instance_admit_pod(struct instance *i, struct pod *pod, struct err *err);
int instance_pod_removed(struct instance *i, struct pod *pod, struct err *err);
bool instance_admits(const struct instance *i); /* true if admit_pod() exists */
bool instance_follows_pods(const struct instance *i); /* true if a callback for pods exists */
int instance_event(struct instance *i, const struct rp_event *ev, struct err *err);
/* Calls rolled_back(). Returns RP_RESYNC or 0. */
int instance_rolled_back(struct instance *i);
/* Calls an optional service of the module. Returns 0 without effect if the module does not have
 * it. */
int instance_zones(struct instance *i, const struct rp_zone_sink *sink, struct err *err);
int instance_collect(struct instance *i, const struct rp_metric_sink *sink, struct err *err);
int instance_extended(struct instance *i, const struct rp_extended_sink *sink, struct err *err);
/* Returns 1 and the CPUs that containers may get in *ret; 0: the module does not report them. */
int instance_allocatable(struct instance *i, struct rp_idset *ret, struct err *err);
int instance_memory(struct instance *i, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err);
/* Claims (claim.h). instance_has_devices() returns true if the module offers devices; the other
 * functions need that. instance_release() also releases claims. */
bool instance_has_devices(const struct instance *i);
/* Returns true if the instance is a controller whose devices these are: their names begin with the
 * name of the module and "-". */
bool instance_owns_device(const struct instance *i, const char *device);
int instance_devices(struct instance *i, const struct rp_devices_sink *sink, struct err *err);
int instance_device_allocate(struct instance *i, struct ctr *claim, struct err *err);
int instance_save(struct instance *i, const void **ret, uint32_t *ret_size, struct err *err);
int instance_load(struct instance *i, const void *data, uint32_t size, struct err *err);

/* ---- decisions on single figures ---- ---- */

/* Returns true if the module has a rule of that kind. */
bool instance_decides(const struct instance *i, const char *kind);
int instance_decide(struct instance *i, const struct rp_question *question,
		    const struct rp_answer *answer, struct err *err);

/* ---- calculators ---- */

/* Returns true if the calculator uses the forecast of resources that pods will not need. */
bool instance_wants_forecast(const struct instance *i);
/* Return the names that the module declares, as lists that end with NULL and are never NULL
 * themselves. */
const char *const *instance_resources(const struct instance *i);
const char *const *instance_annotations(const struct instance *i);
int instance_calculate(struct instance *i, const struct rp_nr_sink *out, struct err *err);
/* Requests the calculator to reset its resources. 0 and *ret_default: the host resets them
 * itself. */
int instance_reset(struct instance *i, const char *message, const struct rp_nr_sink *out,
		   bool *ret_default, struct err *err);
int instance_apply(struct instance *i, const struct rp_nr_edit *node, struct err *err);
bool instance_need_sync(struct instance *i, const struct rp_nr_edit *old_node,
			const struct rp_nr_edit *new_node);
/* Returns true if a change of the annotation concerns the calculator. Text NULL: the annotation is
 * absent. */
bool instance_meta_changed(struct instance *i, const char *key, const char *old_text,
			   const char *new_text);

/* ---- controllers; a calculator has nothing to start or stop ---- */

int instance_start(struct instance *i, struct err *err);
void instance_stop(struct instance *i);
int instance_pre_create(struct instance *i, struct ctr *ctr, struct err *err);
int instance_post_start(struct instance *i, struct ctr *ctr, struct err *err);
int instance_post_update(struct instance *i, struct ctr *ctr, uint32_t changed, struct err *err);
int instance_post_stop(struct instance *i, struct ctr *ctr, struct err *err);
/* Returns what the module takes care of, RP_TAKES_…. */
uint32_t instance_takes(const struct instance *i);
void instance_controller_sync(struct instance *i);
void instance_measure(struct instance *i);
void instance_controller_timer(struct instance *i, uint64_t cookie);
