/* SPDX-License-Identifier: Apache-2.0 */
/* Saves CPUs and weights of the pools by name, over restarts and reloads. Format: a version, then
 * for each pool a head and the words of its set. */
#include <string.h>

#include "modules/dynamic-pools/dynamic-pools.h"

#define SAVED_VERSION UINT64_C(1)

struct head {
	char name[POOLS_NAME_MAX + 1];
	int64_t weight;
	uint32_t n_words, pad;
};

int32_t saved_keep(struct rp_instance *inst)
{
	const uint64_t version = SAVED_VERSION;
	const struct rp_plan *p = inst->plan;
	struct bytes *s = &inst->saved;
	if (!p)
		return 0;
	bytes_reset(s);
	(void)bytes_put(s, &version, sizeof version);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct rp_idset *cpus = &p->pools[i].cpus;
		struct head head = {.weight = p->pools[i].weight, .n_words = cpus->nw};
		memcpy(head.name, p->pools[i].name, sizeof head.name);
		(void)bytes_put(s, &head, sizeof head);
		bytes_put_set(s, rp_ids_of(cpus));
	}
	return s->failed ? modhost_no_memory(&inst->h) : 0;
}

/* Reads the next pool. False: there is no further complete one. */
static bool saved_next(struct bytes_left *left, struct pool *ret)
{
	struct head head;
	if (!bytes_take(left, &head, sizeof head) || head.name[POOLS_NAME_MAX] || head.weight < 0)
		return false;
	memcpy(ret->name, head.name, sizeof ret->name);
	ret->weight = head.weight;
	return bytes_take_set(left, head.n_words, &ret->cpus);
}

bool saved_find(const struct rp_instance *inst, const char *name, struct pool *ret)
{
	struct bytes_left left = bytes_of(inst->saved.data, inst->saved.size);
	(void)bytes_skip(&left, sizeof SAVED_VERSION);
	while (saved_next(&left, ret))
		if (strcmp(ret->name, name) == 0)
			return true;
	rp_idset_clear(&ret->cpus);
	return false;
}

void saved_carry(const struct rp_instance *inst, struct rp_plan *p)
{
	struct rp_idset left = p->bounds.cpus.rest;
	struct pool had;
	for (uint32_t i = POOL_SHARED; i < p->n; i++) {
		if (!saved_find(inst, p->pools[i].name, &had))
			continue;
		p->pools[i].weight = had.weight;
		rp_idset_and(&p->pools[i].cpus, rp_ids_of(&had.cpus), rp_ids_of(&left));
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&p->pools[i].cpus));
	}
}

int32_t saved_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	struct pool pool;
	struct bytes_left left = bytes_of(data, size);
	uint64_t version;
	bool sound = bytes_take(&left, &version, sizeof version) && version == SAVED_VERSION;
	while (sound && bytes_n_left(&left))
		sound = saved_next(&left, &pool);
	bytes_reset(&inst->saved);
	if (!sound)
		return modhost_fail(&inst->h, -RP_EINVAL,
				    "not a state of pools saved by this version");
	return bytes_put(&inst->saved, data, size) ? modhost_no_memory(&inst->h) : 0;
}
