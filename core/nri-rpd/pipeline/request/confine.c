/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that no policy has pinned, beside containers with exclusive CPUs. The policy is
 * missing (safe mode), does nothing (none), could not place them, or leaves them alone (pinCPU,
 * containers of a DaemonSet under qos). Every decision keeps such containers off exclusive CPUs and
 * lets them use these CPUs again when their owners have ended.
 *
 * Containers whose CPUs are to be preserved, by annotation or by the policy (leave_unpinned()), are
 * not confined. One that was confined before its CPUs were to be preserved remains confined as long
 * as exclusive CPUs exist.
 *
 * On machines with memory nodes of devices, containers whose memory no policy has pinned are kept
 * to the other memory nodes.
 */
#include <utlist.h>

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/request/confine.h"

struct iset *unowned_cpus(struct pipeline *p)
{
	struct rp_idset cpus;
	const struct ctr *ctr;
	rp_idset_copy(&cpus, topo_ids(p->env.topo, RP_CPUS_ONLINE));
	rp_idset_andnot(&cpus, rp_ids_of(&cpus), topo_ids(p->env.topo, RP_CPUS_ISOLATED));
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		const struct decision *d = txn_view(ctr);
		if (ctr_live(d->state) && d->exclusive)
			rp_idset_andnot(&cpus, rp_ids_of(&cpus), d->exclusive->ids);
	}
	return intern_get(cache_sets(p->env.cache), rp_ids_of(&cpus));
}

static bool confine_owns(const struct pipeline *p, const struct ctr *ctr)
{
	const struct decision *d = txn_view(ctr);
	return ctr_live(d->state) && d->exclusive && d->exclusive->count;
}

static bool anybody_owns(const struct pipeline *p)
{
	const struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr)
		if (confine_owns(p, ctr))
			return true;
	return false;
}

static bool is_loose(const struct pipeline *p, const struct ctr *ctr)
{
	const struct decision *d = txn_view(ctr);
	return ctr_live(d->state) && !claim_is_controlled(ctr) &&
	       (d->confined || (!d->cpus && !d->unpinned && !(ctr->flags & RP_CTR_PRESERVE_CPU)));
}

static int confine_to(struct pipeline *p, struct ctr *ctr, struct iset *cpus, struct err *err)
{
	const char *policy = p->policy ? instance_name(p->policy) : "none";
	if (!cpus->count && ctr == txn_created(p->txn))
		return err_set(err, -ENOSPC,
			       "container %s: policy %s does not pin it, and all CPUs are "
			       "exclusive to other containers",
			       ctr->full_name, policy);
	if (!cpus->count && txn_view(ctr)->confined)
		return err_set(err, -ENOSPC,
			       "container %s: policy %s does not pin it, and all CPUs would be "
			       "exclusive to other containers",
			       ctr->full_name, policy);
	if (!cpus->count)
		return 0;
	struct decision *d = txn_stage(p->txn, ctr);
	if (!d)
		return err_errno(err, -ENOMEM, "container %s", ctr->full_name);
	txn_put_set(p->env.cache, &d->cpus, intern_ref(cpus));
	d->confined = true;
	return 0;
}

/* Returns true if `is` holds for a container that the decision touches. */
static bool confine_touches(const struct pipeline *p,
			    bool (*is)(const struct pipeline *, const struct ctr *))
{
	for (const struct stage *s = txn_touched(p->txn); s; s = s->link)
		if (is(p, s->ctr))
			return true;
	return false;
}

/* Returns true if confine() has to check all containers: some have or recently had exclusive CPUs,
 * and others are not pinned. */
static bool is_needed(struct pipeline *p)
{
	p->requests.maybe_unpinned = p->requests.maybe_unpinned || confine_touches(p, is_loose);
	return p->requests.maybe_unpinned &&
	       (cache_owned(p->env.cache) || p->requests.maybe_confined ||
		confine_touches(p, confine_owns));
}

void confine_unknown(struct pipeline *p)
{
	p->requests.maybe_unpinned = p->requests.maybe_confined = true;
}

/* Keeps the containers that the decision touches off the memory of devices. */
static int confine_memory(struct pipeline *p, struct err *err)
{
	struct cache *cache = p->env.cache;
	if (!topo_hides_memory(p->env.topo))
		return 0;
	for (const struct stage *s = txn_touched(p->txn); s; s = s->link) {
		struct decision *d = txn_stage(p->txn, s->ctr);
		if (!ctr_live(d->state) || d->mems || claim_is_controlled(s->ctr) ||
		    s->ctr->flags & RP_CTR_PRESERVE_MEM)
			continue;
		txn_put_set(cache, &d->mems,
			    intern_get(cache_sets(cache), decide_invariants(p).mem_nodes));
		if (!d->mems)
			return err_errno(err, -ENOMEM, "container %s", s->ctr->full_name);
	}
	return 0;
}

int confine(struct pipeline *p, struct err *err)
{
	struct ctr *ctr;
	int r = confine_memory(p, err);
	if (r || !is_needed(p))
		return r;
	bool owned = anybody_owns(p);
	struct iset *cpus =
		owned ? unowned_cpus(p)
		      : intern_get(cache_sets(p->env.cache), topo_ids(p->env.topo, RP_CPUS_ONLINE));
	if (!cpus)
		return err_errno(err, -ENOMEM, "CPUs that are not exclusive");
	p->requests.maybe_unpinned = false;
	p->requests.maybe_confined = owned;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		const struct decision *d = txn_view(ctr);
		if (r || !is_loose(p, ctr))
			continue;
		p->requests.maybe_unpinned = true;
		if (d->cpus != cpus && (owned || d->confined))
			r = confine_to(p, ctr, cpus, err);
	}
	intern_unref(cache_sets(p->env.cache), cpus);
	return r;
}
