/* SPDX-License-Identifier: Apache-2.0 */
/* Stages CPUs, memory and records of containers in the transaction. */
#include <nri-rp/lib/bytes.h>
#include "modules/cpuset/cpuset.h"

#define NAMED_GROUP 1u /* group in which annotated containers may share their CPUs */
#define RECORD_VERSION 2u

/* The largest record: keys are written with their NUL. */
#define RECORD_SIZE_MAX (sizeof(struct record) + 2 * (KEY_MAX + 1))

static bool record_parse(const struct rp_instance *inst, rp_ctr ctr, struct record *ret,
			 struct keys *ret_keys)
{
	struct bytes_left left = ctr_record_bytes(&inst->h, ctr);
	struct record rec;
	struct keys keys = KEYS_DEFAULT;
	if (!bytes_take(&left, &rec, sizeof rec) || rec.version != RECORD_VERSION ||
	    rec.class >= N_CLASSES)
		return false;
	if (rec.flags & RECORD_KEYS) {
		keys.named = bytes_take_text(&left);
		keys.forbidden = bytes_take_text(&left);
	}
	if (left.failed || bytes_n_left(&left))
		return false;
	*ret = rec;
	*ret_keys = keys;
	return true;
}

bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret)
{
	struct keys keys;
	*ret = (struct record){.class = CLASS_SHARED};
	return record_parse(inst, ctr, ret, &keys);
}

struct keys record_keys(const struct rp_instance *inst, rp_ctr ctr)
{
	struct record rec;
	struct keys keys;
	return record_parse(inst, ctr, &rec, &keys) ? keys : inst->plan->keys;
}

struct rules record_rules(const struct rp_instance *inst, rp_ctr ctr)
{
	struct record rec;
	if (!record_read(inst, ctr, &rec) || !(rec.flags & RECORD_RULES))
		return inst->plan->rules;
	return (struct rules){.needs_memory = rec.flags & RECORD_NEEDS_MEMORY,
			      .by_qos = rec.flags & RECORD_BY_QOS};
}

int32_t record_write(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     enum cpuset_class class)
{
	const struct keys *k = &c->keys;
	bool other = strcmp(k->named, KEYS_DEFAULT.named) != 0 ||
		     strcmp(k->forbidden, KEYS_DEFAULT.forbidden) != 0;
	const struct record rec = {RECORD_VERSION, (uint16_t) class,
				   RECORD_RULES | (c->forbids ? RECORD_FORBIDS : 0) |
					   (c->rules.needs_memory ? RECORD_NEEDS_MEMORY : 0) |
					   (c->rules.by_qos ? RECORD_BY_QOS : 0) |
					   (c->follows ? RECORD_FOLLOWS : 0) |
					   (other ? RECORD_KEYS : 0)};
	uint8_t data[RECORD_SIZE_MAX];
	struct bytes out = BYTES_IN(data);
	(void)bytes_put(&out, &rec, sizeof rec);
	if (other) {
		bytes_put_text(&out, k->named);
		bytes_put_text(&out, k->forbidden);
	}
	return ctr_set_record(&inst->h, txn, c->info.ctr, data, out.size);
}

bool record_follows(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct record rec;
	return record_read(inst, info->ctr, &rec) && rec.class == CLASS_ANNOTATED &&
	       rec.flags & RECORD_FOLLOWS;
}

static int32_t stage_stage(struct rp_instance *inst, rp_txn txn, const struct looked *c,
			   enum cpuset_class class, struct rp_ids cpus, const char *reason)
{
	bool own = class != CLASS_SHARED && !inst->now.overlapping,
	     pin = (class == CLASS_ANNOTATED && inst->plan->pin_memory) ||
		   (class == CLASS_INTEGER && inst->plan->numa_aware);
	const struct ctr_stage s = {.cpus = cpus,
				    .own = own ? cpus : rp_ids_none(),
				    .group = class == CLASS_ANNOTATED ? NAMED_GROUP : 0,
				    .degraded = reason};
	int32_t r = ctr_stage(&inst->h, txn, c->info.ctr, &s);
	if (!r)
		r = ctr_pin_memory(&inst->h, txn, &c->info, pin, cpus);
	return r ? r : record_write(inst, txn, c, class);
}

int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct looked *c, struct rp_ids cpus,
		  const char *reason)
{
	return stage_stage(inst, txn, c, c->class, cpus, reason);
}

int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids pool, const char *reason)
{
	struct rp_idset cpus;
	rp_idset_andnot(&cpus, pool, rp_ids_of(&c->forbidden));
	if (rp_ids_empty(rp_ids_of(&cpus))) {
		rp_idset_copy(&cpus, pool);
		reason = "its annotation excludes all shared CPUs";
	}
	return stage_stage(inst, txn, c, CLASS_SHARED, rp_ids_of(&cpus), reason);
}

/* ---- shared containers ----------------------------------------------------------------------- */

struct follow {
	struct rp_ids pool;
	bool turned; /* the value of `overlapping` has changed */
};

/* Stages a container after the pool changed. For most shared containers only the CPU set
 * differs. Annotated and integer containers lose the exclusive right to their CPUs while shared
 * containers overlap with them, and get it back afterwards. */
static int32_t stage_follow(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			    const struct life_walk *w)
{
	const struct modhost *h = &inst->h;
	const struct follow *f = w->arg;
	struct looked c;
	struct record rec;
	(void)record_read(inst, info->ctr, &rec);
	if (rec.class != CLASS_SHARED)
		return !f->turned ? 0
				  : h->cache->set_exclusive(h->ctx, txn, info->ctr,
							    inst->now.overlapping ? rp_ids_none()
										  : info->cpus);
	if (rp_ids_empty(f->pool))
		return 0;
	if (!(rec.flags & RECORD_FORBIDS))
		return h->cache->set_cpus(h->ctx, txn, info->ctr, f->pool);
	look_at(inst, info, &c);
	return stage_shared(inst, txn, &c, f->pool, NULL);
}

int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	struct rp_idset pool;
	pool_shared(inst, &pool);
	bool was = inst->now.overlapping, empty = rp_ids_empty(rp_ids_of(&pool));
	inst->now.overlapping = empty && inst->now.n[CLASS_SHARED];
	struct follow f = {rp_ids_of(&pool), inst->now.overlapping != was};
	if (inst->now.overlapping && f.turned)
		modhost_log(&inst->h, RP_LOG_WARNING, 0,
			    "shared CPU pool is empty, %u containers overlap with exclusive CPUs",
			    inst->now.n[CLASS_SHARED]);
	if ((empty || !inst->now.n[CLASS_SHARED]) && !f.turned)
		return 0;
	return life_walk(inst, txn,
			 (struct life_walk){.each = stage_follow,
					    .except = except,
					    .arg = &f,
					    .skip_owners = f.turned ? NULL : &inst->owners});
}
