/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete policy to be copied. Rename it and change template_wanted() and template_stage() to
 * get your own policy. Containers of kube-system run on reserved CPUs. Containers of Guaranteed
 * pods that request whole CPUs get exclusive CPUs, and all others share the rest:
 *
 *	template:
 *	  availableResources: {cpu: "cpuset:2-15"}	# default: all online CPUs
 *	  reservedResources: {cpu: 2}			# for kube-system; required
 *	  pinCPU: true					# default; false: do not pin containers
 *
 * Before you start:
 *
 *  - The host calls every function on one thread, one at a time. Decide quickly and return: no
 *    files, no sleeping, no threads.
 *  - Containers are handles. A struct rp_ctr_info describes one, and ctr_stage() *stages* your
 *    decision for one. When your function returns 0, the host checks all staged decisions and
 *    applies them. After an error it drops them and calls rolled_back(), so that you restore your
 *    own tables.
 *  - Store as little as you can. The host's cache survives a restart of the daemon, your
 *    variables do not. This policy stores which container owns which CPU, and rebuilds that in
 *    sync().
 */
#include <stdlib.h>
#include <string.h>

#include <nri-rp/policy.h>

/* Optional helpers that are linked into the module; <nri-rp/lib/README> lists them. */
#include <nri-rp/lib/bounds.h>
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/section.h>

/* ---- configuration keys ---------------------------------------------------------------------- */

/* The host checks rp.conf against this table first; help and manual are generated from it. */
static const struct rp_key keys[] = {
	BOUNDS_KEYS("What the containers of kube-system have for themselves.",
		    "Their CPUs: a set, or a quantity of the available ones."),
	SECTION_BOOL("pinCPU", "true", "Pin containers at all.")};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
	.cr_kind = "TemplatePolicy", /* custom resources of this kind contain this section */
};

/* A checked configuration and values derived from it. The name is given, the members are yours. */
struct rp_plan {
	rp_cfg section;
	bool pin_cpu;
	struct bounds cpus; /* online CPUs: reserved ones, and the rest */
	struct cpualloc *alloc; /* chooses CPUs: whole cores first, close to each other */
};

/* The memory of your module. A trial of a new configuration has an instance of its own. */
struct rp_instance {
	/* first: h, the host's services; plan, the active configuration; and more (life.h) */
	LIFE;
	struct owners owners; /* owners of exclusive CPUs */
};

/* ---- configuration --------------------------------------------------------------------------- */

static struct rp_plan *plan_free(struct rp_plan *plan)
{
	if (plan)
		cpualloc_free(plan->alloc);
	free(plan);
	return NULL;
}

/* Builds a plan. An error is one sentence for people, with the place in rp.conf if a key is
 * wrong. */
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

/* Stores what the next plan must know. Reserved CPUs stay reserved over reloads, restarts and CPUs
 * that go offline; CPUs that containers own are not reserved while there are others. */
static void past(const struct rp_instance *inst, struct reserve_past *ret)
{
	bounds_past(&inst->plan->cpus, rp_ids_of(&inst->owners.taken), ret);
}

/* Checks a configuration. Must not change the active plan: the new one may be dropped. */
static int32_t plan(struct rp_instance *inst, rp_cfg section, struct rp_plan **ret)
{
	struct reserve_past before;
	int32_t r = life_past(inst, &before);
	return r ? r : plan_new(&inst->h, section, &before, ret);
}

/* Builds a plan after CPUs went online or offline. sync() follows. */
static int32_t look(struct rp_instance *inst, struct rp_plan **ret)
{
	return plan(inst, inst->plan->section, ret);
}

/* ---- placement ------------------------------------------------------------------------------- */

static bool is_system(const struct rp_ctr_info *info)
{
	return strcmp(info->pod_namespace, "kube-system") == 0;
}

/* Returns the number of exclusive CPUs that a container should have. */
static int64_t template_wanted(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	bool whole = info->qos == RP_QOS_GUARANTEED && info->cpu_request % 1000 == 0 &&
		     ctr_may_own_cpus(info);
	return inst->plan->pin_cpu && whole && !is_system(info) ? info->cpu_request / 1000 : 0;
}

/* Gives a container its exclusive CPUs, or none. At least one CPU remains for containers that
 * share. */
static bool template_give(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	struct rp_idset own, free;
	int64_t n = template_wanted(inst, info);
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

/* Stages the decision for a container after template_give(); an unchanged decision costs nothing. A
 * container whose exclusive CPUs are all offline runs on the shared ones. */
static int32_t template_stage(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
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
	if (template_wanted(inst, info) != n)
		s.degraded = "too few CPUs to have its own";
	return ctr_stage(&inst->h, txn, info->ctr, &s);
}

/* Gives free CPUs to containers that lack exclusive ones (pass 0), then stages all containers (pass
 * 1). */
static int32_t settle_one(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			  const struct life_walk *w)
{
	if (w->pass == 0)
		(void)template_give(inst, info);
	return w->pass == 0 ? 0 : template_stage(inst, txn, info);
}

static int32_t template_settle(struct rp_instance *inst, rp_txn txn, rp_ctr except)
{
	return life_walk(inst, txn, (struct life_walk){settle_one, RP_ORDER_SYNC, 2, except, 0, 0});
}

/* Places a container that is created or resized. An error refuses the operation. */
static int32_t place(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset before = inst->owners.taken;
	if (!template_give(inst, info))
		return modhost_fail(&inst->h, -RP_ENOSPC, "no %lld CPUs are free to be its own",
				    (long long)template_wanted(inst, info));
	/* shown by `nri-rpctl explain` */
	const char *kind = template_wanted(inst, info) ? "its own" : "shared";
	modhost_note(&inst->h, info->ctr, "namespace %s: %s CPUs", info->pod_namespace,
		     is_system(info) ? "reserved" : kind);
	bool same = rp_ids_equal(rp_ids_of(&before), rp_ids_of(&inst->owners.taken));
	int32_t r = same ? 0 : template_settle(inst, txn, info->ctr);
	return r ? r : template_stage(inst, txn, info);
}

/* Releases a container that has ended. Others change only if it had exclusive CPUs. */
static int32_t release(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	struct rp_idset had;
	return owners_release(&inst->owners, info->ctr, &had)
		       ? template_settle(inst, txn, info->ctr)
		       : 0;
}

/* Restores a container's exclusive CPUs from the cache, if they are still valid. */
static int32_t template_keep(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			     const struct life_walk *w)
{
	(void)txn, (void)w;
	uint32_t n = rp_ids_count(info->exclusive),
		 n_taken = rp_ids_count(rp_ids_of(&inst->owners.taken));
	if (n == template_wanted(inst, info) &&
	    n + n_taken < rp_ids_count(rp_ids_of(&inst->plan->cpus.rest)) &&
	    rp_ids_subset(info->exclusive, rp_ids_of(&inst->plan->cpus.rest)) &&
	    !rp_ids_overlap(info->exclusive, rp_ids_of(&inst->owners.taken)))
		owners_give(&inst->owners, info->exclusive, info->ctr);
	return 0;
}

/* Places all containers: after a start, a reload, a reconnect, or a change of the online CPUs. */
static int32_t sync_all(struct rp_instance *inst, rp_txn txn)
{
	owners_clear(&inst->owners);
	int32_t r = life_walk(inst, txn,
			      (struct life_walk){.each = template_keep, .order = RP_ORDER_SYNC});
	return r ? r : template_settle(inst, txn, 0);
}

/* Begins to record changes, in case the host drops the transaction. */
static void begin(struct rp_instance *inst)
{
	owners_begin(&inst->owners);
}

static int32_t rolled_back(struct rp_instance *inst)
{
	owners_undo(&inst->owners);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

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

/* The one exported symbol, and the ELF note that the host reads before it loads the file. */
LIFE_MODULE("template", "1.0", ops,
	    .summary = "reserved CPUs for kube-system, exclusive ones for Guaranteed pods",
	    .licence = "Apache-2.0");
