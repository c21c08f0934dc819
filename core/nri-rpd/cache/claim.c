/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/cache/claim.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define ID_PREFIX "claim:" /* before the claim's UID in ids of its pod and container */

struct ctr *claim_of_id(struct cache *c, const char *id)
{
	struct ctr *ctr = cache_ctr(c, id);
	return ctr && ctr->device ? ctr : NULL;
}

struct ctr *claim_by_uid(struct cache *c, const char *uid)
{
	char id[sizeof ID_PREFIX + CLAIM_UID_MAX];
	if (strlen(uid) > CLAIM_UID_MAX)
		return NULL;
	(void)snprintf(id, sizeof id, ID_PREFIX "%s", uid);
	return claim_of_id(c, id);
}

struct ctr *claim_by_cdi(struct cache *c, const char *name)
{
	return str_has_prefix(name, CLAIM_CDI) ? claim_by_uid(c, name + sizeof CLAIM_CDI - 1)
					       : NULL;
}

const char *claim_uid(const struct ctr *claim)
{
	return claim->id + sizeof ID_PREFIX - 1;
}

int claim_set_users(struct ctr *claim, const char *users)
{
	if (claim->users && str_eq(claim->users, users))
		return 0;
	char *copy = strdup(users);
	if (!copy)
		return -ENOMEM;
	free(claim->users);
	claim->users = copy;
	claim->store.facts = false;
	return 0;
}

int claim_mark(struct ctr *ctr, const char *device, const char *users)
{
	ctr->device = strdup(device);
	ctr->flags |= RP_CTR_CLAIM;
	ctr->pod->qos = RP_QOS_GUARANTEED;
	return ctr->device ? claim_set_users(ctr, users) : -ENOMEM;
}

int claim_put(struct cache *c, const struct claim_desc *desc, struct ctr **ret, struct err *err)
{
	_free_ char *id = str_printf(ID_PREFIX "%s", desc->uid);
	struct pod *pod;
	if (!id)
		return err_errno(err, -ENOMEM, "claim %s/%s", desc->ns, desc->name);
	const struct pod_desc pod_desc = {.id = id,
					  .name = desc->name,
					  .uid = id,
					  .ns = desc->ns,
					  .runtime_handler = "",
					  .cgroup_parent = ""};
	const struct ctr_desc ctr_desc = {.id = id,
					  .pod_id = id,
					  .name = CLAIM_NAME,
					  .cgroups_path = "",
					  .state = RP_STATE_CREATING,
					  .oom_score_adj = RP_NOT_SET,
					  .res = {.amounts = CPU_AMOUNTS_NONE}};
	int r = cache_put_pod(c, &pod_desc, &pod, err);
	if (r)
		return r;
	r = cache_put_ctr(c, &ctr_desc, ret, err);
	if (!r && claim_mark(*ret, desc->device, desc->users))
		r = err_errno(err, -ENOMEM, "claim %s/%s", desc->ns, desc->name);
	if (r) {
		cache_del_pod(c, pod);
		return r;
	}
	(*ret)->wanted = (struct needs){.cpu_request = desc->cpus * 1000,
					.cpu_limit = desc->cpus * 1000,
					.mem_request = desc->memory,
					.mem_limit = desc->memory};
	(*ret)->cur.needs = (*ret)->wanted;
	(*ret)->flags |= RP_CTR_EXACT_NEEDS;
	return 0;
}

bool claim_is_for(const struct ctr *claim, const char *uid)
{
	size_t n = strlen(uid);
	for (const char *at = n ? claim->users : NULL; at && *at; at += *at == ' ') {
		size_t len = strcspn(at, " ");
		if (len == n && memcmp(at, uid, n) == 0)
			return true;
		at += len;
	}
	return false;
}

bool claim_is_named(const struct ctr *ctr, const char *text)
{
	size_t ns = strlen(ctr->pod->ns);
	if (!ctr->device)
		return false;
	bool has_ns = strncmp(text, ctr->pod->ns, ns) == 0 && text[ns] == '/';
	return str_eq(has_ns ? text + ns + 1 : text, ctr->pod->name);
}

void claim_attach(struct ctr *ctr, struct ctr *claim)
{
	if (ctr->claim == claim)
		return;
	if (ctr->claim)
		DL_DELETE2(ctr->claim->sharers, ctr, sharer_prev, sharer_next);
	if (claim)
		DL_APPEND2(claim->sharers, ctr, sharer_prev, sharer_next);
	ctr->claim = claim;
	ctr->store.facts = false;
}

void claim_detach(struct cache *c, struct ctr *claim)
{
	while (claim->sharers) {
		struct ctr *user = claim->sharers;
		count_decision(c, user, &user->cur, false);
		if (user->cur.claimed)
			txn_put_set(c, &user->cur.exclusive, NULL);
		user->cur.claimed = false;
		claim_attach(user, NULL);
		count_decision(c, user, &user->cur, true);
	}
}
