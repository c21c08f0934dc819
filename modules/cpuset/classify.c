/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the class of a container from its pod's annotations and from the resources
 * requested from the runtime. */
#include "modules/cpuset/cpuset.h"
#include "modules/lib/private/cpulist.h"
#include "modules/lib/private/follow.h"

#define SHARES_MAX 262144 /* the kernel's largest value; 256 CPUs and more have it */
#define CPUS_OF_SHARES_MAX 256

const char *const class_names[N_CLASSES] = {"shared", "integer", "annotated"};

/* ---- lists ----------------------------------------------------------------------------------- */

static const char *list_text(const struct rp_instance *inst, const struct rp_ctr_info *info,
			     const char *key)
{
	return inst->h.cache->pod_annotation(inst->h.ctx, info->pod, key);
}

/* Stores the CPUs that containers of other pods have because a scheduler chose them. */
static void followed_by_others(struct rp_instance *inst, const struct looked *c,
			       struct rp_idset *ret)
{
	struct ctr_list list = {0};
	rp_idset_clear(ret);
	int32_t n = inst->plan->isolation.follow ? ctr_list(&inst->h, &list, RP_ORDER_CREATED) : 0;
	for (int32_t i = 0; i < n; i++) {
		struct rp_ctr_info other;
		if (!ctr_info(&inst->h, list.ctrs[i], &other) && other.pod != c->info.pod &&
		    record_follows(inst, &other))
			rp_idset_or(ret, rp_ids_of(ret), other.cpus);
	}
	ctr_list_free(&list);
}

/* Stores the CPUs that a scheduler chose. With `had`, the container may already have them. */
static int32_t followed_cpus(struct rp_instance *inst, const struct looked *c, bool had,
			     struct rp_idset *ret)
{
	const struct rp_plan *p = inst->plan;
	struct follow_limits l = {.online = rp_ids_of(&p->machine->online),
				  .available = rp_ids_of(&p->cpus.available),
				  .reserved = rp_ids_of(&p->cpus.reserved),
				  .taken = rp_ids_none()};
	int32_t r = follow_cpus(&inst->h, c->info.pod, &l, ret);
	if (!r)
		r = isolation_check_named(&inst->h, &p->isolation, FOLLOW_ANNOTATION,
					  rp_ids_of(ret));
	if (r ||
	    (had && record_follows(inst, &c->info) && rp_ids_equal(c->info.cpus, rp_ids_of(ret))) ||
	    follow_shares(&inst->h, &c->info, rp_ids_of(ret)))
		return r;
	l.taken = rp_ids_of(&inst->owners.taken);
	return follow_cpus(&inst->h, c->info.pod, &l, ret);
}

int32_t named_cpus(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	const struct modhost *h = &inst->h;
	const struct rp_plan *p = inst->plan;
	if (c->follows)
		return followed_cpus(inst, c, false, ret);
	const char *key = c->keys.named, *list = list_text(inst, &c->info, key);
	char why[CPULIST_WHY_MAX], few[CPULIST_FEW_MAX];
	struct rp_idset wrong;
	uint32_t beyond;
	if (!cpulist_parse(list ? list : "", ret, &beyond, why))
		return modhost_fail(h, -RP_EINVAL, "annotation %s: invalid CPU list: %s", key, why);
	rp_idset_andnot(&wrong, rp_ids_of(ret), rp_ids_of(&p->machine->online));
	bool offline = !rp_ids_empty(rp_ids_of(&wrong));
	if (beyond && !offline)
		return modhost_fail(h, -RP_EINVAL, "annotation %s: CPU(s) not online: [%u]", key,
				    beyond);
	if (!offline)
		rp_idset_andnot(&wrong, rp_ids_of(ret), rp_ids_of(&p->cpus.available));
	if (!rp_ids_empty(rp_ids_of(&wrong)))
		return modhost_fail(h, -RP_EINVAL, "annotation %s: CPU(s) not %s: %s", key,
				    offline ? "online" : "available",
				    cpulist_few(rp_ids_of(&wrong), few));
	followed_by_others(inst, c, &wrong);
	rp_idset_and(&wrong, rp_ids_of(&wrong), rp_ids_of(ret));
	if (!rp_ids_empty(rp_ids_of(&wrong)))
		return modhost_fail(
			h, -RP_EINVAL,
			"annotation %s: CPU(s) that the scheduler chose for another pod: "
			"%s",
			key, cpulist_few(rp_ids_of(&wrong), few));
	return isolation_check_named(h, &p->isolation, key, rp_ids_of(ret));
}

bool named_here(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret)
{
	const char *list = list_text(inst, &c->info, c->keys.named);
	char why[CPULIST_WHY_MAX];
	struct rp_idset others;
	uint32_t beyond = 0, n;
	if (c->follows && followed_cpus(inst, c, true, ret)) {
		rp_idset_clear(ret);
		return false;
	}
	if (c->follows)
		return true;
	if (!list || !cpulist_parse(list, ret, &beyond, why))
		rp_idset_clear(ret);
	n = rp_ids_count(rp_ids_of(ret));
	followed_by_others(inst, c, &others);
	rp_idset_and(ret, rp_ids_of(ret), rp_ids_of(&inst->plan->cpus.available));
	rp_idset_andnot(ret, rp_ids_of(ret), rp_ids_of(&others));
	return !beyond && rp_ids_count(rp_ids_of(ret)) == n &&
	       isolation_permits(&inst->h, &inst->plan->isolation, rp_ids_of(ret));
}

/* Reads the list of forbidden CPUs. An invalid list forbids no CPU, so it never prevents the
 * creation of a container. */
static void read_forbidden(const struct rp_instance *inst, struct looked *c)
{
	const char *key = c->keys.forbidden;
	const char *list = c->class == CLASS_ANNOTATED ? NULL : list_text(inst, &c->info, key);
	char why[CPULIST_WHY_MAX];
	uint32_t beyond;
	rp_idset_clear(&c->forbidden);
	c->forbids = list && cpulist_parse(list, &c->forbidden, &beyond, why);
	if (list && !c->forbids)
		modhost_log(&inst->h, RP_LOG_WARNING, c->info.ctr,
			    "annotation %s is ignored: invalid CPU list: %s", key, why);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Returns the number of CPUs of a quota, or 0 if the quota is unset or not a whole number. */
static int64_t whole_quota(const struct rp_ctr_info *i)
{
	bool whole =
		i->asked_quota > 0 && i->asked_period > 0 && i->asked_quota % i->asked_period == 0;
	return whole ? i->asked_quota / i->asked_period : 0;
}

/* Returns true if the shares are at most a hundredth of a CPU away from n CPUs. */
static bool shares_are(int64_t shares, int64_t n)
{
	if (shares == RP_NOT_SET || n < 1)
		return false;
	if (shares >= SHARES_MAX && n >= CPUS_OF_SHARES_MAX)
		return true;
	int64_t off = shares * 100 - n * 102400;
	return off <= 1024 && off >= -1024;
}

/* Returns the number of CPUs from the exact request and limit that a webhook recorded; 0: not an
 * integer container. */
static int64_t exact_cpus(const struct rules *rules, const struct rp_ctr_info *i)
{
	bool memory = i->mem_limit > 0 && i->mem_request == i->mem_limit;
	if (i->cpu_request <= 0 || i->cpu_request % 1000 || i->cpu_request != i->cpu_limit ||
	    (rules->needs_memory && !memory && !(i->flags & RP_CTR_CLAIM)))
		return 0;
	return i->cpu_request / 1000;
}

static int64_t integer_cpus(const struct rules *rules, const struct rp_ctr_info *i)
{
	if (i->flags & (RP_CTR_EXACT_NEEDS | RP_CTR_POD_RESOURCES))
		return exact_cpus(rules, i);
	if (rules->needs_memory && i->mem_limit <= 0)
		return 0;
	int64_t n = whole_quota(i);
	if (n)
		return shares_are(i->asked_shares, n) ? n : 0;
	if (!rules->by_qos || i->asked_quota > 0 || i->qos != RP_QOS_GUARANTEED ||
	    i->cpu_request % 1000)
		return 0;
	return i->cpu_request / 1000;
}

static void look_by(const struct rp_instance *inst, const struct rp_ctr_info *info,
		    struct rules rules, struct looked *ret)
{
	int64_t n = integer_cpus(&rules, info);
	if (!(info->flags & RP_CTR_CLAIM)) /* the number of CPUs of a claim is fixed */
		n = isolation_cores(&inst->plan->isolation, n);
	ret->info = *info;
	ret->n = 0;
	ret->follows = false;
	ret->keys = record_keys(inst, info->ctr);
	ret->rules = rules;
	if (list_text(inst, info, ret->keys.named)) {
		ret->class = CLASS_ANNOTATED;
		ret->why = "CPUs named by its pod";
	} else if (inst->plan->isolation.follow && follow_wants(&inst->h, info->pod)) {
		ret->class = CLASS_ANNOTATED;
		ret->follows = true;
		ret->why = "CPUs chosen by the scheduler";
	} else if (n > 0) {
		ret->class = CLASS_INTEGER;
		ret->why = "requests a whole number of CPUs as request and limit";
		ret->n = n > RP_CPUS_MAX ? RP_CPUS_MAX + 1 : (uint32_t)n;
	} else {
		ret->class = CLASS_SHARED;
		ret->why = "does not request a whole number of CPUs as request and limit";
	}
	read_forbidden(inst, ret);
}

void look_at(const struct rp_instance *inst, const struct rp_ctr_info *info, struct looked *ret)
{
	look_by(inst, info, record_rules(inst, info->ctr), ret);
}

void look_at_resized(const struct rp_instance *inst, const struct rp_ctr_info *info,
		     struct looked *ret)
{
	look_by(inst, info, inst->plan->rules, ret);
}
