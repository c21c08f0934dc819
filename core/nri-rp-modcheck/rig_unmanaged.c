/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's steps with onPolicyError: unmanaged after allocate() has refused a container. */
#include <utlist.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rp-modcheck/rig.h"

/* Returns all online CPUs that are neither isolated nor exclusive, as the daemon assigns them. */
static struct iset *unowned_cpus(struct rig *r)
{
	struct rp_idset cpus;
	const struct ctr *ctr = NULL;
	rp_idset_andnot(&cpus, rig_online(r), topo_ids(r->env.topo, RP_CPUS_ISOLATED));
	DL_FOREACH (cache_ctrs(r->env.cache), ctr)
		if (ctr_live(ctr->cur.state) && ctr->cur.exclusive)
			rp_idset_andnot(&cpus, rp_ids_of(&cpus), ctr->cur.exclusive->ids);
	return intern_get(cache_sets(r->env.cache), rp_ids_of(&cpus));
}

int rig_call_unmanaged(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct decision *d = txn_stage(r->txn, ctr);
	struct iset *cpus = unowned_cpus(r);
	struct blob *reason = blob_str(err->text);
	if (!d || !cpus || !reason) {
		blob_unref(reason);
		intern_unref(cache_sets(r->env.cache), cpus);
		return -ENOMEM;
	}
	if (cpus->count && !(ctr->flags & RP_CTR_PRESERVE_CPU))
		txn_put_set(r->env.cache, &d->cpus, intern_ref(cpus));
	intern_unref(cache_sets(r->env.cache), cpus);
	txn_put_blob(&d->degraded, reason);
	int bad = instance_unmanaged(r->instance, ctr, err);
	d->state = RP_STATE_CREATED;
	return bad;
}
