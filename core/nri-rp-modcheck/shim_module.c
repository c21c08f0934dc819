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
	int32_t (*prepare)(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan);
	void (*commit)(struct rp_instance *inst, struct rp_plan *plan);
	void (*abort)(struct rp_instance *inst, struct rp_plan *plan);
	/* Tables of the module, and their covers. */
	const struct rp_policy *policy;
	const struct rp_controller *controller;
	const struct rp_zones *zones;
	const struct rp_extended *extended;
	const struct rp_allocation *allocation;
	const struct rp_devices *devices;
	const struct rp_metrics *metrics;
	const struct rp_state *state;
	struct rp_policy our_policy;
	struct rp_controller our_controller;
	const struct rp_calculator *calculator;
	struct rp_calculator our_calculator;
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
#define JUDGE_BY(judge, c, name, call)                                                             \
	do {                                                                                       \
		struct begun begun_ = shim_module_begin(c, name);                                  \
		return judge(c, begun_, call);                                                     \
	} while (0)
#define JUDGE(c, name, call) JUDGE_BY(shim_module_judge, c, name, call)
#define TIME(c, name, call)                                                                        \
	do {                                                                                       \
		struct begun begun_ = shim_module_begin(c, name);                                  \
		call;                                                                              \
		shim_module_end(c, begun_);                                                        \
	} while (0)

/* ---- configuration, for all kinds ------------------------------------------------------------ */

static int32_t g_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "prepare", c->prepare(c->real, cfg, ret));
}

static void g_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct cover *c = cover_of(inst);
	TIME(c, "commit", c->commit(c->real, plan));
	if (RP_HAS(c->controller, takes))
		c->our_controller.takes = c->controller->takes;
}

static void g_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	struct cover *c = cover_of(inst);
	TIME(c, "abort", c->abort(c->real, plan));
}

/* ---- policies -------------------------------------------------------------------------------- */

static int32_t p_sync(struct rp_instance *inst, rp_txn txn)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_duty, c, "sync", c->policy->sync(c->real, txn));
}

static int32_t p_allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
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

static int32_t p_update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_decision, c, "update", c->policy->update(c->real, txn, ctr));
}

static int32_t p_release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_duty, c, "release", c->policy->release(c->real, txn, ctr));
}

static int32_t p_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	struct cover *c = cover_of(inst);
	struct rp_event told = *ev;
	if (c->shim->minor < 3) { /* members that an older host does not have */
		memset(&told.data, SHIM_POISON, sizeof told - offsetof(struct rp_event, data));
		told.size = offsetof(struct rp_event, data);
	}
	JUDGE_BY(shim_module_judge_policy, c, "event", c->policy->event(c->real, txn, &told));
}

static int32_t p_rolled_back(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	struct begun b = shim_module_begin(c, "rolled_back");
	int32_t result = c->policy->rolled_back(c->real);
	if (result && result != RP_RESYNC)
		shim_broken(c->shim, "rolled_back() returned %d: expected 0 or RP_RESYNC", result);
	shim_module_end(c, b);
	return result;
}

static void p_stop(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	TIME(c, "stop", c->policy->stop(c->real));
}

static int32_t p_unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_decision, c, "unmanaged",
		 c->policy->unmanaged(c->real, txn, ctr));
}

static int32_t p_admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_decision, c, "admit_pod",
		 c->policy->admit_pod(c->real, txn, pod));
}

static int32_t p_pod_removed(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	struct cover *c = cover_of(inst);
	JUDGE_BY(shim_module_judge_duty, c, "pod_removed",
		 c->policy->pod_removed(c->real, txn, pod));
}

#define LAST_IS(type, member)                                                                      \
	_Static_assert(sizeof(struct type) ==                                                      \
			       offsetof(struct type, member) + sizeof(void (*)(void)),             \
		       "cover new members of struct " #type)
LAST_IS(rp_policy, pod_removed);
LAST_IS(rp_controller, measure);

/* Covers a member if the module's table has it; the table keeps its size. */
#define COVER(theirs, ours, member, fn)                                                            \
	do {                                                                                       \
		if (RP_HAS(theirs, member) && (theirs)->member)                                    \
			(ours)->member = fn;                                                       \
	} while (0)

static const void *cover_policy(struct cover *c, const struct rp_policy *p)
{
	struct rp_policy *ours = &c->our_policy;
	if (!p)
		return NULL;
	c->policy = p;
	*ours = (struct rp_policy){.size = p->size < sizeof *ours ? p->size : sizeof *ours};
	COVER(p, c, prepare, p->prepare);
	COVER(p, ours, prepare, g_prepare);
	COVER(p, c, commit, p->commit);
	COVER(p, ours, commit, g_commit);
	COVER(p, c, abort, p->abort);
	COVER(p, ours, abort, g_abort);
	COVER(p, ours, sync, p_sync);
	COVER(p, ours, allocate, p_allocate);
	COVER(p, ours, update, p_update);
	COVER(p, ours, release, p_release);
	COVER(p, ours, event, p_event);
	COVER(p, ours, rolled_back, p_rolled_back);
	COVER(p, ours, stop, p_stop);
	COVER(p, ours, unmanaged, p_unmanaged);
	COVER(p, ours, admit_pod, p_admit_pod);
	COVER(p, ours, pod_removed, p_pod_removed);
	return ours;
}

/* ---- controllers ----------------------------------------------------------------------------- */

static int32_t c_start(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "start", c->controller->start(c->real));
}

static void c_stop(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	TIME(c, "stop", c->controller->stop(c->real));
}

static int32_t c_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "pre_create", c->controller->pre_create(c->real, txn, ctr));
}

static int32_t c_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "post_start", c->controller->post_start(c->real, ctr));
}

static int32_t c_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "post_update", c->controller->post_update(c->real, ctr, changed));
}

static int32_t c_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "post_stop", c->controller->post_stop(c->real, ctr));
}

static void c_sync(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	TIME(c, "sync", c->controller->sync(c->real));
}

static void c_timer(struct rp_instance *inst, uint64_t cookie)
{
	struct cover *c = cover_of(inst);
	TIME(c, "timer", c->controller->timer(c->real, cookie));
}

static void c_measure(struct rp_instance *inst)
{
	struct cover *c = cover_of(inst);
	TIME(c, "measure", c->controller->measure(c->real));
}

static const void *cover_controller(struct cover *c, const struct rp_controller *k)
{
	struct rp_controller *ours = &c->our_controller;
	if (!k)
		return NULL;
	c->controller = k;
	*ours = (struct rp_controller){.size = k->size < sizeof *ours ? k->size : sizeof *ours};
	if (RP_HAS(k, takes))
		ours->takes = k->takes;
	COVER(k, c, prepare, k->prepare);
	COVER(k, ours, prepare, g_prepare);
	COVER(k, c, commit, k->commit);
	COVER(k, ours, commit, g_commit);
	COVER(k, c, abort, k->abort);
	COVER(k, ours, abort, g_abort);
	COVER(k, ours, start, c_start);
	COVER(k, ours, stop, c_stop);
	COVER(k, ours, pre_create, c_pre_create);
	COVER(k, ours, post_start, c_post_start);
	COVER(k, ours, post_update, c_post_update);
	COVER(k, ours, post_stop, c_post_stop);
	COVER(k, ours, sync, c_sync);
	COVER(k, ours, timer, c_timer);
	COVER(k, ours, measure, c_measure);
	return ours;
}

/* ---- calculators ----------------------------------------------------------------------------- */

static int32_t n_calculate(struct rp_instance *inst, const struct rp_nr_sink *out)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "calculate", c->calculator->calculate(c->real, out));
}

static int32_t n_reset(struct rp_instance *inst, const char *message, const struct rp_nr_sink *out)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "reset", c->calculator->reset(c->real, message, out));
}

static int32_t n_apply(struct rp_instance *inst, const struct rp_nr_edit *node)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "apply", c->calculator->apply(c->real, node));
}

/* Returns the module's result, of which 1 is valid in this function and the next. */
static int32_t n_need_sync(struct rp_instance *inst, const struct rp_nr_edit *old_node,
			   const struct rp_nr_edit *new_node)
{
	const struct cover *c = cover_of(inst);
	return c->calculator->need_sync(c->real, old_node, new_node);
}

static int32_t n_meta_changed(struct rp_instance *inst, const char *key, const char *old_text,
			      const char *new_text)
{
	const struct cover *c = cover_of(inst);
	return c->calculator->meta_changed(c->real, key, old_text, new_text);
}

LAST_IS(rp_calculator, meta_changed);

static const void *cover_calculator(struct cover *c, const struct rp_calculator *n)
{
	struct rp_calculator *ours = &c->our_calculator;
	if (!n)
		return NULL;
	c->calculator = n;
	*ours = (struct rp_calculator){.size = n->size < sizeof *ours ? n->size : sizeof *ours,
				       .flags = n->flags};
	COVER(n, c, prepare, n->prepare);
	COVER(n, ours, prepare, g_prepare);
	COVER(n, c, commit, n->commit);
	COVER(n, ours, commit, g_commit);
	COVER(n, c, abort, n->abort);
	COVER(n, ours, abort, g_abort);
	COVER(n, ours, resources, n->resources);
	COVER(n, ours, annotations, n->annotations);
	COVER(n, ours, calculate, n_calculate);
	COVER(n, ours, reset, n_reset);
	COVER(n, ours, apply, n_apply);
	COVER(n, ours, need_sync, n_need_sync);
	COVER(n, ours, meta_changed, n_meta_changed);
	return ours;
}

/* ---- services for all kinds ------------------------------------------------------------------ */

static int32_t r_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "zones", c->zones->zones(c->real, sink));
}

static int32_t r_extended(struct rp_instance *inst, const struct rp_extended_sink *sink)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "extended", c->extended->extended(c->real, sink));
}

static int32_t r_allocatable(struct rp_instance *inst, struct rp_idset *ret)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "allocatable", c->allocation->allocatable(c->real, ret));
}

static int32_t r_memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink)
{
	struct cover *c = cover_of(inst);
	if (!RP_HAS(c->allocation, memory) || !c->allocation->memory)
		return 0;
	JUDGE(c, "memory", c->allocation->memory(c->real, ctr, sink));
}

static int32_t r_devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "devices", c->devices->devices(c->real, sink));
}

static int32_t r_claim(struct rp_instance *inst, rp_txn txn, rp_ctr claim, const char *device)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "allocate of a claim", c->devices->allocate(c->real, txn, claim, device));
}

static int32_t r_unclaim(struct rp_instance *inst, rp_txn txn, rp_ctr claim)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "release of a claim", c->devices->release(c->real, txn, claim));
}

static int32_t r_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "collect", c->metrics->collect(c->real, sink));
}

static int32_t r_save(struct rp_instance *inst, const void **ret, uint32_t *ret_size)
{
	struct cover *c = cover_of(inst);
	JUDGE(c, "save", c->state->save(c->real, ret, ret_size));
}

/* Calls load(), which may refuse a state without calling fail(). */
static int32_t r_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct cover *c = cover_of(inst);
	struct begun b = shim_module_begin(c, "load");
	c->shim->host_failed = true;
	return shim_module_judge(c, b, c->state->load(c->real, data, size));
}

static const struct rp_zones our_zones = {.size = sizeof our_zones, .zones = r_zones};
static const struct rp_extended our_extended = {.size = sizeof our_extended,
						.extended = r_extended};
static const struct rp_allocation our_allocation = {
	.size = sizeof our_allocation, .allocatable = r_allocatable, .memory = r_memory};
static const struct rp_devices our_devices = {.size = sizeof our_devices,
					      .devices = r_devices,
					      .allocate = r_claim,
					      .release = r_unclaim};
static const struct rp_metrics our_metrics = {.size = sizeof our_metrics, .collect = r_collect};
static const struct rp_state our_state = {.size = sizeof our_state, .save = r_save, .load = r_load};

/* ---- the instance ---------------------------------------------------------------------------- */

static const void *service_of(struct cover *c, const char *id)
{
	const void *theirs = c->shim->real->service(c->real, id);
	if (str_eq(id, RP_POLICY_1))
		return cover_policy(c, theirs);
	if (str_eq(id, RP_CONTROLLER_1))
		return cover_controller(c, theirs);
	if (str_eq(id, RP_CALCULATOR_1))
		return cover_calculator(c, theirs);
	if (str_eq(id, RP_ZONES_1)) {
		c->zones = theirs;
		return RP_HAS(c->zones, zones) && c->zones->zones ? &our_zones : NULL;
	}
	if (str_eq(id, RP_EXTENDED_1)) {
		c->extended = theirs;
		return RP_HAS(c->extended, extended) && c->extended->extended ? &our_extended
									      : NULL;
	}
	if (str_eq(id, RP_ALLOCATION_1)) {
		c->allocation = theirs;
		return RP_HAS(c->allocation, allocatable) && c->allocation->allocatable
			       ? &our_allocation
			       : NULL;
	}
	if (str_eq(id, RP_DEVICES_1)) {
		c->devices = theirs;
		return RP_HAS(c->devices, release) ? &our_devices : NULL;
	}
	if (str_eq(id, RP_METRICS_1)) {
		c->metrics = theirs;
		return RP_HAS(c->metrics, collect) && c->metrics->collect ? &our_metrics : NULL;
	}
	if (str_eq(id, RP_STATE_1)) {
		c->state = theirs;
		return RP_HAS(c->state, load) && c->state->save && c->state->load ? &our_state
										  : NULL;
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
