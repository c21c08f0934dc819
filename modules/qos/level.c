/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a level beyond CPUs and memory nodes, and the annotations of pods about them. */
#include <string.h>

#include "modules/lib/private/koord.h"
#include "modules/lib/private/number.h"
#include "modules/qos/qos.h"

#define DEFAULT_PERIOD 100000
#define QUOTA_MIN 1000 /* smallest quota that the kernel accepts, in microseconds */

/* ---- settings that may change later ---------------------------------------------------------- */

/* Stages the quota of the level. A quota that the level no longer sets is restored to the runtime's
 * value. */
static int32_t stage_quota(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   struct record *rec)
{
	const struct modhost *h = &inst->h;
	const struct level_settings *s = &inst->plan->levels[rec->level];
	int64_t period = info->asked_period > 0 ? info->asked_period : DEFAULT_PERIOD, quota = -1;
	bool had = rec->set & SET_QUOTA;
	rec->set &= ~SET_QUOTA;
	if (s->quota == QUOTA_AS_IS && !had)
		return 0;
	if (s->quota == QUOTA_AS_IS) {
		quota = info->asked_quota > 0 ? info->asked_quota : -1;
	} else if (s->quota != QUOTA_NONE && info->cpu_limit > 0) {
		quota = info->cpu_limit * period / 1000 *
			(s->quota == QUOTA_BURST ? s->burst : 100) / 100;
		quota = quota < QUOTA_MIN ? QUOTA_MIN : quota;
	}
	rec->set |= s->quota == QUOTA_AS_IS ? 0 : SET_QUOTA;
	int32_t r = quota > 0 ? h->cache->set_int(h->ctx, txn, info->ctr, RP_F_PERIOD, period) : 0;
	return r ? r : h->cache->set_int(h->ctx, txn, info->ctr, RP_F_QUOTA, quota);
}

/* Stages a class of the level. A class that an annotation names is left to the controller. */
static int32_t stage_class(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct record *rec,
			   uint32_t k)
{
	static const struct {
		uint32_t field, bit;
		const char *key;
	} classes[N_CLASSES] = {
		[CLASS_RDT] = {RP_F_RDT_CLASS, SET_RDT, "rdtclass.resource-policy.nri.io"},
		[CLASS_BLOCKIO] = {RP_F_BLOCKIO_CLASS, SET_BLOCKIO,
				   "blockioclass.resource-policy.nri.io"},
		[CLASS_CPU] = {RP_F_CPU_CLASS, SET_CPU_CLASS, "cpuclass.resource-policy.nri.io"},
	};
	const struct modhost *h = &inst->h;
	const char *class = inst->plan->levels[rec->level].classes[k];
	bool had = rec->set & classes[k].bit;
	if (*class && h->cache->annotation(h->ctx, ctr, classes[k].key, NULL))
		class = "";
	rec->set &= ~classes[k].bit;
	if (!*class && !had)
		return 0;
	rec->set |= *class ? classes[k].bit : 0;
	return h->cache->set_text(h->ctx, txn, ctr, classes[k].field, class);
}

int32_t level_stage(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, struct record *rec)
{
	const struct level_settings *s = &inst->plan->levels[rec->level];
	struct rp_ctr_info info;
	if (rec->role >= ROLE_INIT || (rec->flags & ASK_LOST) ||
	    (!s->any && !(rec->set & ~SET_LOOSE)))
		return 0;
	int32_t r = ctr_info(&inst->h, ctr, &info);
	if (!r)
		r = stage_quota(inst, txn, &info, rec);
	for (uint32_t k = 0; !r && k < N_CLASSES; k++)
		r = stage_class(inst, txn, ctr, rec, k);
	return r;
}

/* ---- settings of a creation ------------------------------------------------------------------ */

/* Stages a cgroup file. Runtimes refuse such files on v1. */
static int32_t stage_file(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, const char *file,
			  int64_t value)
{
	const struct modhost *h = &inst->h;
	char text[32];
	if (h->work && koord_is_v1(h, "memory")) {
		modhost_note(h, ctr, "%s is not set: it needs cgroup v2", file);
		return 0;
	}
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	int32_t r = h->cache->set_pair(h->ctx, txn, ctr, RP_F_UNIFIED, file, text);
	return r == -RP_ENOTSUP ? 0 : r; /* the container runs already */
}

/* Stages the pod's setting for bursts beyond its quota. */
static int32_t stage_burst(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
			   const struct ask *a)
{
	if (!a->burst_policy || !strcmp(a->burst_policy, "default"))
		return 0;
	if (!strcmp(a->burst_policy, "closed"))
		return stage_file(inst, txn, info->ctr, "cpu.max.burst", 0);
	if (!strcmp(a->burst_policy, "static") && info->asked_quota > 0)
		return stage_file(inst, txn, info->ctr, "cpu.max.burst",
				  info->asked_quota *
					  (a->burst_percent < 100 ? a->burst_percent : 100) / 100);
	modhost_note(&inst->h, info->ctr, "cpu_burst_policy \"%.32s\" is ignored: %s",
		     a->burst_policy,
		     strcmp(a->burst_policy, "static") != 0
			     ? "only default, closed and static are supported"
			     : "it has no CPU quota");
	return 0;
}

int32_t level_begin(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info,
		    const struct ask *a)
{
	const struct level_settings *s = &inst->plan->levels[a->level];
	int32_t r = 0;
	if (s->memory_low > 0 && info->mem_request > 0)
		r = stage_file(inst, txn, info->ctr, "memory.low",
			       number_part(info->mem_request, s->memory_low));
	if (!r && s->memory_high > 0 && info->mem_limit > 0)
		r = stage_file(inst, txn, info->ctr, "memory.high",
			       number_part(info->mem_limit, s->memory_high));
	for (uint32_t i = 0; i < sizeof a->not_followed / sizeof *a->not_followed; i++)
		if (a->not_followed[i])
			modhost_note(&inst->h, info->ctr, "%s is ignored: not supported",
				     a->not_followed[i]);
	return r ? r : stage_burst(inst, txn, info, a);
}
