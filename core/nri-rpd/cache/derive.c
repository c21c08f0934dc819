/* SPDX-License-Identifier: Apache-2.0 */
/* Derived values: QoS class, requests from shares and OOM score, and the spellings of
 * annotations. */
#include "core/nri-rpd/cache/derive.h"

#include <string.h>

#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/lib/util/str.h"

#define KUBEPODS "kubepods-"
#define KUBEPODS_LEN (sizeof KUBEPODS - 1)
#define SYSTEM "system-" /* partition of system pods, above the classes */
#define SYSTEM_LEN (sizeof SYSTEM - 1)
#define ADJ_BURSTABLE_MIN 3
#define ADJ_BURSTABLE_MAX 999

/* Returns true if the component of a path is the kubelet's cgroup or slice of a class, or a pod's
 * slice below that: "burstable", "kubepods-burstable.slice", "kubepods-burstable-podUID.slice",
 * "kubepods-system-burstable-podUID.slice". */
static bool qos_names(const char *name, size_t len, const char *class)
{
	const char *end = name + len;
	size_t n = strlen(class);
	if (len == n && !memcmp(name, class, n))
		return true;
	for (const char *at = name;
	     (at = memmem(at, (size_t)(end - at), KUBEPODS, KUBEPODS_LEN));) {
		at += KUBEPODS_LEN;
		if ((size_t)(end - at) >= SYSTEM_LEN && !memcmp(at, SYSTEM, SYSTEM_LEN))
			at += SYSTEM_LEN;
		size_t left = (size_t)(end - at);
		if (left >= n && !memcmp(at, class, n) &&
		    (left == n || at[n] == '-' || at[n] == '.'))
			return true;
	}
	return false;
}

/* Derives the QoS class from the last two components of the path. Directories above have names
 * chosen by users. */
uint32_t derive_qos(const char *cgroup_parent)
{
	const char *end = cgroup_parent + strlen(cgroup_parent);
	for (unsigned i = 0; i < 2; i++) {
		while (end > cgroup_parent && end[-1] == '/')
			end--;
		const char *name = end;
		while (name > cgroup_parent && name[-1] != '/')
			name--;
		if (qos_names(name, (size_t)(end - name), "besteffort"))
			return RP_QOS_BEST_EFFORT;
		if (qos_names(name, (size_t)(end - name), "burstable"))
			return RP_QOS_BURSTABLE;
		end = name;
	}
	return RP_QOS_GUARANTEED;
}

const char *derive_qos_name(uint32_t qos)
{
	static const char *const names[] = {
		[RP_QOS_GUARANTEED] = "Guaranteed",
		[RP_QOS_BURSTABLE] = "Burstable",
		[RP_QOS_BEST_EFFORT] = "BestEffort",
	};
	return qos < sizeof names / sizeof names[0] ? names[qos] : "unknown";
}

int64_t derive_shares_to_mcpu(int64_t shares)
{
	if (shares <= DERIVE_SHARES_MIN || shares > DERIVE_SHARES_MAX)
		return shares > DERIVE_SHARES_MAX ? derive_shares_to_mcpu(DERIVE_SHARES_MAX) : 0;
	return (shares * 1000 + 1023) / 1024;
}

int64_t derive_mcpu_to_shares(int64_t mcpu)
{
	if (mcpu <= 0)
		return DERIVE_SHARES_MIN;
	if (mcpu > (int64_t)DERIVE_SHARES_MAX * 1000 / 1024)
		return DERIVE_SHARES_MAX;
	int64_t shares = mcpu * 1024 / 1000;
	return shares < DERIVE_SHARES_MIN ? DERIVE_SHARES_MIN : shares;
}

int64_t derive_quota_to_mcpu(int64_t quota, int64_t period)
{
	__int128 mcpu = ((__int128)quota * 1000 + period / 2) / period;
	return mcpu < DERIVE_MCPU_MAX ? (int64_t)mcpu : DERIVE_MCPU_MAX;
}

static int64_t adj_of(int64_t request, int64_t capacity)
{
	return 1000 - (int64_t)((__int128)1000 * request / capacity);
}

int64_t derive_mem_request(int64_t adj, uint64_t capacity)
{
	if (adj < ADJ_BURSTABLE_MIN || adj > ADJ_BURSTABLE_MAX || !capacity || capacity > INT64_MAX)
		return 0;
	int64_t cap = (int64_t)capacity;
	__int128 exact = (__int128)(1000 - adj) * cap;
	int64_t request = (int64_t)((exact + 999) / 1000);
	while (request > 0 && adj_of(request - 1, cap) == adj)
		request--;
	while (adj_of(request, cap) > adj)
		request++;
	return request;
}

void derive_needs(uint32_t qos, const struct values *res, int64_t oom_score_adj, uint64_t capacity,
		  struct needs *ret, bool *ret_estimated)
{
	struct needs n = {0};
	*ret_estimated = false;
	if (res->shares != RP_NOT_SET)
		n.cpu_request = derive_shares_to_mcpu(res->shares);
	if (res->mem_limit != RP_NOT_SET && res->mem_limit > 0)
		n.mem_limit = res->mem_limit;
	if (qos == RP_QOS_GUARANTEED) {
		/* the scale of shares ends at 256 CPUs, the scale of quotas does not */
		if (res->shares >= DERIVE_SHARES_MAX && res->quota > 0 && res->period > 0)
			n.cpu_request = derive_quota_to_mcpu(res->quota, res->period);
		n.cpu_limit = n.cpu_request;
		n.mem_request = n.mem_limit;
		*ret = n;
		return;
	}
	if (res->quota != RP_NOT_SET && res->period != RP_NOT_SET && res->quota > 0 &&
	    res->period > 0)
		n.cpu_limit = derive_quota_to_mcpu(res->quota, res->period);
	if (qos == RP_QOS_BURSTABLE) {
		int64_t request = derive_mem_request(oom_score_adj, capacity);
		if (request && (!n.mem_limit || request < n.mem_limit)) {
			n.mem_request = request;
			*ret_estimated = true;
		}
	}
	*ret = n;
}

/* ---- annotations ----------------------------------------------------------------------------- */

#define SPELLINGS 4u
#define NO_RANK UINT32_MAX

/* Returns the rest of text after the prefix, or NULL. */
static const char *derive_after(const char *text, const char *prefix, size_t len)
{
	/* most texts differ in the first character */
	return *text == *prefix && strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

static const char *after_domain(const char *text, uint32_t *ret_alias)
{
	const char *rest = derive_after(text, ANNOTATION_DOMAIN, sizeof ANNOTATION_DOMAIN - 1);
	*ret_alias = 0;
	if (rest)
		return rest;
	*ret_alias = 2;
	return derive_after(text, ANNOTATION_ALIAS_DOMAIN, sizeof ANNOTATION_ALIAS_DOMAIN - 1);
}

/*
 * Returns the rest of the key after the name in one of its spellings, or NULL. Spellings in order
 * of preference: STEM.DOMAIN, DOMAIN/STEM, and both with the alias domain. Keys of other domains
 * have one spelling.
 */
static const char *behind_name(const char *key, const char *stem, size_t len, bool ours,
			       uint32_t *ret_spelling)
{
	const char *rest = derive_after(key, stem, len);
	*ret_spelling = 0;
	if (!ours)
		return rest;
	if (rest && *rest == '.')
		return after_domain(rest + 1, ret_spelling);
	rest = after_domain(key, ret_spelling);
	(*ret_spelling)++;
	return rest && *rest == '/' ? derive_after(rest + 1, stem, len) : NULL;
}

static uint32_t scope_of(const char *suffix, const char *ctr_name)
{
	static const char container[] = "/container.";
	const char *name = derive_after(suffix, container, sizeof container - 1);
	if (!*suffix)
		return RP_SCOPE_UNSCOPED;
	if (name)
		return strcmp(name, ctr_name) == 0 ? RP_SCOPE_CONTAINER : 0;
	return strcmp(suffix, "/pod") == 0 ? RP_SCOPE_POD : 0;
}

/* Returns the length of the key without our domain. *ret_ours: false for a key of another
 * domain. */
static size_t stem_of(const char *key, bool *ret_ours)
{
	size_t n = strlen(key);
	*ret_ours = true;
	if (str_has_suffix(key, "." ANNOTATION_DOMAIN))
		return n - sizeof ANNOTATION_DOMAIN;
	*ret_ours = !strchr(key, '/') && !str_has_suffix(key, ".nri.io");
	return n;
}

bool annotation_is(const char *key, const char *name)
{
	bool ours;
	uint32_t spelling;
	size_t len = stem_of(name, &ours);
	const char *suffix = behind_name(key, name, len, ours, &spelling);
	if (!suffix)
		suffix = derive_after(key, name, strlen(name));
	return suffix && (!*suffix || *suffix == '/');
}

bool annotations_ours(const struct kvs *annotations)
{
	KVS_EACH(k, v, annotations)
	{
		if (strstr(k, ANNOTATION_DOMAIN) || strstr(k, ANNOTATION_ALIAS_DOMAIN))
			return true;
	}
	return false;
}

const char *annotation_effective(const struct pod *pod, const char *ctr_name, const char *key,
				 uint32_t *ret_scope)
{
	const struct kvs *heard = pod_heard(pod);
	bool ours;
	/* No key of the pod begins like this one. Keys of our domain have other spellings too,
	 * which pod->annotated covers. */
	if (!pod->annotated && !(heard->beginnings & kvs_beginning(key)))
		return NULL;
	size_t len = stem_of(key, &ours);
	uint32_t best = NO_RANK;
	const char *found = NULL;
	if (ours && !pod->annotated)
		return NULL;
	KVS_EACH(k, v, heard)
	{
		uint32_t spelling;
		const char *suffix = behind_name(k, key, len, ours, &spelling);
		uint32_t scope = suffix ? scope_of(suffix, ctr_name) : 0;
		uint32_t rank = scope ? scope * SPELLINGS + spelling : NO_RANK;
		if (rank >= best)
			continue;
		best = rank;
		found = v;
	}
	if (found && ret_scope)
		*ret_scope = best / SPELLINGS;
	return found;
}

static uint32_t flag_of(const struct ctr *ctr, const char *key, uint32_t flag)
{
	const char *text = annotation_effective(ctr->pod, ctr->name, key, NULL);
	return text && str_eq(text, "true") ? flag : 0;
}

void derive_preserved(struct ctr *ctr)
{
	ctr->flags &= ~(RP_CTR_PRESERVE_CPU | RP_CTR_PRESERVE_MEM);
	ctr->flags |= flag_of(ctr, "cpu.preserve", RP_CTR_PRESERVE_CPU) |
		      flag_of(ctr, "memory.preserve", RP_CTR_PRESERVE_MEM);
}
