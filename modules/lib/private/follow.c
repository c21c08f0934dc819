/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that a scheduler chose for a pod. */
#include "modules/lib/private/follow.h"

#include <string.h>

#include "modules/lib/private/annotation.h"
#include "modules/lib/private/cpulist.h"

#define TEXT_MAX 16384u /* longest annotation that is read */
#define WHAT "annotation " FOLLOW_ANNOTATION

/* Stores the list of CPUs in *ret, which stays NULL if the annotation names none. Returns 0, or an
 * error with a message. */
static int32_t follow_text(const struct modhost *h, rp_pod pod, const char **ret)
{
	const char *text = h->cache->pod_annotation(h->ctx, pod, FOLLOW_ANNOTATION);
	rp_cfg map, list;
	*ret = NULL;
	if (!text)
		return 0;
	if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
		return modhost_fail(h, -RP_EINVAL, WHAT ": longer than %u characters", TEXT_MAX);
	int32_t r = annotation_parse(h, WHAT, text, &map);
	if (!r)
		r = annotation_member(h, WHAT, map, "cpuset", RP_NODE_SCALAR, &list);
	if (r)
		return r;
	const char *cpus = h->config->text(h->ctx, list, "");
	*ret = *cpus ? cpus : NULL;
	return 0;
}

bool follow_wants(const struct modhost *h, rp_pod pod)
{
	const char *list;
	return follow_text(h, pod, &list) || list;
}

static int32_t follow_refuse(const struct modhost *h, struct rp_ids cpus, const char *what)
{
	char few[CPULIST_FEW_MAX];
	return modhost_fail(h, -RP_EINVAL, WHAT ": CPU(s) %s: %s", what, cpulist_few(cpus, few));
}

/* Checks the CPUs against the sets of the policy. */
static int32_t follow_check(const struct modhost *h, const struct follow_limits *l,
			    struct rp_ids cpus)
{
	const struct {
		struct rp_ids set;
		bool is_allowed;
		const char *what;
	} checks[] = {
		{l->online, true, "not online"},
		{l->available, true, "not available"},
		{l->reserved, false, "reserved"},
		{l->taken, false, "exclusive to containers of other pods"},
	};
	for (uint32_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		struct rp_idset wrong;
		if (checks[i].is_allowed)
			rp_idset_andnot(&wrong, cpus, checks[i].set);
		else
			rp_idset_and(&wrong, cpus, checks[i].set);
		if (!rp_ids_empty(rp_ids_of(&wrong)))
			return follow_refuse(h, rp_ids_of(&wrong), checks[i].what);
	}
	return 0;
}

int32_t follow_cpus(const struct modhost *h, rp_pod pod, const struct follow_limits *limits,
		    struct rp_idset *ret)
{
	struct rp_pod_info info = {.size = sizeof info};
	char why[CPULIST_WHY_MAX];
	const char *list;
	uint32_t beyond;
	rp_idset_clear(ret);
	int32_t r = follow_text(h, pod, &list);
	if (r)
		return r;
	if (!cpulist_parse(list ? list : "", ret, &beyond, why))
		return modhost_fail(h, -RP_EINVAL, WHAT ": cpuset: invalid CPU list: %s", why);
	if (beyond)
		return modhost_fail(h, -RP_EINVAL, WHAT ": CPU(s) not online: [%u]", beyond);
	r = follow_check(h, limits, rp_ids_of(ret));
	if (r)
		return r;
	/* A scheduler chooses no more CPUs than it accounts for. */
	int64_t n = rp_ids_count(rp_ids_of(ret));
	r = h->cache->get_pod(h->ctx, pod, &info);
	if (r)
		return modhost_fail(h, r, WHAT ": its pod is unknown");
	if (info.cpu_request != RP_NOT_SET && info.cpu_request < n * 1000)
		return modhost_fail(h, -RP_EINVAL,
				    WHAT ": names %lld CPUs, but the pod requests %lldm",
				    (long long)n, (long long)info.cpu_request);
	return 0;
}

bool follow_shares(const struct modhost *h, const struct rp_ctr_info *info, struct rp_ids cpus)
{
	struct ctr_list list = {0};
	int32_t n = ctr_list(h, &list, RP_ORDER_CREATED);
	bool found = false;
	for (int32_t i = 0; !found && i < n; i++) {
		struct rp_ctr_info other;
		found = list.ctrs[i] != info->ctr && !ctr_info(h, list.ctrs[i], &other) &&
			other.pod == info->pod && rp_ids_equal(other.exclusive, cpus);
	}
	ctr_list_free(&list);
	return found;
}
