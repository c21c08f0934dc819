/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of the module ABI: declarations shared by the files of this folder. */
#pragma once

#include <pthread.h>

#include <nri-rp/cache.h>
#include <nri-rp/host.h>
#include <nri-rp/node.h>
#include <nri-rp/speedselect.h>
#include <nri-rp/topology.h>

#include "core/nri-rpd/host/instance.h"

struct instance_timer;
struct role;

struct instance {
	struct host_env *env;
	struct module *module;
	struct rp_instance *inst;
	const struct role *role;
	/* Functions in the table of the role, and the table itself; missing ones are NULL. */
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	const struct rp_policy *policy;
	const struct rp_controller *controller;
	const struct rp_calculator *calculator;
	const struct rp_zones *zones;
	const struct rp_metrics *metrics;
	const struct rp_state *state;
	const struct rp_extended *extended;
	const struct rp_allocation *allocation;
	const struct rp_devices *devices;
	const struct rp_decision *decision;
	struct rp_host host;
	pthread_t thread; /* the main thread, on which the instance may call the host */
	/* Calls of the host on another thread. Atomic: any thread counts, the main thread logs. */
	const char *foreign_service; /* service of the latest of these calls */
	uint32_t n_foreign, n_foreign_logged;
	struct err failed; /* error text of the running callback */
	uint64_t n_failures; /* callbacks that returned an error */
	char where[CONF_PLACE_MAX]; /* latest answer of where() */
	uint32_t number;
	rp_txn txn; /* transaction in which it was called last */
	unsigned jobs;
	bool closing; /* the instance was freed, but its jobs are still running */
	bool created; /* the module's instance has to be destroyed */
	bool committed; /* a configuration was committed */
	bool ignores_starts; /* the policy has ignored a start since its last commit() */
	struct instance_timer *timers;
	unsigned n_timers;
	unsigned n_posts; /* protected by the environment's lock */
	struct fragment *fragments; /* results of parse() in the running callback */
};

extern const struct rp_host_cache host_cache_service;
extern const struct rp_host_topology host_topology_service;
extern const struct rp_host_config host_config_service;
extern const struct rp_host_explain host_explain_service;
extern const struct rp_host_timer host_timer_service;
extern const struct rp_host_work host_work_service;
extern const struct rp_host_usage host_usage_service;
extern const struct rp_host_speedselect host_speedselect_service;
extern const struct rp_host_settings host_settings_service;
extern const struct rp_host_noderes host_noderes_service;
extern const struct rp_host_runtime host_runtime_service;
extern const struct rp_host_node host_node_service;
extern const struct rp_host_evict host_evict_service;
extern const struct rp_host_hints host_hints_service;
/* Setters of the cache service that work only while a container is created (creation.c). */
struct extra;
int32_t creation_put(struct instance *i, rp_txn id, rp_ctr handle, struct extra e);
int32_t creation_set_pair(void *ctx, rp_txn id, rp_ctr handle, uint32_t field, const char *key,
			  const char *value);
int32_t creation_set_args(void *ctx, rp_txn id, rp_ctr handle, const char *const *args, uint32_t n);
int32_t creation_add_mount(void *ctx, rp_txn id, rp_ctr handle, const struct rp_mount *mount);
int32_t creation_add_device(void *ctx, rp_txn id, rp_ctr handle, const struct rp_device *device);
int32_t creation_add_cdi(void *ctx, rp_txn id, rp_ctr handle, const char *name);
void host_figure(void *ctx, rp_ctr ctr, uint32_t figure, uint64_t value);

static inline struct instance *instance_of(void *ctx)
{
	return ctx;
}
/* Counts a call on a wrong thread, which is logged when the running call of the module ends. Ends
 * the process if the environment has a function for such calls. */
void instance_foreign_call(struct instance *i, const char *service, const char *function);
/* Ends the process, with the running call as the culprit, if the module has closed or replaced its
 * descriptors. Call it before the crumb of the call is cleared. */
void instance_check_robbed(struct instance *i);
/* Logs the calls on a wrong thread counted since the last report. Main thread. */
void instance_report_foreign(struct instance *i);
/*
 * First statement of each service function that is not marked [any]: on any thread other than the
 * main one, the function has no effect and returns `result`. The state of the main thread is not
 * touched.
 */
#define MAIN_ONLY(ctx, service, result)                                                            \
	do {                                                                                       \
		struct instance *caller_ = instance_of(ctx);                                       \
		if (__builtin_expect(!pthread_equal(pthread_self(), caller_->thread), 0)) {        \
			instance_foreign_call(caller_, service, __func__);                         \
			return result;                                                             \
		}                                                                                  \
	} while (0)

/* Defines a service function that returns an expression; on a wrong thread it returns `refused`. */
#define SERVICE_CALL(type, service, refused, name, params, ...)                                    \
	static type name params                                                                    \
	{                                                                                          \
		MAIN_ONLY(ctx, service, refused);                                                  \
		return __VA_ARGS__;                                                                \
	}

/* Defines a service function that changes the machine below `root`, on any thread. A trial changes
 * nothing. */
#define SERVICE_CHANGE(name, params, ...)                                                          \
	static int32_t name params                                                                 \
	{                                                                                          \
		const struct host_env *env = ((struct instance *)ctx)->env;                        \
		const struct fs_root *root = env->root;                                            \
		return env->trial ? -RP_ENOTSUP : __VA_ARGS__;                                     \
	}

/* Returns the name that the site uses for a label, annotation or resource. */
static inline const char *service_name(void *ctx, const char *key, struct site_name *buf)
{
	return site_name(instance_prefixes(instance_of(ctx)), key, buf);
}
/* Returns the same in memory of the calling function. */
#define SERVICE_NAME(ctx, key) service_name(ctx, key, &(struct site_name){{0}})

/* Fills i->host with all services: for code in core that calls modules/lib like a module. */
void instance_fill_host(struct instance *i);
void instance_drop_timers(struct instance *i);
void instance_drop_posts(struct instance *i);
void instance_drop_fragments(struct instance *i);
void instance_drop_settings(struct instance *i);
void instance_drop_wishes(struct instance *i);
/* Completes the freeing of an instance after its last job has ended. */
void instance_finish(struct instance *i);
