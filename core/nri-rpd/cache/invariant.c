/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants of the node that hold for every policy. A check removes the touched containers'
 * previous decisions from the cache's per-CPU counts, adds the staged ones, checks each, and
 * restores the counts; txn_commit() repeats this permanently. The cost depends on the touched
 * containers' sets only, and each distinct set is checked once.
 */
#include "core/nri-rpd/cache/internal.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/cache/invariant.h"

/* Returns the name of a container that owns the CPU, or a text for a group of containers. */
static const char *invariant_owner(struct cache *c, uint32_t cpu)
{
	uint32_t key = c->cpu_owner[cpu];
	const struct ctr *ctr =
		key && !(key & OWNER_GROUP) ? c->ctr_slots.slot[key - 1].object : NULL;
	return ctr ? ctr->full_name : "a group of other containers";
}

static int invariant_outside(const struct ctr *ctr, const char *what, struct rp_ids has,
			     struct rp_ids allowed, const char *why, struct err *err)
{
	struct rp_idset bad;
	char text[64];
	rp_idset_andnot(&bad, has, allowed);
	(void)rp_ids_format(rp_ids_of(&bad), text, sizeof text);
	return err_set(err, -EINVAL, "container %s was assigned %s %s, which %s", ctr->full_name,
		       what, text, why);
}

/* Checks that a claim keeps its CPUs while they are online. */
static int check_claim(const struct stage *s, const struct invariants *inv, struct err *err)
{
	const struct iset *was = owned_of(&s->ctr->cur), *now = owned_of(&s->next);
	if (!was || now == was || !rp_ids_subset(was->ids, inv->online))
		return 0;
	return err_set(err, -EBUSY,
		       "claim %s/%s would lose its CPUs %s: delete the pods that use it first",
		       s->ctr->pod->ns, s->ctr->pod->name, was->text);
}

/* Checks the invariants of a single container. */
static int check_alone(const struct stage *s, const struct invariants *inv, struct err *err)
{
	const struct decision *d = &s->next, *was = &s->ctr->cur;
	if (s->ctr->device && check_claim(s, inv, err))
		return -EBUSY;
	if (d->cpus && d->cpus != was->cpus && !rp_ids_subset(d->cpus->ids, inv->online))
		return invariant_outside(s->ctr, "CPUs", d->cpus->ids, inv->online,
					 "are not online", err);
	if (d->mems && d->mems != was->mems && !rp_ids_subset(d->mems->ids, inv->mem_nodes))
		return invariant_outside(s->ctr, "memory nodes", d->mems->ids, inv->mem_nodes,
					 "have no memory", err);
	if (d->exclusive && (!d->cpus || !rp_ids_subset(d->exclusive->ids, d->cpus->ids)))
		return err_set(err, -EINVAL,
			       "container %s was assigned exclusive CPUs %s that are not among its "
			       "CPUs %s",
			       s->ctr->full_name, d->exclusive->text, d->cpus ? d->cpus->text : "");
	if (d->cpus && !d->cpus->count)
		return err_set(err, -EINVAL, "container %s was left without any CPU",
			       s->ctr->full_name);
	if (was->cpus && was->cpus->count && !d->cpus)
		return err_set(err, -EINVAL,
			       "container %s lost its CPU set and would run on all CPUs",
			       s->ctr->full_name);
	if ((s->ctr->flags & RP_CTR_PRESERVE_CPU) && d->cpus != was->cpus)
		return err_set(err, -EINVAL,
			       "container %s is unmanaged by annotation, but was assigned CPUs %s",
			       s->ctr->full_name, d->cpus ? d->cpus->text : "");
	return 0;
}

static int invariant_overlap(struct cache *c, const struct ctr *ctr, const struct decision *d,
			     uint32_t cpu, struct err *err)
{
	if (c->cpu_owner[cpu] && c->cpu_owner[cpu] != owner_key(ctr, d))
		return err_set(err, -EINVAL,
			       "container %s was assigned CPU %u, which is exclusive to %s%s",
			       ctr->full_name, cpu,
			       c->cpu_owner[cpu] & OWNER_GROUP ? "" : "container ",
			       invariant_owner(c, cpu));
	return err_set(
		err, -EINVAL,
		"container %s was assigned exclusive CPU %u of %s, on which other containers run",
		ctr->full_name, cpu, d->exclusive->text);
}

/* Checks that exclusive CPUs have no other owner, and that every container there is one of the
 * owners. */
static int check_exclusive(struct cache *c, const struct ctr *ctr, const struct decision *d,
			   struct err *err)
{
	const uint32_t key = owner_key(ctr, d);
	RP_IDS_EACH (cpu, d->exclusive->ids) {
		if (c->cpu_owner[cpu] != key || c->cpu_sets[cpu])
			return invariant_overlap(c, ctr, d, cpu, err);
	}
	return 0;
}

/* Checks that the container's set has no exclusive CPUs of others. */
static int check_shared(struct cache *c, const struct ctr *ctr, const struct decision *d,
			struct err *err)
{
	if (!c->n_owned)
		return 0;
	RP_IDS_EACH (cpu, d->cpus->ids) {
		if (c->cpu_owner[cpu] && c->cpu_owner[cpu] != owner_key(ctr, d))
			return invariant_overlap(c, ctr, d, cpu, err);
	}
	return 0;
}

/* Returns true if a successful check of `last` also covers `s`: same sets, same owner. */
static bool is_like(const struct stage *last, const struct stage *s)
{
	return last && last->next.cpus == s->next.cpus &&
	       owned_of(&last->next) == owned_of(&s->next) &&
	       owner_key(last->ctr, &last->next) == owner_key(s->ctr, &s->next);
}

static int check_together(struct cache *c, struct txn *t, struct err *err)
{
	const struct stage *last = NULL;
	for (const struct stage *s = txn_touched(t); s; s = s->link) {
		const struct decision *d = &s->next;
		if (!ctr_live(d->state) || !d->cpus || is_like(last, s))
			continue;
		int r = owned_of(d) ? check_exclusive(c, s->ctr, d, err) : 0;
		if (!r)
			r = check_shared(c, s->ctr, d, err);
		if (r) {
			txn_set_broken(t, s);
			return r;
		}
		last = s;
	}
	return 0;
}

static void swap_counts(struct cache *c, const struct stage *first, bool in)
{
	for (const struct stage *s = first; s; s = s->link)
		count_decision(c, s->ctr, in ? &s->ctr->cur : &s->next, false);
	for (const struct stage *s = first; s; s = s->link)
		count_decision(c, s->ctr, in ? &s->next : &s->ctr->cur, true);
}

int txn_check(struct txn *t, const struct invariants *inv, struct err *err)
{
	const struct stage *first = txn_touched(t);
	txn_set_broken(t, NULL);
	for (const struct stage *s = first; s; s = s->link) {
		int r = ctr_live(s->next.state) ? check_alone(s, inv, err) : 0;
		if (r) {
			txn_set_broken(t, s);
			return r;
		}
	}
	if (!first)
		return 0;
	struct cache *c = txn_cache(t);
	swap_counts(c, first, true);
	int r = check_together(c, t, err);
	swap_counts(c, first, false);
	return r;
}
