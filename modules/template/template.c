/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete policy, to be copied. Rename it, change what wanted() and stage() decide, and you have
 * yours. Containers of kube-system run on reserved CPUs, those of Guaranteed pods that ask for
 * whole CPUs get these for themselves, and all others share the rest:
 *
 *	template:
 *	  availableResources: {cpu: "cpuset:2-15"}	# default: all online CPUs
 *	  reservedResources: {cpu: 2}			# for kube-system; required
 *	  pinCPU: true					# default; false: leave containers alone
 *
 * What to know before you start:
 *
 *  - The host calls every function on one thread, one at a time. Decide quickly and return: no
 *    files, no sleeping, no threads.
 *  - Containers are handles. A struct rp_ctr_info tells about one; ctr_stage() says what you want
 *    for one. This only *stages*: when your function returns 0 the host checks everything and makes
 *    it true. After an error nothing has happened, and rolled_back() is called to do the same with
 *    your own tables.
 *  - Remember as little as you can. What the cache knows survives a restart of the daemon; what
 *    your variables know does not. This policy remembers which container owns which CPU, and finds
 *    that out anew in sync().
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/policy.h>

/* Optional helpers that are linked into the module; modules/lib/README has a list of them. */
#include "modules/lib/bounds.h"
#include "modules/lib/life.h"
#include "modules/lib/owners.h"
#include "modules/lib/section.h"

/* ---- what may be configured ------------------------------------------------------------------ */

/* The host checks rp.conf against this table before you see it; help and manual come from it. */
static const struct rp_key keys[] = {
	BOUNDS_KEYS("What the containers of kube-system have for themselves.",
		    "Their CPUs: a set, or a quantity of the available ones."),
	SECTION_BOOL("pinCPU", "true", "Pin containers at all.")};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
	.cr_kind = "TemplatePolicy", /* custom resources of this kind are read as this section */
};

/* A checked configuration and what follows from it. Its name is given, the contents are yours. */
struct rp_plan {
	rp_cfg section;
	bool pin_cpu;
	struct bounds cpus; /* reserved ones, and the rest, on the machine as it is */
	struct cpualloc *alloc; /* chooses CPUs: whole cores first, near each other */
};

/* Your module's memory. A trial of a new configuration has an instance of its own. */
struct rp_instance {
	/* first: h, the host's services; plan, the configuration in force; and more (life.h) */
	LIFE;
	struct owners owners; /* of the CPUs that are some container's own */
};

/* ---- taking a configuration into use --------------------------------------------------------- */

static struct rp_plan *plan_free(struct rp_plan *plan)
{
	if (plan)
		cpualloc_free(plan->alloc);
	free(plan);
	return NULL;
}

/* Errors are one sentence for people, and name the place in rp.conf when a key is to blame. */
static int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
			struct rp_plan **ret)
{
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p || cpualloc_new(h->topology, h->ctx, &p->alloc)) {
		free(p);
		return modhost_no_memory(h);
	}
	p->section = section;
	p->pin_cpu = section_bool(h, section, "pinCPU", true);
	int32_t r = bounds_read(h, section, p->alloc, past, true, &p->cpus);
	bool any = !rp_ids_empty(rp_ids_of(&p->cpus.reserved)) ||
		   !rp_ids_empty(rp_ids_of(&p->cpus.listed));
	if (!r && !past->hotplug && (!any || rp_ids_empty(rp_ids_of(&p->cpus.rest))))
		r = modhost_fail_at(h, section_get(h, section, "reservedResources.cpu"), -RP_EINVAL,
				    "kube-system and all others need one CPU each at least");
	*ret = r ? plan_free(p) : p;
	return r;
}

/* What the next plan has to know: reserved CPUs stay reserved over reloads, restarts and CPUs
 * that go offline, and CPUs that containers own are not reserved while there are others. */
static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	bounds_past(&inst->plan->cpus, rp_ids_of(&inst->owners.taken), ret);
}

/* Checks a configuration. Must not change anything that is in force: the new plan may yet be
 * dropped. */
static int32_t plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	struct reserve_past before;
	int32_t r = life_past(inst, &before);
	return r ? r : plan_new(&inst->h, section, &before, ret);
}

/* CPUs have come or gone: the plan for the machine as it is now. sync() comes next. */
static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	return plan(inst, inst->plan->section, ret);
}

/* ---- placing containers ---------------------------------------------------------------------- */

static bool is_system(const struct rp_ctr_info *info)
{
	return strcmp(info->pod_namespace, "kube-system") == 0;
}

/* How many CPUs a container is to have for itself. */
static int64_t wanted(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	bool whole = info->qos == RP_QOS_GUARANTEED && info->cpu_request % 1000 == 0 &&
		     ctr_may_own_cpus(info);
	return inst->plan->pin_cpu && whole && !is_system(info) ? info->cpu_request / 1000 : 0;
}

/* As many CPUs as the container wants, or none. One at least stays for those who share. */
static bool give(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own, free;
	int64_t n = wanted(inst, info);
	if (owners_owned(&inst->owners, info->ctr, &own) == n)
		return true;
	(void)owners_release(&inst->owners, info->ctr, &own);
	rp_idset_andnot(&free, rp_ids_of(&inst->plan->cpus.rest), rp_ids_of(&inst->owners.taken));
	if (n == 0 || n >= rp_ids_count(rp_ids_of(&free)))
		return n == 0;
	(void)cpualloc_allocate(inst->plan->alloc, &free, (uint32_t)n, CPUALLOC_NORMAL,
				CPUALLOC_DEFAULT, &own); /* there are enough */
	owners_give(&inst->owners, rp_ids_of(&own), info->ctr);
	return true;
}

/* Says what a container gets, after give(): what is already so costs nothing. Those whose CPUs are
 * all off line join the others. */
static int32_t stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset own, shared;
	if (!inst->plan->pin_cpu)
		return ctr_forget(&inst->h, txn, info->ctr);
	uint32_t n = owners_owned(&inst->owners, info->ctr, &own);
	rp_idset_andnot(&shared, rp_ids_of(&inst->plan->cpus.rest), rp_ids_of(&inst->owners.taken));
	const struct rp_idset *pools[] = {&shared, &inst->plan->cpus.reserved};
	struct ctr_stage s = {.cpus = rp_ids_of(n ? &own : pools[is_system(info)]),
			      .own = rp_ids_of(&own)};
	if (rp_ids_empty(s.cpus))
		s.cpus = rp_ids_of(pools[!is_system(info)]);
	if (wanted(inst, info) != n)
		s.degraded = "too few CPUs to have its own";
	return ctr_stage(&inst->h, txn, info->ctr, &s);
}

/* Those that lack CPUs of their own may have what is free, then all are told where they run. */
static int32_t settle_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			  const struct life_walk *w)
{
	if (w->pass == 0)
		(void)give(inst, info);
	return w->pass == 0 ? 0 : stage(inst, txn, info);
}

static int32_t settle(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_walk(inst, txn, (struct life_walk){settle_one, RP_ORDER_SYNC, 2, except, 0, 0});
}

/* A container is created or resized. An error refuses that. */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset before = inst->owners.taken;
	if (!give(inst, info))
		return modhost_fail(&inst->h, -RP_ENOSPC, "no %lld CPUs are free to be its own",
				    (long long)wanted(inst, info));
	/* `nri-rpctl explain` shows this. */
	const char *kind = wanted(inst, info) ? "its own" : "shared";
	modhost_note(&inst->h, info->ctr, "namespace %s: %s CPUs", info->pod_namespace,
		     is_system(info) ? "reserved" : kind);
	bool same = rp_ids_equal(rp_ids_of(&before), rp_ids_of(&inst->owners.taken));
	int32_t r = same ? 0 : settle(inst, txn, info->ctr);
	return r ? r : stage(inst, txn, info);
}

/* A container has gone. Others have to hear of that only when it had something of its own. */
static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset had;
	return owners_release(&inst->owners, info->ctr, &had) ? settle(inst, txn, info->ctr) : 0;
}

/* The cache knows what containers own; they keep that while it is right. */
static int32_t keep(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		    const struct life_walk *w)
{
	(void)txn, (void)w;
	uint32_t n = rp_ids_count(info->exclusive),
		 n_taken = rp_ids_count(rp_ids_of(&inst->owners.taken));
	if (n == wanted(inst, info) &&
	    n + n_taken < rp_ids_count(rp_ids_of(&inst->plan->cpus.rest)) &&
	    rp_ids_subset(info->exclusive, rp_ids_of(&inst->plan->cpus.rest)) &&
	    !rp_ids_overlap(info->exclusive, rp_ids_of(&inst->owners.taken)))
		owners_give(&inst->owners, info->exclusive, info->ctr);
	return 0;
}

/* After a start, a reload, a reconnect, or CPUs that came or went: all are where they should be. */
static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	int32_t r = life_walk(inst, txn, (struct life_walk){.each = keep, .order = RP_ORDER_SYNC});
	return r ? r : settle(inst, txn, 0);
}

/* In case that the host drops the transaction. */
static void begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	return 0;
}

/* ---- the module ------------------------------------------------------------------------------ */

static const struct life_ops ops = {
	.plan = plan,
	.look = look,
	.plan_free = plan_free,
	.begin = begin,
	.sync = sync_all,
	.place = place,
	.release = release,
	.past = past,
	.rolled_back = rolled_back,
	.schema = &schema,
};

/* The one exported symbol, and the note that the host reads before it loads the file. */
LIFE_MODULE("template", "1.0", ops,
	    .summary = "reserved CPUs for kube-system, exclusive ones for Guaranteed pods",
	    .licence = "Apache-2.0");
