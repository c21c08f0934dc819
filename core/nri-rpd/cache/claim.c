/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/cache/claim.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/hugepages.h"
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
	return claim->pod->id + sizeof ID_PREFIX - 1;
}

struct ctr *claim_first(struct ctr *part)
{
	struct ctr *ctr = part->pod->ctrs;
	while (ctr && !str_eq(ctr->id, ctr->pod->id))
		ctr = ctr->pod_next;
	return ctr ? ctr : part;
}

bool claim_is_controlled(const struct ctr *ctr)
{
	return ctr->device && !ctr->wanted.cpu_request;
}

struct blob *claim_class(const struct ctr *claim)
{
	struct blob *class = NULL;
	for (const struct ctr *part = claim->pod->ctrs; part && !class; part = part->pod_next)
		class = ctr_live(txn_view(part)->state) ? txn_view(part)->rdt_class : NULL;
	return class;
}

bool claim_has_parts(const struct ctr *claim, const struct claim_part *parts, uint32_t n)
{
	const struct ctr *ctr = claim->pod->ctrs;
	for (uint32_t i = 0; i < n; i++, ctr = ctr->pod_next)
		if (!ctr || !str_eq(ctr->device, parts[i].device) ||
		    ctr->wanted.cpu_request != parts[i].cpus * 1000 ||
		    ctr->wanted.mem_request != parts[i].memory ||
		    !hugepages_equal(ctr, &parts[i].huge))
			return false;
	return !ctr;
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

static int claim_put_part(struct cache *c, const struct pod *pod, const struct claim_desc *desc,
			  uint32_t i, struct err *err)
{
	const struct claim_part *part = &desc->parts[i];
	_free_ char *id = i ? str_printf("%s/%u", pod->id, i) : strdup(pod->id);
	_free_ char *name = i ? str_printf(CLAIM_NAME "-%u", i) : strdup(CLAIM_NAME);
	struct ctr *ctr;
	const struct ctr_desc ctr_desc = {.id = id,
					  .pod_id = pod->id,
					  .name = name,
					  .cgroups_path = "",
					  .state = RP_STATE_CREATING,
					  .oom_score_adj = RP_NOT_SET,
					  .huge = part->huge,
					  .res = {.amounts = CPU_AMOUNTS_NONE}};
	if (!id || !name)
		return -ENOMEM;
	int r = cache_put_ctr(c, &ctr_desc, &ctr, err);
	if (r)
		return r;
	ctr->wanted = (struct needs){.cpu_request = part->cpus * 1000,
				     .cpu_limit = part->cpus * 1000,
				     .mem_request = part->memory,
				     .mem_limit = part->memory};
	ctr->cur.needs = ctr->wanted;
	ctr->flags |= RP_CTR_EXACT_NEEDS;
	return claim_mark(ctr, part->device, desc->users);
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
	int r = cache_put_pod(c, &pod_desc, &pod, err);
	if (r)
		return r;
	for (uint32_t i = 0; !r && i < desc->n_parts; i++)
		r = claim_put_part(c, pod, desc, i, err);
	if (!r) {
		*ret = claim_by_uid(c, desc->uid);
		return 0;
	}
	cache_del_pod(c, pod);
	return r == -ENOMEM ? err_errno(err, r, "claim %s/%s", desc->ns, desc->name) : r;
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
