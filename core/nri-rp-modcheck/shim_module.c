/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of the module's functions: each call is measured, and its results are checked by the rules
 * of <nri-rp/module.h>. */
#include "core/nri-rp-modcheck/shim_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

/* The instance as the host sees it. */
struct cover {
	struct shim *shim;
	struct instance *host;
	struct rp_instance *real;
	/* Tables of the module, and their copies with covers for the host. */
#define TABLE(name)                                                                                \
	const struct rp_##name *name;                                                              \
	struct rp_##name our_##name
	TABLE(policy);
	TABLE(controller);
	TABLE(calculator);
	TABLE(zones);
	TABLE(extended);
	TABLE(allocation);
	TABLE(devices);
	TABLE(metrics);
	TABLE(state);
};

static struct cover *cover_of(struct rp_instance *inst)
{
	return (struct cover *)inst;
}

struct rp_instance *shim_real(struct rp_instance *inst)
{
	return cover_of(inst)->real;
}

/* ---- time ------------------------------------------------------------------------------------ */

struct begun {
	uint64_t wall_ns, cpu_ns;
	long waits;
};

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
}

static struct begun shim_module_now(void)
{
	struct rusage u;
	(void)getrusage(RUSAGE_THREAD, &u);
	return (struct begun){clock_ns(), ns_of(u.ru_utime) + ns_of(u.ru_stime), u.ru_nvcsw};
}

/* Returns the duration of a call. Other processes may have used the CPU, so wall time counts only
 * if the call has waited for something; otherwise CPU time. */
static uint64_t shim_module_taken(struct begun b)
{
	struct begun end = shim_module_now();
	return end.waits != b.waits ? end.wall_ns - b.wall_ns : end.cpu_ns - b.cpu_ns;
}

static struct begun shim_module_begin(struct cover *c, const char *call)
{
	c->shim->call = call;
	c->shim->host_failed = false;
	return shim_module_now();
}

static void shim_module_end(struct cover *c, struct begun b)
{
	struct scene *scene = c->shim->scene;
	uint64_t ns = shim_module_taken(b);
	scene->n_calls++;
	scene->total_ns += ns;
	if (ns > scene->slowest_ns) {
		scene->slowest_ns = ns;
		(void)snprintf(scene->slowest, sizeof scene->slowest, "%s()%s%s", c->shim->call,
			       scene->doing[0] ? " " : "", scene->doing);
	}
	c->shim->call = NULL;
}

/* ---- results --------------------------------------------------------------------------------- */

static int32_t shim_module_judge(struct cover *c, struct begun b, int32_t result)
{
	struct shim *s = c->shim;
	if (result > 0)
		shim_broken(s, "%s() returned %d: success is 0, errors are negative", s->call,
			    result);
	if (result < 0 && !s->host_failed && !c->host->failed.text[0])
		shim_broken(s, "%s() returned %d without an error text: call fail() first", s->call,
			    result);
	shim_module_end(c, b);
	return result;
}

/* Judges a function of a policy, which has to return one of the ABI's codes. */
static int32_t shim_module_judge_policy(struct cover *c, struct begun b, int32_t result)
{
	const char *call = c->shim->call;
	(void)shim_module_judge(c, b, result);
	if (result < 0 && !shim_may_return(result))
		shim_broken(c->shim, "%s returned %d, which is not an RP_E code", call, result);
	return result;
}

/* Judges a function that may refuse. In a rehearsal it always does. */
static int32_t shim_module_judge_decision(struct cover *c, struct begun b, int32_t result)
{
	result = shim_module_judge_policy(c, b, result);
	if (!result && c->shim->rehearses)
		return err_set(&c->host->failed, -RP_EBUSY, "a rehearsal");
	return result;
}

/* Judges a function that may fail only if the host does. */
static int32_t shim_module_judge_duty(struct cover *c, struct begun b, int32_t result)
{
	const char *call = c->shim->call;
	bool excused = c->shim->host_failed;
	(void)shim_module_judge_policy(c, b, result);
	if (result < 0 && !excused)
		shim_broken(c->shim, "%s() must not fail: %s", call, c->host->failed.text);
	return result;
}

/* `call` is evaluated between the two readings of the clock. */
#define JUDGE(judge, c, name, call)                                                                \
	do {                                                                                       \
		struct begun begun_ = shim_module_begin(c, name);                                  \
		return shim_module_##judge(c, begun_, call);                                       \
	} while (0)
#define TIME(c, name, call)                                                                        \
	do {                                                                                       \
		struct begun begun_ = shim_module_begin(c, name);                                  \
		call;                                                                              \
		shim_module_end(c, begun_);                                                        \
	} while (0)
/* Defines the cover of a function of a table: COVER for functions whose result is judged,
 * COVER_VOID for the others. Parameters and arguments are those after the instance. */
#define WITH_INSTANCE(...) (struct rp_instance * inst, ##__VA_ARGS__)
#define COVER(judge, table, function, params, ...)                                                 \
	static int32_t table##_##function WITH_INSTANCE params                                     \
	{                                                                                          \
		struct cover *c = cover_of(inst);                                                  \
		JUDGE(judge, c, #function, c->table->function(c->real, ##__VA_ARGS__));            \
	}
#define COVER_VOID(table, function, params, ...)                                                   \
	static void table##_##function WITH_INSTANCE params                                        \
	{                                                                                          \
		struct cover *c = cover_of(inst);                                                  \
		TIME(c, #function, c->table->function(c->real, ##__VA_ARGS__));                    \
	}

/* ---- policies -------------------------------------------------------------------------------- */

#define COVER_COMMON(table)                                                                        \
	COVER(judge, table, prepare, (rp_cfg cfg, struct rp_plan * *ret), cfg, ret)                \
	COVER_VOID(table, abort, (struct rp_plan * plan), plan)

COVER_COMMON(policy)
COVER_VOID(policy, commit, (struct rp_plan * plan), plan)
COVER(judge_duty, policy, sync, (rp_txn txn), txn)

static int32_t policy_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	struct shim *s = c->shim;
	if (s->at_allocate)
		s->at_allocate(s, false);
	struct begun b = shim_module_begin(c, "allocate");
	int32_t result = c->policy->allocate(c->real, txn, ctr);
	s->allocate_ns = clock_ns() - b.wall_ns;
	result = shim_module_judge_decision(c, b, result);
	if (s->at_allocate)
		s->at_allocate(s, true);
	return result;
}

COVER(judge_decision, policy, update, (rp_txn txn, rp_ctr ctr), txn, ctr)
COVER(judge_duty, policy, release, (rp_txn txn, rp_ctr ctr), txn, ctr)

static int32_t policy_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	struct cover *c = cover_of(inst);
	struct rp_event told = *ev;
	if (c->shim->minor < 3) { /* members that an older host does not have */
		memset(&told.data, SHIM_POISON, sizeof told - offsetof(struct rp_event, data));
		told.size = offsetof(struct rp_event, data);
	}
	struct begun b = shim_module_begin(c, "event");
	int32_t result = c->policy->event(c->real, txn, &told);
	if (result == RP_IGNORED && ev->type == RP_EVENT_STARTED)
		result = 0;
	return shim_module_judge_policy(c, b, result);
}

static int32_t policy_rolled_back(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	struct begun b = shim_module_begin(c, "rolled_back");
	int32_t result = c->policy->rolled_back(c->real);
	if (result && result != RP_RESYNC)
		shim_broken(c->shim, "rolled_back() returned %d: expected 0 or RP_RESYNC", result);
	shim_module_end(c, b);
	return result;
}

COVER_VOID(policy, stop, ())
COVER(judge_decision, policy, unmanaged, (rp_txn txn, rp_ctr ctr), txn, ctr)
COVER(judge_decision, policy, admit_pod, (rp_txn txn, rp_pod pod), txn, pod)
COVER(judge_duty, policy, pod_removed, (rp_txn txn, rp_pod pod), txn, pod)

#define LAST_IS(type, member)                                                                      \
	_Static_assert(sizeof(struct type) ==                                                      \
			       offsetof(struct type, member) + sizeof(void (*)(void)),             \
		       "cover new members of struct " #type)
LAST_IS(rp_policy, pod_removed);

static const struct rp_policy policy_covers = {
	.prepare = policy_prepare,
	.commit = policy_commit,
	.abort = policy_abort,
	.sync = policy_sync,
	.allocate = policy_allocate,
	.update = policy_update,
	.release = policy_release,
	.event = policy_event,
	.rolled_back = policy_rolled_back,
	.stop = policy_stop,
	.unmanaged = policy_unmanaged,
	.admit_pod = policy_admit_pod,
	.pod_removed = policy_pod_removed,
};

/* ---- controllers ----------------------------------------------------------------------------- */

static void controller_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct cover *c = cover_of(inst);
	TIME(c, "commit", c->controller->commit(c->real, plan));
	if (RP_HAS(c->controller, takes))
		c->our_controller.takes = c->controller->takes;
}

COVER_COMMON(controller)
COVER(judge, controller, start, ())
COVER_VOID(controller, stop, ())
COVER(judge, controller, pre_create, (rp_txn txn, rp_ctr ctr), txn, ctr)
COVER(judge, controller, post_start, (rp_ctr ctr), ctr)
COVER(judge, controller, post_update, (rp_ctr ctr, uint32_t changed), ctr, changed)
COVER(judge, controller, post_stop, (rp_ctr ctr), ctr)
COVER_VOID(controller, sync, ())
COVER_VOID(controller, timer, (uint64_t cookie), cookie)
COVER_VOID(controller, measure, ())

LAST_IS(rp_controller, measure);

static const struct rp_controller controller_covers = {
	.prepare = controller_prepare,
	.commit = controller_commit,
	.abort = controller_abort,
	.start = controller_start,
	.stop = controller_stop,
	.pre_create = controller_pre_create,
	.post_start = controller_post_start,
	.post_update = controller_post_update,
	.post_stop = controller_post_stop,
	.sync = controller_sync,
	.timer = controller_timer,
	.measure = controller_measure,
};

/* ---- calculators ----------------------------------------------------------------------------- */

COVER_COMMON(calculator)
COVER_VOID(calculator, commit, (struct rp_plan * plan), plan)
COVER(judge, calculator, calculate, (const struct rp_nr_sink *out), out)
COVER(judge, calculator, reset, (const char *message, const struct rp_nr_sink *out), message, out)
COVER(judge, calculator, apply, (const struct rp_nr_edit *node), node)

/* Returns the module's result, of which 1 is valid in this function and the next. */
static int32_t calculator_need_sync(struct rp_instance *inst, const struct rp_nr_edit *old_node,
				    const struct rp_nr_edit *new_node)
{
	const struct cover *c = cover_of(inst);
	return c->calculator->need_sync(c->real, old_node, new_node);
}

static int32_t calculator_meta_changed(struct rp_instance *inst, const char *key,
				       const char *old_text, const char *new_text)
{
	const struct cover *c = cover_of(inst);
	return c->calculator->meta_changed(c->real, key, old_text, new_text);
}

LAST_IS(rp_calculator, meta_changed);

static const struct rp_calculator calculator_covers = {
	.prepare = calculator_prepare,
	.commit = calculator_commit,
	.abort = calculator_abort,
	.calculate = calculator_calculate,
	.reset = calculator_reset,
	.apply = calculator_apply,
	.need_sync = calculator_need_sync,
	.meta_changed = calculator_meta_changed,
};

/* ---- services for all kinds ------------------------------------------------------------------ */

COVER(judge, zones, zones, (const struct rp_zone_sink *sink), sink)
COVER(judge, extended, extended, (const struct rp_extended_sink *sink), sink)
COVER(judge, allocation, allocatable, (struct rp_idset * ret), ret)
COVER(judge, allocation, memory, (rp_ctr ctr, const struct rp_memory_sink *sink), ctr, sink)
COVER(judge, devices, devices, (const struct rp_devices_sink *sink), sink)

static int32_t devices_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr claim,
				const char *device)
{
	struct cover *c = cover_of(inst);
	JUDGE(judge, c, "allocate of a claim", c->devices->allocate(c->real, txn, claim, device));
}

static int32_t devices_release(struct rp_instance *inst, rp_txn txn, rp_ctr claim)
{
	struct cover *c = cover_of(inst);
	JUDGE(judge, c, "release of a claim", c->devices->release(c->real, txn, claim));
}

COVER(judge, metrics, collect, (const struct rp_metric_sink *sink), sink)
COVER(judge, state, save, (const void **ret, uint32_t *ret_size), ret, ret_size)

/* Calls load(), which may refuse a state without calling fail(). */
static int32_t state_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct cover *c = cover_of(inst);
	struct begun b = shim_module_begin(c, "load");
	c->shim->host_failed = true;
	return shim_module_judge(c, b, c->state->load(c->real, data, size));
}

static const struct rp_zones zones_covers = {.zones = zones_zones};
static const struct rp_extended extended_covers = {.extended = extended_extended};
static const struct rp_allocation allocation_covers = {.allocatable = allocation_allocatable,
						       .memory = allocation_memory};
static const struct rp_devices devices_covers = {
	.devices = devices_devices, .allocate = devices_allocate, .release = devices_release};
static const struct rp_metrics metrics_covers = {.collect = metrics_collect};
static const struct rp_state state_covers = {.save = state_save, .load = state_load};

/* ---- the instance ---------------------------------------------------------------------------- */

#define TABLE_ROW(id, name)                                                                        \
	{                                                                                          \
		id, &name##_covers, offsetof(struct cover, name),                                  \
			offsetof(struct cover, our_##name), sizeof(struct rp_##name)               \
	}
static const struct {
	const char *id;
	const void *covers;
	size_t theirs, ours, size;
} tables[] = {
	TABLE_ROW(RP_POLICY_1, policy),		TABLE_ROW(RP_CONTROLLER_1, controller),
	TABLE_ROW(RP_CALCULATOR_1, calculator), TABLE_ROW(RP_ZONES_1, zones),
	TABLE_ROW(RP_EXTENDED_1, extended),	TABLE_ROW(RP_ALLOCATION_1, allocation),
	TABLE_ROW(RP_DEVICES_1, devices),	TABLE_ROW(RP_METRICS_1, metrics),
	TABLE_ROW(RP_STATE_1, state),
};

/* Returns the module's table with covers, which has the size of the module's. */
static const void *service_of(struct cover *c, const char *id)
{
	const void *theirs = c->shim->real->service(c->real, id);
	for (unsigned i = 0; theirs && i < sizeof tables / sizeof *tables; i++) {
		uint32_t size;
		char *ours = (char *)c + tables[i].ours;
		if (!str_eq(id, tables[i].id))
			continue;
		memcpy((char *)c + tables[i].theirs, &theirs, sizeof theirs);
		memcpy(&size, theirs, sizeof size);
		size = size < tables[i].size ? size : (uint32_t)tables[i].size;
		memcpy(ours, theirs, size);
		memcpy(ours, &size, sizeof size);
		shim_put_covers(ours, tables[i].covers, size);
		return ours;
	}
	return theirs;
}

const void *shim_service(struct rp_instance *inst, const char *id)
{
	return service_of(cover_of(inst), id);
}

int32_t shim_create(struct shim *s, const struct rp_host *host, struct rp_instance **ret)
{
	struct cover *c = calloc(1, sizeof *c);
	if (!c)
		return -RP_ENOMEM;
	*c = (struct cover){.shim = s, .host = host->ctx};
	struct begun b = shim_module_begin(c, "create");
	int32_t r = s->real->create(host, &c->real);
	if (!r && !c->real)
		shim_broken(s, "create() returned 0 and no instance");
	r = shim_module_judge(c, b, r);
	if (r) {
		free(c);
		return r;
	}
	*ret = (struct rp_instance *)c;
	return 0;
}

void shim_destroy(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	TIME(c, "destroy", c->shim->real->destroy(c->real));
	free(c);
}
