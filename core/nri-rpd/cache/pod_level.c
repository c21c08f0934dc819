/* SPDX-License-Identifier: Apache-2.0 */
/* Pod-level resources: decides from the sums of a pod which amounts of a container are its own. */
#include "core/nri-rpd/cache/pod_level.h"

#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/feed.h"

#define SIBLINGS_MAX 256u /* containers of a pod that are summed; no pod has more */

/* Returns the pod's CPU request; INT64_MAX: unknown, because shares end at 256 CPUs. */
static int64_t pod_level_total(const struct pod *pod)
{
	const struct needs *sums = &pod->sums;
	if (sums->cpu_request < derive_shares_to_mcpu(INT64_MAX))
		return sums->cpu_request;
	return pod->qos == RP_QOS_GUARANTEED && sums->cpu_limit > sums->cpu_request
		       ? sums->cpu_limit
		       : INT64_MAX;
}

static int64_t pod_level_quota_of(const struct ctr *ctr)
{
	const struct values *v = &ctr->requested;
	return v->quota > 0 && v->period > 0 ? derive_quota_to_mcpu(v->quota, v->period) : 0;
}

/* Returns true if the container's CPU limit may be the pod's, because the values are equal. */
static bool pod_level_may_be_pods(const struct ctr *ctr)
{
	const struct needs *sums = &ctr->pod->sums;
	int64_t quota = pod_level_quota_of(ctr);
	if (sums->cpu_limit > 0 || quota > 0)
		return quota == sums->cpu_limit;
	return derive_shares_to_mcpu(ctr->requested.shares) >= sums->cpu_request;
}

struct siblings {
	struct needs all; /* sum of the pod's other live containers */
	int64_t certain; /* CPU requests of containers whose limit is certainly not the pod's */
};

static struct siblings pod_level_siblings(const struct ctr *ctr)
{
	struct siblings sum = {0};
	uint32_t n = 0;
	for (const struct ctr *s = ctr->pod->ctrs; s && n < SIBLINGS_MAX; s = s->pod_next, n++) {
		/* a container that is created again has the name of the ended one */
		if (s == ctr || !ctr_live(s->cur.state) || str_eq(s->name, ctr->name))
			continue;
		sum.all.cpu_request += s->wanted.cpu_request;
		sum.all.mem_limit += s->wanted.mem_limit;
		if (!pod_level_may_be_pods(s))
			sum.certain += s->wanted.cpu_request;
	}
	return sum;
}

/*
 * Returns true if the container's request exceeds the rest of the pod's request, and therefore is
 * the pod's. If the containers' certain values exceed the pod's, the pod's values are older than a
 * resize and prove nothing. A Synchronize lists containers in any order, so containers with certain
 * values are counted first.
 */
static bool pod_level_exceeds(const struct ctr *ctr, const struct siblings *sum)
{
	int64_t total = pod_level_total(ctr->pod), request = ctr->wanted.cpu_request;
	bool certain = !pod_level_may_be_pods(ctr);
	if (certain && sum->certain + request > total)
		return false;
	if (certain && ctr->cur.state != RP_STATE_CREATING)
		return false;
	return sum->all.cpu_request + request > total;
}

static void pod_level_amend_memory(struct ctr *ctr, const struct siblings *sum)
{
	int64_t total = ctr->pod->sums.mem_limit, limit = ctr->wanted.mem_limit;
	if (!total || limit != total || sum->all.mem_limit + limit <= total)
		return;
	ctr->wanted.mem_limit = 0;
	if (ctr->pod->qos == RP_QOS_GUARANTEED)
		ctr->wanted.mem_request = 0;
	ctr->flags |= RP_CTR_POD_RESOURCES;
}

void pod_level_amend(struct ctr *ctr)
{
	const struct needs *sums = &ctr->pod->sums;
	struct needs *own = &ctr->wanted;
	if (sums->cpu_request == RP_NOT_SET || ctr->pod->sums_stale)
		return;
	const struct siblings sum = pod_level_siblings(ctr);
	pod_level_amend_memory(ctr, &sum);
	if (own->cpu_request > 0 && pod_level_exceeds(ctr, &sum)) {
		own->cpu_request = own->cpu_limit = 0;
		ctr->flags |= RP_CTR_POD_RESOURCES;
	} else if (sums->cpu_limit > 0 && pod_level_quota_of(ctr) == sums->cpu_limit &&
		   own->cpu_request < sums->cpu_limit && own->cpu_request != sums->cpu_request) {
		/* In a Guaranteed pod the limit was derived from the request. Otherwise the
		 * container may use that much, whether the limit is its own or the pod's. */
		if (ctr->pod->qos == RP_QOS_GUARANTEED)
			own->cpu_limit = 0;
		ctr->flags |= RP_CTR_POD_RESOURCES;
	}
}

void pod_level_keep(struct ctr *ctr, const struct needs *had)
{
	struct needs *own = &ctr->wanted;
	own->cpu_request = had->cpu_request ? own->cpu_request : 0;
	own->cpu_limit = had->cpu_limit ? own->cpu_limit : 0;
	own->mem_request = had->mem_request ? own->mem_request : 0;
	own->mem_limit = had->mem_limit ? own->mem_limit : 0;
}

const struct needs *pod_level_own(const struct cache *c, const struct pod *pod)
{
	const struct fed_pod *fed = pod_fed(c, pod);
	if (fed)
		return fed->has_own ? &fed->own : NULL;
	for (const struct ctr *ctr = pod->ctrs; ctr; ctr = ctr->pod_next)
		if (ctr->flags & RP_CTR_POD_RESOURCES)
			return &pod->sums;
	return NULL;
}
