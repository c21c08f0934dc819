/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running module: one instance of it, the host services it was given, and guarded calls into it.
 * Every call is made under a breadcrumb, its error text is collected, and what it returns is judged
 * by the rules of <nri-rp/module.h>.
 */
#ifndef HOST_INSTANCE_H
#define HOST_INSTANCE_H

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

/* Takes evictions for the modules (nri-rp.host.evict/1). */
struct evict_ops {
	bool (*available)(void *arg);
	int (*evict)(const struct instance *i, struct pod *pod, int64_t grace_s, const char *reason,
		     void *arg);
	void (*withdraw)(const struct instance *i, rp_pod pod, void *arg);
	uint32_t (*state)(rp_pod pod, const char **ret_why, void *arg); /* RP_EVICTION_… */
	void (*forget)(const struct instance *i, void *arg); /* it is gone */
};

/* The runtime that is connected, or was last (nri-rp.host.runtime/1). */
struct runtime_facts {
	char name[64], version[64]; /* "": none was */
	uint32_t flags; /* RP_RUNTIME_… */
};

/* Hints of others than the policy (nri-rp.host.hints/1), as its functions. */
struct hint_ops {
	int (*list)(rp_pod pod, uint32_t list, struct rp_hint_list *ret, void *arg);
	int (*hint)(rp_pod pod, uint32_t list, uint32_t index, struct rp_hint *ret, void *arg);
	int (*choose)(rp_pod pod, uint32_t list, struct rp_ids nodes, bool preferred, void *arg);
};

/* What instances work on. Its members may be exchanged between calls (a new snapshot of the
 * machine, say). */
struct host_env {
	struct loop *loop;
	struct worker *worker;
	struct crumb *crumb;
	struct cache *cache;
	struct topo *topo;
	const struct fs_root *root;
	bool trial; /* a forked child: no timers, no work, nothing leaves it */
	/* A module's call of the host on a wrong thread ends the process, for tests. Else the call
	 * fails by RP_EPERM, is logged and counted. */
	bool foreign_call_aborts;
	/* Devices that the kubelet gave a container; 0 or -ENOENT. NULL: nobody asks the
	 * kubelet. */
	int (*pod_resource)(const struct ctr *ctr, uint32_t index, struct rp_pod_resource_info *ret,
			    void *arg);
	const struct nr_input *noderes; /* of the running pass of calculators; NULL: none runs */
	const struct node_object *node; /* as the cluster has it (node.h); NULL: nothing is known */
	struct node_wish *wishes; /* of all instances, in the order in which they were said */
	struct instance *sst_manager; /* who sets up Speed Select; NULL: nobody */
	/* What instances have set of the machine and is not put back yet. Zeroed at first, as all
	 * of this. */
	struct setting *settings;
	pthread_mutex_t settings_lock; /* for all of it */
	struct found *found; /* the file of what was there before; NULL: none */
	bool found_fails; /* it was said that it cannot be written */
	struct post *posts, **posts_end; /* events on their way, of all instances, and their lock */
	pthread_mutex_t posts_lock;
	/* An event of an instance's own: its timer has gone off, or it has posted one. A controller
	 * reports. */
	void (*event)(struct instance *i, const struct rp_event *ev, void *arg);
	void (*reported)(struct instance *i, rp_ctr ctr, uint32_t result, const char *text,
			 void *arg);
	const struct evict_ops *evict; /* NULL: nobody does */
	const struct runtime_facts *runtime; /* NULL: none was connected */
	const struct hint_ops *hints; /* NULL: nobody has any */
	void (*wished)(void *arg); /* wishes have changed; may be NULL */
	void *arg;
};

/* What a kind is called for people: "policy". `kind` is one of RP_KIND_…. */
const char *kind_name(uint32_t kind);
/* Creates an instance in one role, RP_KIND_…, which the module has to have among its kinds: a
 * module of several kinds is used by one instance for each. The environment and the module have to
 * outlive it. */
int instance_new(struct host_env *env, struct module *m, uint32_t role, struct instance **ret,
		 struct err *err);
/* Frees it at once, or, while its jobs are under way, when the last of them is done. Returns NULL;
 * NULL is fine. */
struct instance *instance_free(struct instance *i);
struct module *instance_module(const struct instance *i);
const char *instance_name(const struct instance *i);
/* What the site calls the names that modules say; NULL: as they do. */
const struct prefixes *instance_prefixes(const struct instance *i);
uint32_t instance_role(const struct instance *i); /* RP_KIND_… */
bool instance_handles_events(const struct instance *i);
/* Whether the module was built for this minor of the ABI or a later one. */
bool instance_knows(const struct instance *i, uint32_t minor);
unsigned instance_jobs(const struct instance *i);
/* Calls of the host on a wrong thread, all of them refused. */
uint32_t instance_foreign_calls(const struct instance *i);
/* This instance's number in decisions (cache_policy_number). */
uint32_t instance_number(const struct instance *i);

/* ---- configuration: the same for every role ---- */

int instance_prepare(struct instance *i, rp_cfg cfg, struct rp_plan **ret_plan, struct err *err);
void instance_commit(struct instance *i, struct rp_plan *plan);
void instance_abort(struct instance *i, struct rp_plan *plan);

/* ---- policies; the running transaction of the cache is theirs ---- */

int instance_sync(struct instance *i, struct err *err);
int instance_allocate(struct instance *i, struct ctr *ctr, struct err *err);
int instance_update(struct instance *i, struct ctr *ctr, struct err *err);
int instance_unmanaged(struct instance *i, struct ctr *ctr,
		       struct err *err); /* 0 without the callback */
int instance_release(struct instance *i, struct ctr *ctr, struct err *err);
/* 0 without the callback. */
int instance_admit_pod(struct instance *i, struct pod *pod, struct err *err);
int instance_pod_removed(struct instance *i, struct pod *pod, struct err *err);
bool instance_admits(const struct instance *i); /* has admit_pod() */
bool instance_follows_pods(const struct instance *i); /* has one of the two */
int instance_event(struct instance *i, const struct rp_event *ev, struct err *err);
/* RP_RESYNC or 0. */
int instance_rolled_back(struct instance *i);
/* Optional services: 0 without doing anything when the module does not have them. */
int instance_zones(struct instance *i, const struct rp_zone_sink *sink, struct err *err);
int instance_collect(struct instance *i, const struct rp_metric_sink *sink, struct err *err);
int instance_extended(struct instance *i, const struct rp_extended_sink *sink, struct err *err);
/* 1: *ret has the CPUs that containers may be given; 0: the module does not tell. */
int instance_allocatable(struct instance *i, struct rp_idset *ret, struct err *err);
int instance_memory(struct instance *i, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err);
int instance_save(struct instance *i, const void **ret, uint32_t *ret_size, struct err *err);
int instance_load(struct instance *i, const void *data, uint32_t size, struct err *err);

/* ---- decisions of given figures ---- */

/* Does it have a rule of that kind? */
bool instance_decides(const struct instance *i, const char *kind);
int instance_decide(struct instance *i, const struct rp_question *question,
		    const struct rp_answer *answer, struct err *err);

/* ---- calculators ---- */

/* Whether the calculator goes by what pods are predicted not to need. */
bool instance_wants_forecast(const struct instance *i);
/* Names that are the module's own; lists that end with NULL, never NULL themselves. */
const char *const *instance_resources(const struct instance *i);
const char *const *instance_annotations(const struct instance *i);
int instance_calculate(struct instance *i, const struct rp_nr_sink *out, struct err *err);
/* 0 and *ret_default: the host resets its resources itself. */
int instance_reset(struct instance *i, const char *message, const struct rp_nr_sink *out,
		   bool *ret_default, struct err *err);
int instance_apply(struct instance *i, const struct rp_nr_edit *node, struct err *err);
bool instance_need_sync(struct instance *i, const struct rp_nr_edit *old_node,
			const struct rp_nr_edit *new_node);
/* NULL: the annotation is not there. */
bool instance_meta_changed(struct instance *i, const char *key, const char *old_text,
			   const char *new_text);

/* ---- controllers; a calculator has nothing to start or stop ---- */

int instance_start(struct instance *i, struct err *err);
void instance_stop(struct instance *i);
int instance_pre_create(struct instance *i, struct ctr *ctr, struct err *err);
int instance_post_start(struct instance *i, struct ctr *ctr, struct err *err);
int instance_post_update(struct instance *i, struct ctr *ctr, uint32_t changed, struct err *err);
int instance_post_stop(struct instance *i, struct ctr *ctr, struct err *err);
uint32_t instance_takes(const struct instance *i); /* RP_TAKES_… */
void instance_controller_sync(struct instance *i);
void instance_measure(struct instance *i);
void instance_controller_timer(struct instance *i, uint64_t cookie);

#endif
