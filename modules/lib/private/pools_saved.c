/* SPDX-License-Identifier: Apache-2.0 */
/* Format: a version, then for each pool a head and the words of its set. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/pools.h"

#define SAVED_VERSION UINT64_C(1)

struct head {
	char name[POOLS_NAME_MAX + 1];
	int64_t weight;
	uint32_t n_words, pad;
};

int32_t pools_save(const struct modhost *h, struct bytes *s, const struct pools_pool *list,
		   uint32_t n)
{
	const uint64_t version = SAVED_VERSION;
	bytes_reset(s);
	(void)bytes_put(s, &version, sizeof version);
	for (uint32_t i = 0; i < n; i++) {
		const struct rp_idset *cpus = &list[i].cpus;
		struct head head = {.weight = list[i].weight, .n_words = cpus->nw};
		memcpy(head.name, list[i].name, sizeof head.name);
		(void)bytes_put(s, &head, sizeof head);
		bytes_put_set(s, rp_ids_of(cpus));
	}
	return s->failed ? modhost_no_memory(h) : 0;
}

/* Reads the next pool. False: there is no further complete one. */
static bool pools_saved_next(struct bytes_left *left, struct pools_pool *ret)
{
	struct head head;
	if (!bytes_take(left, &head, sizeof head) || head.name[POOLS_NAME_MAX] || head.weight < 0)
		return false;
	memcpy(ret->name, head.name, sizeof ret->name);
	ret->weight = head.weight;
	return bytes_take_set(left, head.n_words, &ret->cpus);
}

bool pools_saved_find(const struct bytes *s, const char *name, struct pools_pool *ret)
{
	struct bytes_left left = bytes_of(s->data, s->size);
	(void)bytes_skip(&left, sizeof SAVED_VERSION);
	while (pools_saved_next(&left, ret))
		if (strcmp(ret->name, name) == 0)
			return true;
	rp_idset_clear(&ret->cpus);
	return false;
}

void pools_carry(const struct bytes *s, struct pools_pool *list, uint32_t n, struct rp_ids from)
{
	struct rp_idset left;
	struct pools_pool had;
	rp_idset_copy(&left, from);
	for (uint32_t i = 0; i < n; i++) {
		if (!pools_saved_find(s, list[i].name, &had))
			continue;
		list[i].weight = had.weight;
		rp_idset_and(&list[i].cpus, rp_ids_of(&had.cpus), rp_ids_of(&left));
		rp_idset_andnot(&left, rp_ids_of(&left), rp_ids_of(&list[i].cpus));
	}
}

int32_t pools_load(const struct modhost *h, struct bytes *s, const void *data, uint32_t size)
{
	struct pools_pool pool;
	struct bytes_left left = bytes_of(data, size);
	uint64_t version;
	bool sound = bytes_take(&left, &version, sizeof version) && version == SAVED_VERSION;
	while (sound && bytes_n_left(&left))
		sound = pools_saved_next(&left, &pool);
	bytes_reset(s);
	if (!sound)
		return modhost_fail(h, -RP_EINVAL, "not a state of pools saved by this version");
	return bytes_put(s, data, size) ? modhost_no_memory(h) : 0;
}
