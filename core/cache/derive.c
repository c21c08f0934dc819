/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache/derive.h"

#include <stdio.h>
#include <string.h>

#define SHARES_MIN 2
#define SHARES_MAX 262144
#define ADJ_BURSTABLE_MIN 3
#define ADJ_BURSTABLE_MAX 999

uint32_t derive_qos(const char *cgroup_parent)
{
	if (strstr(cgroup_parent, "besteffort"))
		return RP_QOS_BEST_EFFORT;
	if (strstr(cgroup_parent, "burstable"))
		return RP_QOS_BURSTABLE;
	return RP_QOS_GUARANTEED;
}

int64_t derive_shares_to_mcpu(int64_t shares)
{
	if (shares <= SHARES_MIN || shares > SHARES_MAX)
		return shares > SHARES_MAX ? derive_shares_to_mcpu(SHARES_MAX) : 0;
	return (shares * 1000 + 512) / 1024;
}

int64_t derive_mcpu_to_shares(int64_t mcpu)
{
	if (mcpu <= 0)
		return SHARES_MIN;
	if (mcpu > (int64_t)SHARES_MAX * 1000 / 1024)
		return SHARES_MAX;
	int64_t shares = mcpu * 1024 / 1000;
	return shares < SHARES_MIN ? SHARES_MIN : shares;
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
		n.cpu_limit = n.cpu_request;
		n.mem_request = n.mem_limit;
		*ret = n;
		return;
	}
	if (res->quota != RP_NOT_SET && res->period != RP_NOT_SET && res->quota > 0 && res->period > 0)
		n.cpu_limit = (int64_t)(((__int128)res->quota * 1000 + res->period / 2) / res->period);
	if (qos == RP_QOS_BURSTABLE) {
		int64_t request = derive_mem_request(oom_score_adj, capacity);
		if (request && (!n.mem_limit || request < n.mem_limit)) {
			n.mem_request = request;
			*ret_estimated = true;
		}
	}
	*ret = n;
}

/* ---- annotations --------------------------------------------------------------------------------------------------- */

#define KEY_MAX 512

/*
 * The spellings of a key: KEY.DOMAIN, and for the predecessor's domain KEY.DOMAIN and DOMAIN/KEY. Each may carry a suffix that says for
 * whom it is; a key with a domain of its own is taken as it stands.
 */
static const char *lookup(const struct pod *pod, const char *stem, bool ours, const char *suffix)
{
	char key[KEY_MAX];
	static const char *const formats[] = {
		"%1$s." ANNOTATION_DOMAIN "%2$s",
		ANNOTATION_DOMAIN "/%1$s%2$s",
		"%1$s." ANNOTATION_ALIAS_DOMAIN "%2$s",
		ANNOTATION_ALIAS_DOMAIN "/%1$s%2$s",
	};
	if (!ours) {
		if (snprintf(key, sizeof key, "%s%s", stem, suffix) >= (int)sizeof key)
			return NULL;
		return kvs_get(&pod->annotations, key);
	}
	for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		int n = snprintf(key, sizeof key, formats[i], stem, suffix);
#pragma GCC diagnostic pop
		const char *value = n < (int)sizeof key ? kvs_get(&pod->annotations, key) : NULL;
		if (value)
			return value;
	}
	return NULL;
}

/* The key without our domain; *ret_ours is false for a key of somebody else's domain. */
static void stem_of(const char *key, char *stem, size_t size, bool *ret_ours)
{
	size_t n = strlen(key), domain = strlen(ANNOTATION_DOMAIN);
	*ret_ours = true;
	if (n > domain + 1 && !strcmp(key + n - domain, ANNOTATION_DOMAIN) && key[n - domain - 1] == '.')
		n -= domain + 1;
	else if (strchr(key, '/'))
		*ret_ours = false;
	if (n >= size)
		n = size - 1;
	memcpy(stem, key, n);
	stem[n] = '\0';
}

const char *annotation_effective(const struct pod *pod, const char *ctr_name, const char *key,
				 uint32_t *ret_scope)
{
	char stem[KEY_MAX], suffix[KEY_MAX];
	bool ours;
	if (!pod->annotations.n)
		return NULL;
	stem_of(key, stem, sizeof stem, &ours);
	for (uint32_t scope = RP_SCOPE_CONTAINER; scope <= RP_SCOPE_UNSCOPED; scope++) {
		suffix[0] = '\0';
		if (scope == RP_SCOPE_CONTAINER)
			(void)snprintf(suffix, sizeof suffix, "/container.%s", ctr_name);
		else if (scope == RP_SCOPE_POD)
			(void)snprintf(suffix, sizeof suffix, "/pod");
		const char *value = lookup(pod, stem, ours, suffix);
		if (!value)
			continue;
		if (ret_scope)
			*ret_scope = scope;
		return value;
	}
	return NULL;
}
