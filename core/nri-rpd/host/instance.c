/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates instances of modules and calls their functions, each under a breadcrumb, with the error
 * text collected and the result checked. The services that instances call are in service/.
 */
#include "core/nri-rpd/host/instance.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rpd/host/watchdog.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "module"

/* ---- host services of an instance ------------------------------------------------------------ */

static const void *host_service(void *ctx, const char *id)
{
	static const struct {
		const char *id;
		const void *service;
	} services[] = {
		{RP_HOST_CACHE_1, &host_cache_service},
		{RP_HOST_TOPOLOGY_1, &host_topology_service},
		{RP_HOST_CONFIG_1, &host_config_service},
		{RP_HOST_EXPLAIN_1, &host_explain_service},
		{RP_HOST_TIMER_1, &host_timer_service},
		{RP_HOST_WORK_1, &host_work_service},
		{RP_HOST_USAGE_1, &host_usage_service},
		{RP_HOST_SPEEDSELECT_1, &host_speedselect_service},
		{RP_HOST_SETTINGS_1, &host_settings_service},
		{RP_HOST_NODERES_1, &host_noderes_service},
		{RP_HOST_NODE_1, &host_node_service},
		{RP_HOST_EVICT_1, &host_evict_service},
		{RP_HOST_RUNTIME_1, &host_runtime_service},
		{RP_HOST_HINTS_1, &host_hints_service},
	};
	MAIN_ONLY(ctx, "service()", NULL);
	for (unsigned i = 0; i < sizeof services / sizeof *services; i++)
		if (str_eq(services[i].id, id))
			return services[i].service;
	return NULL;
}

static void host_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	MAIN_ONLY(ctx, "log()", );
	struct instance *i = ctx;
	const struct ctr *ctr = object ? cache_ctr_of(i->env->cache, object) : NULL;
	if (level < LOG_ERROR || level > LOG_DEBUG)
		level = LOG_DEBUG;
	if (!log_wants(i->module->name, (enum log_level)level))
		return;
	if (ctr)
		log_write(i->module->name, (enum log_level)level, "%s: %s", ctr->full_name, text);
	else
		log_write(i->module->name, (enum log_level)level, "%s", text);
}

static int32_t host_fail(void *ctx, int32_t code, const char *text)
{
	MAIN_ONLY(ctx, "fail()", code);
	struct instance *i = ctx;
	(void)err_set(&i->failed, code, "%.*s", (int)utf8_cut(text, ERR_TEXT_MAX - 1), text);
	str_one_line(i->failed.text); /* the text may quote annotations */
	return code;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

void instance_check_robbed(struct instance *i)
{
	if (!crumb_robbed(i->env->crumb))
		return;
	dprintf(STDERR_FILENO,
		"<2>module %s has closed or replaced file descriptors of the process: nri-rpd "
		"exits\n",
		i->module->name);
	_exit(WATCHDOG_EXIT);
}

/* ---- calls on a wrong thread ----------------------------------------------------------------- */

/* Ends the process with a breadcrumb, for tests and the conformance kit. */
_Noreturn static void end_at_foreign_call(const struct instance *i, const char *service)
{
	dprintf(STDERR_FILENO,
		"<2>module %s: called %s on a thread other than the main one: nri-rpd exits\n",
		i->module->name, service);
	crumb_enter(i->env->crumb, CRUMB_LOOP, i->module->name, CRUMB_THREAD, service);
	abort();
}

void instance_foreign_call(struct instance *i, const char *service, const char *function)
{
	if (i->env->foreign_call) {
		i->env->foreign_call(i, function);
		end_at_foreign_call(i, service);
	}
	__atomic_store_n(&i->foreign_service, service, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&i->n_foreign, 1, __ATOMIC_RELEASE);
}

void instance_report_foreign(struct instance *i)
{
	uint32_t n = __atomic_load_n(&i->n_foreign, __ATOMIC_ACQUIRE);
	/* Log frequent calls only when their count has doubled. */
	if (n == i->n_foreign_logged || n < 2 * i->n_foreign_logged)
		return;
	i->n_foreign_logged = n;
	log_error("module %s: called %s on a thread other than the main one: the call was refused "
		  "(calls refused so far: %u); this is a defect of the module, report it to its "
		  "author",
		  i->module->name, __atomic_load_n(&i->foreign_service, __ATOMIC_RELAXED), n);
}

void instance_fill_host(struct instance *i)
{
	i->thread = pthread_self();
	i->host = (struct rp_host){sizeof i->host, RP_ABI_MINOR, i,
				   host_service,   host_log,	 host_fail};
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void instance_enter(struct instance *i, enum crumb_call call, const char *object)
{
	i->failed.code = 0; /* without the text, which a failure fills */
	i->failed.text[0] = '\0';
	crumb_enter(i->env->crumb, CRUMB_LOOP, i->module->name, call, object);
}

/* Ends the call of the module and turns its result into an errno of the host. */
static int instance_leave(struct instance *i, enum crumb_call call, int32_t result, struct err *err)
{
	instance_check_robbed(i);
	crumb_leave(i->env->crumb, CRUMB_LOOP);
	instance_report_foreign(i);
	instance_drop_fragments(i);
	if (result >= 0)
		return 0;
	i->n_failures++;
	if (i->failed.text[0])
		return err_set(err, result, "%s", i->failed.text);
	return err_errno(err, result, "module %s failed in %s without an error text",
			 i->module->name, crumb_call_name(call));
}

#define HAS(service, field) RP_HAS(service, field) && (service)->field
/* Calls a callback of one of the instance's tables, whose further arguments follow. */
#define CALL(i, table, callback, call, object, err, ...)                                           \
	(instance_enter(i, call, object),                                                          \
	 instance_leave(i, call, (i)->table->callback((i)->inst, ##__VA_ARGS__), err))
/* Calls a callback that modules may lack; 0: it is missing. */
#define CALL_OPTIONAL(i, table, callback, ...)                                                     \
	(HAS((i)->table, callback) ? CALL(i, table, callback, __VA_ARGS__) : 0)
/* Calls a callback without a result. */
#define NOTIFY(i, call, callback, ...)                                                             \
	do {                                                                                       \
		instance_enter(i, call, NULL);                                                     \
		callback((i)->inst, ##__VA_ARGS__);                                                \
		(void)instance_leave(i, call, 0, NULL);                                            \
	} while (0)

/* Defines a function of instance.h that reads a property of an instance. */
#define DEFINE_GETTER(name, type, ...)                                                             \
	DEFINE_GETTER_OF(name, type, const struct instance *i, __VA_ARGS__)
/* Define functions of instance.h that call an optional callback: with a sink, or about a container,
 * which is the object of the call. */
#define DEFINE_SINK_CALL(name, sink_type, table, callback, call)                                   \
	int name(struct instance *i, const struct sink_type *sink, struct err *err)                \
	{                                                                                          \
		return CALL_OPTIONAL(i, table, callback, call, NULL, err, sink);                   \
	}
#define DEFINE_CTR_CALL(name, table, callback, call, ...)                                          \
	int name(struct instance *i, struct ctr *ctr, struct err *err)                             \
	{                                                                                          \
		return CALL_OPTIONAL(i, table, callback, call, ctr->full_name, err, __VA_ARGS__);  \
	}

/* ---- roles ----------------------------------------------------------------------------------- */

/* Defines the function that takes the table of a role. Returns false if the table lacks a required
 * function; `optional` is the first member that a module may lack. */
#define TAKE_ROLE(role, optional, ...)                                                             \
	static bool take_##role(struct instance *i, const void *table)                             \
	{                                                                                          \
		const struct rp_##role *t = table;                                                 \
		if (!t || t->size < offsetof(struct rp_##role, optional) || !t->prepare ||         \
		    !t->commit || !t->abort || !(__VA_ARGS__))                                     \
			return false;                                                              \
		i->role = t;                                                                       \
		i->prepare = t->prepare;                                                           \
		i->commit = t->commit;                                                             \
		i->abort = t->abort;                                                               \
		return true;                                                                       \
	}
TAKE_ROLE(policy, event, t->sync && t->allocate && t->update && t->release)
TAKE_ROLE(controller, pre_create, t->start && t->stop)
TAKE_ROLE(calculator, reset, t->calculate && t->resources && t->annotations)

static const struct role {
	uint32_t kind;
	const char *name;
	const char *service; /* service that returns the role's table */
	bool (*take)(struct instance *i, const void *table);
} roles[] = {
	{RP_KIND_POLICY, "policy", RP_POLICY_1, take_policy},
	{RP_KIND_CONTROLLER, "controller", RP_CONTROLLER_1, take_controller},
	{RP_KIND_CALCULATOR, "calculator", RP_CALCULATOR_1, take_calculator},
};

static const struct role *role_of(uint32_t kind)
{
	for (unsigned i = 0; i < sizeof roles / sizeof *roles; i++)
		if (roles[i].kind == kind)
			return &roles[i];
	return NULL;
}

const char *kind_name(uint32_t kind)
{
	const struct role *role = role_of(kind);
	return role ? role->name : "module of an unknown kind";
}

static const void *module_service(struct instance *i, const char *id)
{
	instance_enter(i, CRUMB_SERVICE, id);
	const void *service = i->module->abi->service ? i->module->abi->service(i->inst, id) : NULL;
	crumb_leave(i->env->crumb, CRUMB_LOOP);
	return service;
}

static int take_role(struct instance *i, struct err *err)
{
	if (!i->role->take(i, module_service(i, i->role->service)))
		return err_set(err, -EBADMSG,
			       "module %s declares itself a %s but lacks parts of %s",
			       i->module->name, i->role->name, i->role->service);
	i->zones = module_service(i, RP_ZONES_1);
	i->metrics = module_service(i, RP_METRICS_1);
	i->state = module_service(i, RP_STATE_1);
	i->extended = module_service(i, RP_EXTENDED_1);
	i->allocation = module_service(i, RP_ALLOCATION_1);
	i->devices = module_service(i, RP_DEVICES_1);
	i->decision = module_service(i, RP_DECISION_1);
	return 0;
}

int instance_new(struct host_env *env, struct module *m, uint32_t role, struct instance **ret,
		 struct err *err)
{
	if (!(m->kinds & role) || !role_of(role))
		return err_set(err, -EINVAL, "module %s is not a %s", m->name, kind_name(role));
	struct instance *i = calloc(1, sizeof *i);
	if (!i)
		return err_errno(err, -ENOMEM, "module %s", m->name);
	i->env = env;
	i->module = m;
	i->role = role_of(role);
	i->number = cache_policy_number(env->cache, m->name);
	instance_fill_host(i);
	instance_enter(i, CRUMB_CREATE, NULL);
	int r = instance_leave(i, CRUMB_CREATE, m->abi->create(&i->host, &i->inst), err);
	i->created = r == 0;
	if (!r) {
		crumb_use(env->crumb, m->name, true);
		module_note_code(m, env->crumb);
	}
	if (!r)
		r = take_role(i, err);
	if (r)
		instance_free(i);
	else
		*ret = i;
	return r;
}

void instance_finish(struct instance *i)
{
	assert(!i->jobs);
	if (i->env->sst_manager == i)
		i->env->sst_manager = NULL;
	if (i->created) {
		instance_enter(i, CRUMB_DESTROY, NULL);
		i->module->abi->destroy(i->inst);
		instance_check_robbed(i);
		crumb_leave(i->env->crumb, CRUMB_LOOP);
		crumb_use(i->env->crumb, i->module->name, false);
	}
	instance_drop_timers(i);
	instance_drop_posts(i);
	instance_drop_fragments(i);
	instance_drop_settings(i);
	free(i);
}

struct instance *instance_free(struct instance *i)
{
	if (!i)
		return NULL;
	if (i->committed && HAS(i->policy, stop)) {
		NOTIFY(i, CRUMB_STOP, i->policy->stop);
	}
	i->closing = true;
	instance_drop_timers(i);
	instance_drop_posts(i);
	instance_drop_wishes(i);
	if (i->env->evict)
		i->env->evict->forget(i, i->env->arg);
	if (!i->jobs)
		instance_finish(i);
	return NULL;
}

DEFINE_GETTER(instance_module, struct module *, i->module)
DEFINE_GETTER(instance_name, const char *, i->module->name)
DEFINE_GETTER(instance_prefixes, const struct prefixes *,
	      i->env->cache ? cache_prefixes(i->env->cache) : NULL)
DEFINE_GETTER(instance_role, uint32_t, i->role->kind)
DEFINE_GETTER(instance_handles_events, bool, HAS(i->policy, event))
DEFINE_GETTER(instance_handles_starts, bool, instance_handles_events(i) && !i->ignores_starts)

bool instance_knows(const struct instance *i, uint32_t minor)
{
	return i->module->abi_minor >= minor;
}

DEFINE_GETTER(instance_jobs, unsigned, i->jobs)
DEFINE_GETTER(instance_failures, uint64_t, i->n_failures)
DEFINE_GETTER(instance_foreign_calls, uint32_t, __atomic_load_n(&i->n_foreign, __ATOMIC_RELAXED))
DEFINE_GETTER(instance_number, uint32_t, i->number)

/* ---- configuration --------------------------------------------------------------------------- */

int instance_prepare(struct instance *i, rp_cfg cfg, struct rp_plan **ret_plan, struct err *err)
{
	*ret_plan = NULL;
	instance_enter(i, CRUMB_PREPARE, NULL);
	int r = instance_leave(i, CRUMB_PREPARE, i->prepare(i->inst, cfg, ret_plan), err);
	if (r)
		*ret_plan = NULL; /* the module owns a refused plan */
	return r;
}

void instance_commit(struct instance *i, struct rp_plan *plan)
{
	assert(i->created && i->commit);
	instance_enter(i, CRUMB_COMMIT, NULL);
	i->committed = true;
	i->ignores_starts = false;
	i->commit(i->inst, plan);
	(void)instance_leave(i, CRUMB_COMMIT, 0, NULL);
}

void instance_abort(struct instance *i, struct rp_plan *plan)
{
	NOTIFY(i, CRUMB_ABORT, i->abort, plan);
}

/* ---- policies -------------------------------------------------------------------------------- */

static rp_txn running_txn(struct instance *i)
{
	assert(cache_running_txn(i->env->cache));
	i->txn = cache_running_txn(i->env->cache);
	return i->txn;
}

int instance_sync(struct instance *i, struct err *err)
{
	assert(i->policy && i->created);
	return CALL(i, policy, sync, CRUMB_SYNC, NULL, err, running_txn(i));
}

int instance_allocate(struct instance *i, struct ctr *ctr, struct err *err)
{
	assert(i->policy && i->created);
	return CALL(i, policy, allocate, CRUMB_ALLOCATE, ctr->full_name, err, running_txn(i),
		    ctr->handle);
}

int instance_update(struct instance *i, struct ctr *ctr, struct err *err)
{
	assert(i->policy && i->created);
	return CALL(i, policy, update, CRUMB_UPDATE, ctr->full_name, err, running_txn(i),
		    ctr->handle);
}

DEFINE_CTR_CALL(instance_unmanaged, policy, unmanaged, CRUMB_ALLOCATE, running_txn(i), ctr->handle)

int instance_release(struct instance *i, struct ctr *ctr, struct err *err)
{
	bool claim = ctr->device && instance_has_devices(i);
	assert((i->policy || claim) && i->created);
	instance_enter(i, CRUMB_RELEASE, ctr->full_name);
	return instance_leave(i, CRUMB_RELEASE,
			      (claim ? i->devices->release
				     : i->policy->release)(i->inst, running_txn(i), ctr->handle),
			      err);
}

DEFINE_GETTER(instance_admits, bool, HAS(i->policy, admit_pod))
DEFINE_GETTER(instance_follows_pods, bool,
	      (HAS(i->policy, admit_pod)) || (HAS(i->policy, pod_removed)))

int instance_admit_pod(struct instance *i, struct pod *pod, struct err *err)
{
	return CALL_OPTIONAL(i, policy, admit_pod, CRUMB_ADMIT, pod->name, err, running_txn(i),
			     pod->handle);
}

int instance_pod_removed(struct instance *i, struct pod *pod, struct err *err)
{
	return CALL_OPTIONAL(i, policy, pod_removed, CRUMB_POD_REMOVED, pod->name, err,
			     running_txn(i), pod->handle);
}

int instance_event(struct instance *i, const struct rp_event *ev, struct err *err)
{
	if (!instance_handles_events(i))
		return 0;
	const struct ctr *ctr = cache_ctr_of(i->env->cache, ev->object);
	instance_enter(i, CRUMB_EVENT, ctr ? ctr->full_name : NULL);
	int32_t r = i->policy->event(i->inst, running_txn(i), ev);
	if (ev->type == RP_EVENT_STARTED && instance_knows(i, 3))
		i->ignores_starts = r == RP_IGNORED;
	return instance_leave(i, CRUMB_EVENT, r, err);
}

/* Calls rolled_back() only if the policy was called in this transaction: otherwise it would undo
 * the previous one. */
int instance_rolled_back(struct instance *i)
{
	if (i->txn != cache_last_txn(i->env->cache))
		return 0;
	if (!(HAS(i->policy, rolled_back)))
		return RP_RESYNC;
	instance_enter(i, CRUMB_ROLLED_BACK, NULL);
	int32_t r = i->policy->rolled_back(i->inst);
	crumb_leave(i->env->crumb, CRUMB_LOOP);
	return r ? RP_RESYNC : 0;
}

DEFINE_SINK_CALL(instance_zones, rp_zone_sink, zones, zones, CRUMB_ZONES)
DEFINE_SINK_CALL(instance_collect, rp_metric_sink, metrics, collect, CRUMB_METRICS)
DEFINE_SINK_CALL(instance_extended, rp_extended_sink, extended, extended, CRUMB_ZONES)

int instance_allocatable(struct instance *i, struct rp_idset *ret, struct err *err)
{
	if (!(HAS(i->allocation, allocatable)))
		return 0;
	rp_idset_clear(ret);
	int r = CALL(i, allocation, allocatable, CRUMB_ZONES, NULL, err, ret);
	if (!r && ret->nw > RP_IDSET_WORDS)
		return err_set(err, -EBADMSG,
			       "module %s reports allocatable CPUs in a set of %u words, at most "
			       "%u are accepted",
			       i->module->name, ret->nw, (unsigned)RP_IDSET_WORDS);
	return r ? r : 1;
}

int instance_memory(struct instance *i, struct ctr *ctr, const struct rp_memory_sink *sink,
		    struct err *err)
{
	return CALL_OPTIONAL(i, allocation, memory, CRUMB_ZONES, ctr->full_name, err, ctr->handle,
			     sink);
}

bool instance_owns_device(const struct instance *i, const char *device)
{
	const char *name = instance_name(i);
	size_t n = strlen(name);
	return i->controller && instance_has_devices(i) && strncmp(device, name, n) == 0 &&
	       device[n] == '-';
}

DEFINE_GETTER(instance_has_devices, bool,
	      HAS(i->devices, release) && i->devices->devices && i->devices->allocate)
DEFINE_SINK_CALL(instance_devices, rp_devices_sink, devices, devices, CRUMB_ZONES)

int instance_device_allocate(struct instance *i, struct ctr *claim, struct err *err)
{
	return CALL(i, devices, allocate, CRUMB_ALLOCATE, claim->full_name, err, running_txn(i),
		    claim->handle, claim->device);
}

int instance_save(struct instance *i, const void **ret, uint32_t *ret_size, struct err *err)
{
	*ret = NULL;
	*ret_size = 0;
	if (!(HAS(i->state, save)))
		return 0;
	int r = CALL(i, state, save, CRUMB_STATE_SAVE, NULL, err, ret, ret_size);
	if (!r && *ret_size > RP_STATE_MAX)
		return err_set(err, -E2BIG, "module %s saves %u bytes of state, the limit is %u",
			       i->module->name, *ret_size, RP_STATE_MAX);
	return r;
}

int instance_load(struct instance *i, const void *data, uint32_t size, struct err *err)
{
	return CALL_OPTIONAL(i, state, load, CRUMB_STATE_LOAD, NULL, err, data, size);
}

/* ---- controllers ----------------------------------------------------------------------------- */

int instance_start(struct instance *i, struct err *err)
{
	return i->controller ? CALL(i, controller, start, CRUMB_START, NULL, err) : 0;
}

void instance_stop(struct instance *i)
{
	if (i->controller)
		NOTIFY(i, CRUMB_STOP, i->controller->stop);
}

DEFINE_CTR_CALL(instance_pre_create, controller, pre_create, CRUMB_PRE_CREATE, running_txn(i),
		ctr->handle)
DEFINE_CTR_CALL(instance_post_start, controller, post_start, CRUMB_POST_START, ctr->handle)

int instance_post_update(struct instance *i, struct ctr *ctr, uint32_t changed, struct err *err)
{
	return CALL_OPTIONAL(i, controller, post_update, CRUMB_POST_UPDATE, ctr->full_name, err,
			     ctr->handle, changed);
}

DEFINE_CTR_CALL(instance_post_stop, controller, post_stop, CRUMB_POST_STOP, ctr->handle)
DEFINE_GETTER(instance_takes, uint32_t, RP_HAS(i->controller, takes) ? i->controller->takes : 0)

void instance_controller_sync(struct instance *i)
{
	if (HAS(i->controller, sync))
		NOTIFY(i, CRUMB_SYNC, i->controller->sync);
}

void instance_measure(struct instance *i)
{
	if (HAS(i->controller, measure))
		NOTIFY(i, CRUMB_METRICS, i->controller->measure);
}

void instance_controller_timer(struct instance *i, uint64_t cookie)
{
	if (HAS(i->controller, timer))
		NOTIFY(i, CRUMB_EVENT, i->controller->timer, cookie);
}

/* ---- decisions on single figures ------------------------------------------------------------- */

bool instance_decides(const struct instance *i, const char *kind)
{
	if (!(HAS(i->decision, decide)) || !i->decision->kinds)
		return false;
	for (const char *const *k = i->decision->kinds; *k; k++)
		if (str_eq(*k, kind))
			return true;
	return false;
}

int instance_decide(struct instance *i, const struct rp_question *question,
		    const struct rp_answer *answer, struct err *err)
{
	return CALL(i, decision, decide, CRUMB_CALCULATE, question->kind, err, question, answer);
}

/* ---- calculators ----------------------------------------------------------------------------- */

DEFINE_GETTER(instance_wants_forecast, bool, (i->calculator->flags & RP_CALCULATOR_FORECAST) != 0)
DEFINE_GETTER(instance_resources, const char *const *, i->calculator->resources)
DEFINE_GETTER(instance_annotations, const char *const *, i->calculator->annotations)
DEFINE_SINK_CALL(instance_calculate, rp_nr_sink, calculator, calculate, CRUMB_CALCULATE)

int instance_reset(struct instance *i, const char *message, const struct rp_nr_sink *out,
		   bool *ret_default, struct err *err)
{
	*ret_default = !(HAS(i->calculator, reset));
	if (*ret_default)
		return 0;
	return CALL(i, calculator, reset, CRUMB_CALCULATE, "reset", err, message, out);
}

int instance_apply(struct instance *i, const struct rp_nr_edit *node, struct err *err)
{
	return CALL_OPTIONAL(i, calculator, apply, CRUMB_CALCULATE, "apply", err, node);
}

bool instance_need_sync(struct instance *i, const struct rp_nr_edit *old_node,
			const struct rp_nr_edit *new_node)
{
	if (!(HAS(i->calculator, need_sync)))
		return false;
	instance_enter(i, CRUMB_CALCULATE, "need_sync");
	int32_t r = i->calculator->need_sync(i->inst, old_node, new_node);
	(void)instance_leave(i, CRUMB_CALCULATE, 0, NULL);
	return r > 0;
}

bool instance_meta_changed(struct instance *i, const char *key, const char *old_text,
			   const char *new_text)
{
	if (!(HAS(i->calculator, meta_changed)))
		return !old_text || !new_text ? old_text != new_text
					      : strcmp(old_text, new_text) != 0;
	instance_enter(i, CRUMB_CALCULATE, "meta_changed");
	int32_t r = i->calculator->meta_changed(i->inst, key, old_text, new_text);
	(void)instance_leave(i, CRUMB_CALCULATE, 0, NULL);
	return r > 0;
}
