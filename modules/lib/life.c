/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of policies that use struct life_ops, walks over containers, and the saved
 * state. */
#include <nri-rp/lib/life.h>

#include <stdlib.h>

#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief_owned.h>
#include <nri-rp/lib/section.h>

static struct life *life_of(struct rp_instance *inst)
{
	return (struct life *)inst;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void life_free_plan(const struct life_ops *ops, struct rp_plan *p)
{
	if (ops->plan_free) {
		ops->plan_free(p);
		return;
	}
	if (p)
		ops->plan_fini(p);
	free(p);
}

int32_t life_plan_new(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		      struct rp_plan **ret)
{
	const struct life *l = life_of(inst);
	struct rp_plan *p = calloc(1, l->ops->plan_size);
	if (!p)
		return modhost_no_memory(&l->h);
	int32_t r = l->ops->fill(inst, section, past, p);
	if (!r && l->ops->check && !past->hotplug)
		r = l->ops->check(inst, p);
	if (r)
		life_free_plan(l->ops, p);
	else
		*ret = p;
	return r;
}

static int32_t life_make_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	const struct life *l = life_of(inst);
	struct reserve_past past = {.hotplug = l->lenient};
	if (l->ops->plan)
		return l->ops->plan(inst, section, ret);
	int32_t r = l->ops->past ? life_past(inst, &past) : 0;
	return r ? r : life_plan_new(inst, section, &past, ret);
}

static bool was_active(const struct life *l, uint64_t digest)
{
	return digest == l->digest || digest == l->remembered_digest;
}

/* Plans again for a section that was active before, with the CPUs that are left. `why`: the
 * sentence of the first attempt. */
static int32_t plan_with_rest(struct rp_instance *inst, rp_cfg cfg, const char *why,
			      struct rp_plan **ret)
{
	struct life *l = life_of(inst);
	l->lenient = true;
	int32_t r = life_make_plan(inst, cfg, ret);
	l->lenient = false;
	if (!r)
		modhost_log(&l->h, RP_LOG_WARNING, 0,
			    "%s; this configuration was active before, so it is used with the CPUs "
			    "that are online",
			    why);
	return r;
}

/* Checks a section. A section that was active before is accepted whatever the online CPUs are: its
 * containers run, and a refusal would leave them without a policy. */
static int32_t prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret)
{
	struct life *l = life_of(inst);
	char why[MODHOST_TEXT_MAX] = "";
	char *outer = l->h.why;
	l->next_section = cfg;
	l->next_digest = section_digest(&l->h, cfg);
	if (!was_active(l, l->next_digest))
		return life_make_plan(inst, cfg, ret);
	l->h.why = why;
	int32_t r = life_make_plan(inst, cfg, ret);
	l->h.why = outer;
	return r && r != -RP_ENOMEM ? plan_with_rest(inst, cfg, why, ret) : r;
}

static void put_in_force(struct rp_instance *inst, struct rp_plan *plan)
{
	struct life *l = life_of(inst);
	if (plan == l->plan)
		return;
	if (l->plan && l->ops->leave)
		l->ops->leave(inst);
	life_free_plan(l->ops, l->plan);
	l->plan = plan;
	if (l->ops->enter)
		l->ops->enter(inst);
}

static void commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct life *l = life_of(inst);
	put_in_force(inst, plan);
	l->changed = true;
	l->section = l->next_section;
	l->committed_digest = l->next_digest;
}

static void life_drop(struct rp_instance *inst, struct rp_plan *plan)
{
	life_free_plan(life_of(inst)->ops, plan);
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Returns the state of relief, or NULL. */
static struct relief *life_relief(struct rp_instance *inst)
{
	uint32_t offset = life_of(inst)->ops->relief;
	return offset ? (struct relief *)(void *)((char *)inst + offset) : NULL;
}

static int32_t no_plan(const struct life *l)
{
	return modhost_fail(&l->h, -RP_EAGAIN, "no configuration is active");
}

/* Begins a callback. A transaction may have several callbacks, which are rolled back together, so
 * ops.begin runs only once. */
static int32_t life_do_begin(struct rp_instance *inst, rp_txn txn)
{
	struct life *l = life_of(inst);
	if (!l->plan)
		return no_plan(l);
	struct relief *relief = life_relief(inst);
	if (relief && l->txn != txn)
		relief_begin(relief);
	if (l->ops->begin && l->txn != txn)
		l->ops->begin(inst);
	l->txn = txn;
	return 0;
}

/* Stages what the shared part derives from the placements of a callback. Returns r, or an error. */
static int32_t life_do_stage(struct rp_instance *inst, rp_txn txn, int32_t r, bool all)
{
	const struct life_part *part = life_of(inst)->ops->part;
	int32_t e = r >= 0 && part ? part->stage(inst, txn, all) : 0;
	return e < 0 ? e : r;
}

static int32_t life_do_done(struct rp_instance *inst, int32_t r)
{
	const struct life_ops *ops = life_of(inst)->ops;
	if (r >= 0 && ops->part)
		ops->part->done(inst);
	if (r >= 0 && ops->done)
		ops->done(inst);
	return r;
}

bool life_may_refuse(const struct rp_instance *inst)
{
	const struct life *l = (const struct life *)inst;
	return l->synced && l->changed && l->committed_digest != l->digest;
}

static int32_t sync(struct rp_instance *inst, rp_txn txn)
{
	struct life *l = life_of(inst);
	int32_t r = life_do_begin(inst, txn);
	l->waiting = false;
	if (!r)
		r = life_do_stage(inst, txn, l->ops->sync(inst, txn), true);
	if (r < 0)
		return r;
	if (l->last_sync.txn != txn)
		l->last_sync = (struct life_sync){txn, l->synced, l->changed, l->digest};
	l->synced = true;
	l->changed = false;
	l->digest = l->committed_digest;
	return life_do_done(inst, 0);
}

static bool is_left_alone(const struct life *l, const struct rp_ctr_info *info)
{
	return info->flags & RP_CTR_PRESERVE_CPU && !l->ops->sees_preserved;
}

/* Begins a transaction about one container and reads the container. */
static int32_t life_do_open(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			    struct rp_ctr_info *ret)
{
	int32_t r = life_do_begin(inst, txn);
	return r ? r : ctr_info(&life_of(inst)->h, ctr, ret);
}

static int32_t life_do_place(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			     int32_t (*op)(struct rp_instance *inst, rp_txn txn,
					   const struct rp_ctr_info *info))
{
	const struct life *l = life_of(inst);
	struct rp_ctr_info info;
	int32_t r = life_do_open(inst, txn, ctr, &info);
	if (r)
		return r;
	if (!is_left_alone(l, &info))
		return life_do_done(inst, life_do_stage(inst, txn, op(inst, txn, &info), false));
	modhost_note_line(&l->h, ctr, "annotated to keep its CPUs: unmanaged");
	return 0;
}

static int32_t allocate(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	return life_do_place(inst, txn, ctr, life_of(inst)->ops->place);
}

static int32_t update(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const struct life_ops *ops = life_of(inst)->ops;
	return life_do_place(inst, txn, ctr, ops->resize ? ops->resize : ops->place);
}

static int32_t unmanaged(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct life *l = life_of(inst);
	l->waiting = true;
	return l->ops->unmanaged ? life_do_place(inst, txn, ctr, l->ops->unmanaged) : 0;
}

static int32_t release(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	struct life *l = life_of(inst);
	struct rp_ctr_info info;
	if (!l->plan)
		return 0;
	int32_t r = life_do_begin(inst, txn);
	if (!r)
		r = ctr_info(&l->h, ctr, &info);
	l->leaving = ctr;
	if (!r)
		r = life_do_stage(inst, txn, l->ops->release(inst, txn, &info), false);
	r = life_do_done(inst, r);
	l->leaving = 0;
	return r;
}

static int32_t admit_pod(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	int32_t r = life_do_begin(inst, txn);
	return r ? r : life_of(inst)->ops->admit(inst, txn, pod);
}

static int32_t pod_removed(struct rp_instance *inst, rp_txn txn, rp_pod pod)
{
	struct life *l = life_of(inst);
	if (!l->plan)
		return 0;
	int32_t r = life_do_begin(inst, txn);
	return r ? r : l->ops->removed(inst, txn, pod);
}

static int32_t new_machine(struct rp_instance *inst, rp_txn txn)
{
	struct life *l = life_of(inst);
	struct rp_plan *plan;
	l->lenient = true;
	int32_t r =
		l->ops->look ? l->ops->look(inst, &plan) : life_make_plan(inst, l->section, &plan);
	l->lenient = false;
	if (r) {
		/* rolled_back() follows, and must not undo the previous transaction */
		(void)life_do_begin(inst, txn);
		return r;
	}
	put_in_force(inst, plan);
	return sync(inst, txn);
}

static int32_t event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	struct life *l = life_of(inst);
	if (!l->plan)
		return 0;
	if (ev->type == RP_EVENT_TOPOLOGY)
		return new_machine(inst, txn);
	const struct life_ops *ops = l->ops;
	if (ev->type == RP_EVENT_STARTED && !ops->started && !ops->part)
		return RP_IGNORED;
	int32_t r = life_do_begin(inst, txn);
	if (r)
		return r;
	if (ev->type == RP_EVENT_REBALANCE && ops->rebalance)
		r = ops->rebalance(inst, txn, ev->cookie);
	if (ev->type == RP_EVENT_PRESSURE && ops->pressure)
		r = ops->pressure(inst, txn, ev->object, ev->cookie);
	if (ev->type == RP_EVENT_STARTED && ops->started)
		r = ops->started(inst, txn, ev->object);
	if (ev->type == RP_EVENT_TIMER && ops->timer)
		r = ops->timer(inst, txn, ev->cookie);
	else if (ev->type == RP_EVENT_TIMER && ops->rebalance && ev->cookie == RELIEF_COOKIE)
		r = ops->rebalance(inst, txn, 0);
	if (ev->type == RP_EVENT_POSTED && ops->posted)
		r = ops->posted(inst, txn, ev);
	if (ev->type == RP_EVENT_RUNTIME && ops->runtime)
		r = ops->runtime(inst, txn);
	return life_do_done(inst, life_do_stage(inst, txn, r, false));
}

/* Restores the state before the last sync(), because its transaction was dropped and no container
 * was placed by it. */
static void forget_sync(struct life *l)
{
	if (!l->last_sync.txn || l->last_sync.txn != l->txn)
		return;
	l->synced = l->last_sync.synced;
	l->changed = l->last_sync.changed;
	l->digest = l->last_sync.digest;
	l->last_sync.txn = 0;
}

static int32_t rolled_back(struct rp_instance *inst)
{
	struct life *l = life_of(inst);
	l->waiting = true; /* a container may be waiting */
	forget_sync(l);
	struct relief *relief = life_relief(inst);
	if (l->plan && relief)
		relief_undo(relief);
	int32_t r = l->plan ? l->ops->rolled_back(inst) : 0;
	return l->plan && !r ? life_do_done(inst, 0) : r;
}

static void stop(struct rp_instance *inst)
{
	const struct life_ops *ops = life_of(inst)->ops;
	if (ops->part)
		ops->part->stop(inst);
	if (ops->stop)
		ops->stop(inst);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static int32_t life_visit(struct rp_instance *inst, rp_txn txn, rp_ctr ctr,
			  const struct life_walk *w)
{
	struct rp_ctr_info info;
	if (!ctr || ctr == w->except ||
	    (w->skip_owners && owners_first_of(w->skip_owners, ctr) != RP_IDSET_NONE))
		return 0;
	int32_t r = ctr_info(&life_of(inst)->h, ctr, &info);
	if (r || is_left_alone(life_of(inst), &info))
		return r;
	return w->each(inst, txn, &info, w);
}

int32_t life_walk(struct rp_instance *inst, rp_txn txn, struct life_walk w)
{
	struct life *l = life_of(inst);
	int32_t n = ctr_list(&l->h, &l->list, w.order), sum = 0;
	for (; n >= 0 && w.pass < (w.n_passes ? w.n_passes : 1); w.pass++)
		for (int32_t i = 0; i < n; i++) {
			int32_t r = life_visit(inst, txn, l->list.ctrs[i], &w);
			if (r < 0)
				return r;
			if (r > 0)
				l->list.ctrs[i] = 0;
			sum += r;
		}
	return n < 0 ? n : sum;
}

int32_t life_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except,
		   int32_t (*each)(struct rp_instance *inst, rp_txn txn,
				   const struct rp_ctr_info *info, const struct life_walk *w))
{
	struct life *l = life_of(inst);
	if (!l->waiting)
		return 0;
	l->waiting = false;
	return life_walk(
		inst, txn,
		(struct life_walk){.each = each, .order = RP_ORDER_SYNC, .except = except});
}

/* ---- reserved CPUs over restarts ------------------------------------------------------------- */

int32_t life_past(struct rp_instance *inst, struct reserve_past *ret)
{
	struct life *l = life_of(inst);
	int32_t r = 0;
	if (l->plan) {
		l->ops->past(inst, ret);
	} else {
		/* ctr_list() may move the array, so it must be called first */
		int32_t n = ctr_list(&l->h, &l->list, RP_ORDER_CREATED);
		r = reserve_first(&l->h, l->list.ctrs, n, &l->remembered, ret);
	}
	ret->hotplug = l->lenient;
	return r;
}

/*
 * Head of the saved state of a policy. Behind it are the output of reserve_save(), that of
 * relief_save(), and the state of ops.state. A state without the head was saved by a version that
 * saved only the first or the last of these.
 */
struct saved_head {
	uint32_t magic;
	uint16_t n_reserved, n_moved;
	uint64_t digest;
};
#define SAVED_MAGIC 0x4546494cu /* "LIFE" */

static int32_t save_own(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	const struct rp_state *own = life_of(inst)->ops->state;
	*ret_data = NULL;
	*ret_size = 0;
	return own ? own->save(inst, ret_data, ret_size) : 0;
}

/* Saves the state, with the reserved CPUs: CPUs may go offline and other keys might choose other
 * CPUs, but after a restart the same ones must be reserved. A policy's own state that leaves no
 * room for the head is saved alone. */
static int32_t save_state(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	struct life *l = life_of(inst);
	struct reserve_past past;
	struct saved_head head = {.magic = SAVED_MAGIC,
				  .digest = l->digest ? l->digest : l->remembered_digest};
	const struct relief *relief = life_relief(inst);
	uint8_t moves[RELIEF_SAVED_MAX];
	const void *own;
	uint32_t n_own;
	int32_t r = save_own(inst, &own, &n_own);
	if (r)
		return r;
	if (l->plan && l->ops->past)
		l->ops->past(inst, &past);
	else
		past = l->remembered;
	head.n_reserved = (uint16_t)reserve_save(&past, l->reserved_bytes);
	head.n_moved = relief ? (uint16_t)relief_save(&relief->moved, moves) : 0;
	*ret_data = own;
	*ret_size = n_own;
	if (own && n_own > RP_STATE_MAX - sizeof head - head.n_reserved - head.n_moved)
		return 0;
	bytes_reset(&l->saved_state);
	(void)bytes_put(&l->saved_state, &head, sizeof head);
	(void)bytes_put(&l->saved_state, l->reserved_bytes, head.n_reserved);
	(void)bytes_put(&l->saved_state, moves, head.n_moved);
	if (bytes_put(&l->saved_state, own, n_own) || l->saved_state.failed)
		return modhost_no_memory(&l->h);
	*ret_data = l->saved_state.data;
	*ret_size = l->saved_state.size;
	return 0;
}

static int32_t load_state(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct life *l = life_of(inst);
	struct saved_head head;
	struct bytes_left left = bytes_of(data, size);
	struct reserve_past past = l->remembered;
	struct relief *relief = life_relief(inst);
	bool headed = bytes_take(&left, &head, sizeof head) && head.magic == SAVED_MAGIC;
	if (!headed) {
		left = bytes_of(data, size);
		head = (struct saved_head){.n_reserved = l->ops->state ? 0 : (uint16_t)size};
	}
	const void *reserved = bytes_skip(&left, head.n_reserved);
	const void *moves = bytes_skip(&left, head.n_moved);
	if (left.failed ||
	    ((headed || head.n_reserved) && !reserve_load(reserved, head.n_reserved, &past)) ||
	    (relief && !relief_load(&l->h, moves, head.n_moved, &relief->moved)))
		return modhost_fail(&l->h, -RP_EINVAL, "saved state has another version");
	const struct rp_state *own = l->ops->state;
	uint32_t n = bytes_n_left(&left);
	int32_t r = own && n ? own->load(inst, left.at, n) : 0;
	if (r)
		return r;
	l->remembered = past;
	l->remembered_digest = head.digest;
	return l->plan && l->ops->reserve ? l->ops->reserve(inst) : 0;
}

static const struct rp_state life_state = {
	.size = sizeof(struct rp_state),
	.save = save_state,
	.load = load_state,
};

/* ---- allocatable resources ------------------------------------------------------------------- */

static int32_t allocatable(struct rp_instance *inst, struct rp_idset *ret)
{
	struct life *l = life_of(inst);
	if (!l->plan)
		return no_plan(l);
	l->ops->allocatable(inst, ret);
	return 0;
}

static int32_t memory(struct rp_instance *inst, rp_ctr ctr, const struct rp_memory_sink *sink)
{
	struct life *l = life_of(inst);
	return l->plan && l->ops->memory ? l->ops->memory(inst, ctr, sink) : 0;
}

static const struct rp_allocation allocation = {
	.size = sizeof(struct rp_allocation),
	.allocatable = allocatable,
	.memory = memory,
};

/* ---- devices for claims ---------------------------------------------------------------------- */

static int32_t life_devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	const struct life *l = life_of(inst);
	return l->plan ? l->ops->devices(inst, sink) : 0;
}

static int32_t life_claim(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *device)
{
	const struct life *l = life_of(inst);
	struct rp_ctr_info info;
	int32_t r = life_do_open(inst, txn, ctr, &info);
	if (r)
		return r;
	r = l->ops->claim(inst, txn, &info, device);
	return life_do_done(inst, life_do_stage(inst, txn, r, false));
}

static const struct rp_devices devices = {
	.size = sizeof(struct rp_devices),
	.devices = life_devices,
	.allocate = life_claim,
	.release = release,
};

/* ---- the module ------------------------------------------------------------------------------ */

/* A policy without `unmanaged` must not have the callback. */
#define CALLBACKS                                                                                  \
	.size = sizeof(struct rp_policy), .prepare = prepare, .commit = commit,                    \
	.abort = life_drop, .sync = sync, .allocate = allocate, .update = update,                  \
	.release = release, .event = event, .rolled_back = rolled_back, .stop = stop

static const struct rp_policy policy = {CALLBACKS, .unmanaged = unmanaged};
static const struct rp_policy policy_of_placed = {CALLBACKS};
static const struct rp_policy policy_of_pods = {CALLBACKS, .unmanaged = unmanaged,
						.admit_pod = admit_pod, .pod_removed = pod_removed};
static const struct rp_policy policy_of_sets = {CALLBACKS, .unmanaged = unmanaged,
						.pod_removed = pod_removed};

int32_t life_create(const struct rp_host *host, size_t size, const struct life_ops *ops,
		    struct rp_instance **ret)
{
	int32_t r = modhost_instance(host, size, MODHOST_POLICY, ret);
	if (r)
		return r;
	life_of(*ret)->ops = ops;
	r = ops->init ? ops->init(*ret) : 0;
	if (r)
		life_destroy(*ret);
	return r;
}

void life_destroy(struct rp_instance *inst)
{
	struct life *l = life_of(inst);
	if (l->ops->part)
		l->ops->part->fini(inst);
	if (l->ops->fini)
		l->ops->fini(inst);
	life_free_plan(l->ops, l->plan);
	if (life_relief(inst))
		relief_fini(life_relief(inst));
	ctr_list_free(&l->list);
	free(l->saved_state.data);
	free(inst);
}

static int32_t life_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	return life_of(inst)->plan ? life_of(inst)->ops->report_zones(inst, sink) : 0;
}

static int32_t life_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	return life_of(inst)->plan ? life_of(inst)->ops->report_metrics(inst, sink) : 0;
}

static const struct rp_zones life_report_zones = {.size = sizeof life_report_zones,
						  .zones = life_zones};
static const struct rp_metrics life_report_metrics = {.size = sizeof life_report_metrics,
						      .collect = life_metrics};

const void *life_service(const struct life_ops *ops, const char *id)
{
	const struct modhost_service services[] = {
		{RP_POLICY_1, ops->admit	      ? &policy_of_pods
			      : ops->leaves_unmanaged ? &policy_of_placed
			      : ops->removed	      ? &policy_of_sets
						      : &policy},
		{RP_SCHEMA_1, ops->schema},
		{RP_ZONES_1, ops->report_zones ? &life_report_zones : ops->zones},
		{RP_METRICS_1, ops->report_metrics ? &life_report_metrics : ops->metrics},
		{RP_STATE_1, &life_state},
		{RP_EXTENDED_1, ops->extended},
		{RP_ALLOCATION_1, ops->allocatable ? &allocation : NULL},
		{RP_DEVICES_1, ops->claim ? &devices : NULL},
		{NULL, NULL},
	};
	return modhost_service(services, id);
}
