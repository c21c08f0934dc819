/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses exclusive CPUs for one container: isolated CPUs or free CPUs of ALL, within the NUMA
 * nodes of the topology manager policy. place_find() and place_resize() change no owner; static.c
 * and sync.c register the result.
 */
#include <stdarg.h>
#include <stdio.h>

#include "modules/static/static.h"

#define ISOLATED_KEY "prefer-isolated-cpus.resource-policy.nri.io"
#define SET_TEXT_MAX 128u

int32_t place_refuse(struct placing *p, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(p->text, sizeof p->text, fmt, ap);
	va_end(ap);
	return -RP_ENOSPC;
}

static int32_t refuse_count(struct placing *p, uint32_t available)
{
	return place_refuse(
		p, "not enough cpus available to satisfy request: requested=%lld, available=%u",
		(long long)p->n, available);
}

int64_t place_wanted(const struct rp_instance *inst, const struct rp_ctr_info *info)
{
	if (info->qos != RP_QOS_GUARANTEED || info->cpu_request <= 0 || info->cpu_request % 1000 ||
	    !ctr_may_own_cpus(info) || place_follows(inst, info))
		return 0;
	/* The size of a pod's set is rounded instead. The number of CPUs of a claim is fixed. */
	int64_t n = info->cpu_request / 1000;
	bool rounded = !inst->plan->settings.pod_scope && !(info->flags & RP_CTR_CLAIM);
	return rounded ? isolation_cores(&inst->plan->settings.isolation, n) : n;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Returns the number of CPUs of the cores that become exclusive as a whole. */
static uint32_t core_size(const struct rp_plan *plan)
{
	const struct isolation_keys *k = &plan->settings.isolation;
	return k->threads > 1 ? k->threads : plan->machine->threads;
}

static int32_t check_alignment(const struct rp_plan *plan, struct placing *p)
{
	uint32_t g = core_size(plan);
	if (!(plan->settings.options & OPT_FULL_PCPUS_ONLY) || p->n % g == 0)
		return 0;
	return place_refuse(
		p, "SMT Alignment Error: requested %lld cpus not multiple cpus per core = %u",
		(long long)p->n, g);
}

/* Keeps only the cores whose threads are all in the set and not reserved, and that
 * isolation.siblings allows. */
static void keep_whole_cores(const struct rp_instance *inst, struct rp_idset *cpus)
{
	const struct rp_plan *plan = inst->plan;
	struct rp_idset reserved;
	machine_surround(plan->machine, MACHINE_CORE, rp_ids_of(&plan->reserved), &reserved);
	rp_idset_andnot(cpus, rp_ids_of(cpus), rp_ids_of(&reserved));
	machine_whole_cores(plan->machine, rp_ids_of(cpus), cpus);
	isolation_narrow(&inst->h, &plan->settings.isolation, cpus);
}

/*
 * Checks that enough whole cores are free, and returns their CPUs. own: CPUs of a container that is
 * resized, counted as free.
 */
static int32_t check_whole_cores(const struct rp_instance *inst, struct placing *p,
				 struct rp_ids candidates, struct rp_ids own, struct rp_idset *ret)
{
	rp_idset_or(ret, candidates, own);
	keep_whole_cores(inst, ret);
	/* The container keeps its CPUs even if they are not whole cores. */
	rp_idset_or(ret, rp_ids_of(ret), own);
	uint32_t n_free = rp_ids_count(rp_ids_of(ret));
	if (p->n <= n_free)
		return 0;
	return place_refuse(
		p,
		"SMT Alignment Error: not enough free physical CPUs: available physical "
		"CPUs = %u, requested CPUs = %lld, CPUs per core = %u",
		n_free, (long long)p->n, core_size(inst->plan));
}

/* Refuses a placement that would take the last shared CPU. */
static int32_t check_shared_left(const struct rp_instance *inst, struct placing *p)
{
	struct rp_idset shared;
	plan_shared(inst->plan, &inst->owners, &shared);
	if (!rp_ids_overlap(rp_ids_of(&shared), rp_ids_of(&p->cpus)) ||
	    !rp_ids_subset(rp_ids_of(&shared), rp_ids_of(&p->cpus)))
		return 0;
	return place_refuse(p, SHARED_LEFT_TEXT);
}

/* ---- choice of CPUs -------------------------------------------------------------------------- */

static bool is_within_node(const struct machine *m, struct rp_ids cpus)
{
	struct rp_idset nodes;
	machine_nodes_of(m, cpus, &nodes);
	return rp_ids_count(rp_ids_of(&nodes)) <= 1;
}

/*
 * Chooses n of the candidates without a hint: from the fullest NUMA node that fits, unless an
 * option requires another order.
 */
static int32_t take_tight(const struct rp_plan *plan, struct rp_ids candidates, uint32_t n,
			  struct rp_idset *ret)
{
	const struct settings *s = &plan->settings;
	struct rp_idset near;
	if (s->parity || s->options & (OPT_DISTRIBUTE_NUMA | OPT_DISTRIBUTE_CORES))
		return plan_take(plan, candidates, n, ret);
	if (s->options & OPT_ALIGN_CACHE) {
		/* CPUs aligned to caches are preferred if they are in one NUMA node. */
		int32_t r = plan_take(plan, candidates, n, ret);
		if (r || is_within_node(plan->machine, rp_ids_of(ret)))
			return r;
	}
	rp_idset_copy(&near, candidates);
	bool one = machine_narrow(plan->machine, &near, n, true);
	return plan_take(plan, one ? rp_ids_of(&near) : candidates, n, ret);
}

int32_t place_take_hinted(const struct rp_plan *plan, struct rp_ids candidates, struct placing *p)
{
	uint32_t n = (uint32_t)p->n;
	p->hint[0] = '\0';
	if (plan->settings.hints == HINT_NONE)
		return take_tight(plan, candidates, n, &p->cpus);
	struct hint hint;
	if (hint_find(plan->machine, &plan->distances, plan->settings.hints,
		      !!(plan->settings.options & OPT_ALIGN_SOCKET), candidates, n, &hint))
		return place_refuse(p, "Resources cannot be allocated with Topology locality");
	char nodes[SET_TEXT_MAX];
	(void)snprintf(p->hint, sizeof p->hint, "topology manager, %s: %s NUMA nodes %s",
		       hint_policy_name(plan->settings.hints),
		       hint.preferred ? "preferred" : "not preferred",
		       modhost_set_text(rp_ids_of(&hint.nodes), nodes, sizeof nodes));
	uint32_t n_near = rp_ids_count(rp_ids_of(&hint.cpus));
	struct rp_idset near, rest;
	int32_t r = plan_take(plan, rp_ids_of(&hint.cpus), n_near < n ? n_near : n, &near);
	if (!r) {
		rp_idset_andnot(&rest, candidates, rp_ids_of(&near));
		r = plan_take(plan, rp_ids_of(&rest), n_near < n ? n - n_near : 0, &rest);
	}
	if (!r)
		rp_idset_or(&p->cpus, rp_ids_of(&near), rp_ids_of(&rest));
	return r;
}

/* Returns the reason why the container prefers isolated CPUs, or NULL. */
static const char *isolation_reason(struct rp_instance *inst, struct placing *p)
{
	if (inst->plan->settings.relaxed_isolation)
		return "relaxedIsolation";
	if (ctr_annotated_bool(&inst->h, p->ctr, ISOLATED_KEY, NULL) == 1)
		return "annotation " ISOLATED_KEY;
	return p->n == 1 ? "a single CPU" : NULL;
}

/* Leaves the CPUs of the device from which a claim is being allocated. */
static void place_narrow(const struct rp_instance *inst, struct rp_idset *cpus)
{
	if (inst->within)
		rp_idset_and(cpus, rp_ids_of(cpus), rp_ids_of(inst->within));
}

static int take_isolated(struct rp_instance *inst, struct placing *p)
{
	const struct rp_plan *plan = inst->plan;
	struct rp_idset iso;
	plan_free_isolated(plan, &inst->owners, &iso);
	place_narrow(inst, &iso);
	if (plan->settings.options & OPT_FULL_PCPUS_ONLY)
		keep_whole_cores(inst, &iso);
	if (rp_ids_empty(rp_ids_of(&iso)))
		return 0;
	const char *reason = isolation_reason(inst, p);
	if (!reason || p->n > rp_ids_count(rp_ids_of(&iso)) ||
	    place_near_devices(inst, rp_ids_of(&iso), p))
		return 0;
	char cpus[SET_TEXT_MAX], from[SET_TEXT_MAX];
	(void)snprintf(p->text, sizeof p->text, "isolated CPUs %s of the free %s: %s",
		       modhost_set_text(rp_ids_of(&p->cpus), cpus, sizeof cpus),
		       modhost_set_text(rp_ids_of(&iso), from, sizeof from), reason);
	p->decided_at = plan->settings.relaxed_isolation ? plan->settings.relaxed_at : NULL;
	return 1;
}

static const char *rule_name(const struct settings *s)
{
	if (s->common_allocator)
		return "chosen by the common allocator";
	if (s->options & OPT_DISTRIBUTE_NUMA)
		return "distributed by distribute-cpus-across-numa";
	if (s->options & OPT_DISTRIBUTE_CORES)
		return "distributed by distribute-cpus-across-cores";
	if (s->options & OPT_ALIGN_CACHE)
		return "packed into used caches";
	return "packed onto used cores";
}

static void place_describe(const struct rp_plan *plan, struct placing *p, struct rp_ids candidates)
{
	char cpus[SET_TEXT_MAX], from[SET_TEXT_MAX];
	(void)snprintf(p->text, sizeof p->text, "CPUs %s, %s (candidates: %s)",
		       modhost_set_text(rp_ids_of(&p->cpus), cpus, sizeof cpus),
		       rule_name(&plan->settings), modhost_set_text(candidates, from, sizeof from));
	p->decided_at =
		plan->settings.options ? plan->settings.options_at : plan->settings.hints_at;
}

/*
 * Returns the free CPUs that can become exclusive: shared CPUs without reserved ones, and isolated
 * CPUs if the shared CPUs are too few for n.
 */
static void place_assignable(const struct rp_instance *inst, int64_t n, struct rp_idset *ret)
{
	plan_shared(inst->plan, &inst->owners, ret);
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->reserved));
	place_narrow(inst, ret);
	struct rp_idset enough, iso;
	rp_idset_copy(&enough, rp_ids_of(ret));
	if (inst->plan->settings.options & OPT_FULL_PCPUS_ONLY)
		keep_whole_cores(inst, &enough);
	if (n <= rp_ids_count(rp_ids_of(&enough)))
		return;
	plan_free_isolated(inst->plan, &inst->owners, &iso);
	place_narrow(inst, &iso);
	rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&iso));
}

void place_candidates(const struct rp_instance *inst, struct rp_idset *ret)
{
	plan_shared(inst->plan, &inst->owners, ret);
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->reserved));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->iso));
	if (inst->plan->settings.options & OPT_FULL_PCPUS_ONLY)
		keep_whole_cores(inst, ret);
}

int32_t place_find(struct rp_instance *inst, rp_ctr ctr, int64_t n, struct placing *p)
{
	const struct rp_plan *plan = inst->plan;
	*p = (struct placing){.ctr = ctr, .n = n};
	if (check_alignment(plan, p))
		return -RP_ENOSPC;
	struct rp_ctr_info info;
	bool claim = !ctr_info(&inst->h, ctr, &info) && info.flags & RP_CTR_CLAIM;
	if (!claim && take_isolated(inst, p))
		return 0;
	struct rp_idset candidates;
	place_assignable(inst, claim ? 0 : n, &candidates);
	if ((plan->settings.options & OPT_FULL_PCPUS_ONLY) &&
	    check_whole_cores(inst, p, rp_ids_of(&candidates), rp_ids_none(), &candidates))
		return -RP_ENOSPC;
	uint32_t n_free = rp_ids_count(rp_ids_of(&candidates));
	if (n > n_free)
		return refuse_count(p, n_free);
	if (place_near_devices(inst, rp_ids_of(&candidates), p) || check_shared_left(inst, p))
		return -RP_ENOSPC;
	place_describe(plan, p, rp_ids_of(&candidates));
	return 0;
}

static int32_t place_do_grow(struct rp_instance *inst, struct rp_ids own, struct placing *p)
{
	const struct rp_plan *plan = inst->plan;
	uint32_t n_own = rp_ids_count(own);
	struct rp_idset candidates;
	plan_shared(plan, &inst->owners, &candidates);
	rp_idset_andnot(&candidates, rp_ids_of(&candidates), rp_ids_of(&plan->reserved));
	if (plan->settings.options & OPT_FULL_PCPUS_ONLY) {
		if (check_whole_cores(inst, p, rp_ids_of(&candidates), own, &candidates))
			return -RP_ENOSPC;
		rp_idset_andnot(&candidates, rp_ids_of(&candidates), own);
	}
	uint32_t n_free = n_own + rp_ids_count(rp_ids_of(&candidates));
	if (p->n > n_free)
		return refuse_count(p, n_free);
	uint32_t more = (uint32_t)p->n - n_own;
	if (machine_grow(plan->machine, own, rp_ids_of(&candidates), more, &p->cpus) ||
	    check_shared_left(inst, p))
		return -RP_ENOSPC;
	char cpus[SET_TEXT_MAX], had[SET_TEXT_MAX];
	(void)snprintf(p->text, sizeof p->text, "CPUs %s: grown by the %u nearest to its CPUs %s",
		       modhost_set_text(rp_ids_of(&p->cpus), cpus, sizeof cpus), more,
		       modhost_set_text(own, had, sizeof had));
	return 0;
}

int32_t place_resize(struct rp_instance *inst, rp_ctr ctr, struct rp_ids own, int64_t n,
		     struct placing *p)
{
	*p = (struct placing){.ctr = ctr, .n = n};
	uint32_t n_own = rp_ids_count(own);
	if (n == n_own) {
		rp_idset_copy(&p->cpus, own);
		(void)snprintf(p->text, sizeof p->text, "keeps its CPUs");
		return 0;
	}
	if (check_alignment(inst->plan, p))
		return -RP_ENOSPC;
	if (n > n_own)
		return place_do_grow(inst, own, p);
	int32_t r = plan_take(inst->plan, own, (uint32_t)n, &p->cpus);
	if (!r)
		place_describe(inst->plan, p, own);
	return r;
}

/*
 * Returns nonzero if the CPUs satisfy full-pcpus-only. On nodes with different kinds of cores the
 * option aligns nothing, so every set satisfies it.
 */
static int passes_as_cores(const struct rp_plan *plan, struct rp_ids cpus)
{
	struct rp_idset whole;
	if (!(plan->settings.options & OPT_FULL_PCPUS_ONLY) || plan->machine->threads == 1)
		return 1;
	machine_whole_cores(plan->machine, cpus, &whole);
	return rp_ids_equal(rp_ids_of(&whole), cpus);
}

int place_passes(struct rp_instance *inst, rp_ctr ctr, struct rp_ids cpus)
{
	const struct rp_plan *plan = inst->plan;
	struct placing p = {.ctr = ctr, .n = rp_ids_count(cpus)};
	if (!passes_as_cores(plan, cpus))
		return 0;
	if (!rp_ids_overlap(cpus, rp_ids_of(&plan->iso)))
		return 1;
	return rp_ids_subset(cpus, rp_ids_of(&plan->iso)) && isolation_reason(inst, &p);
}

/* ---- explanations ---------------------------------------------------------------------------- */

void place_explain_refused(struct rp_instance *inst, const struct rp_ctr_info *info,
			   const struct placing *p)
{
	const struct modhost *h = &inst->h;
	modhost_note(h, info->ctr, "Guaranteed pod, request of %lld whole CPU%s: exclusive CPUs",
		     (long long)p->n, p->n == 1 ? "" : "s");
}

void place_explain(struct rp_instance *inst, const struct rp_ctr_info *info,
		   const struct placing *p)
{
	const struct modhost *h = &inst->h;
	place_explain_refused(inst, info, p);
	if (p->hint[0])
		modhost_note(h, info->ctr, "%s", p->hint);
	modhost_decided_line(h, info->ctr, p->decided_at, p->text);
}

void place_explain_shared(struct rp_instance *inst, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	if (info->qos != RP_QOS_GUARANTEED)
		modhost_note_line(h, info->ctr, "the pod is not Guaranteed: shared CPUs");
	else if (info->cpu_request <= 0)
		modhost_note_line(h, info->ctr, "no CPU request: shared CPUs");
	else if (!ctr_may_own_cpus(info))
		modhost_note_line(h, info->ctr,
				  "the pod's own resources are its CPU limit: shared CPUs");
	else
		modhost_note(h, info->ctr,
			     "request of %lldm is not a whole number of CPUs: shared CPUs",
			     (long long)info->cpu_request);
	if (inst->plan->settings.options & OPT_STRICT_RESERVATION)
		modhost_decided_line(h, info->ctr, inst->plan->settings.options_at,
				     "shares all CPUs that are neither exclusive nor reserved "
				     "(strict-cpu-reservation)");
	else
		modhost_note_line(h, info->ctr, "shares all CPUs that are not exclusive");
}
