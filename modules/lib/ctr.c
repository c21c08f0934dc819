/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on containers that all policies share. */
#include <nri-rp/lib/ctr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CTR_WHY_MAX 160u
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define KEY_MAX 256u

int32_t ctr_list(const struct modhost *h, struct ctr_list *list, uint32_t order)
{
	uint32_t n = h->cache->list(h->ctx, order, list->ctrs, list->cap);
	if (n <= list->cap)
		return (int32_t)n;
	uint32_t cap = n + n / 2 + 16;
	rp_ctr *ctrs = realloc(list->ctrs, cap * sizeof *ctrs);
	if (!ctrs)
		return modhost_no_memory(h);
	*list = (struct ctr_list){ctrs, cap};
	return (int32_t)h->cache->list(h->ctx, order, ctrs, cap);
}

void ctr_list_free(struct ctr_list *list)
{
	free(list->ctrs);
	*list = (struct ctr_list){NULL, 0};
}

int32_t ctr_info(const struct modhost *h, rp_ctr ctr, struct rp_ctr_info *ret)
{
	*ret = (struct rp_ctr_info){.size = sizeof *ret};
	int32_t r = h->cache->get_ctr(h->ctx, ctr, ret);
	return r ? modhost_fail(h, r, "a container is unknown") : 0;
}

const char *ctr_annotation(const struct modhost *h, rp_ctr ctr, const char *key)
{
	char text[KEY_MAX];
	(void)snprintf(text, sizeof text, "%s.resource-policy.nri.io", key);
	return h->cache->annotation(h->ctx, ctr, text, NULL);
}

int ctr_annotated_bool(const struct modhost *h, rp_ctr ctr, const char *key, uint32_t *ret_scope)
{
	int value = -1;
	const char *text = h->cache->annotation(h->ctx, ctr, key, ret_scope);
	if (!text || !modhost_parse_bool(text, &value))
		return value;
	modhost_log(h, RP_LOG_WARNING, ctr,
		    "annotation %s: \"%.64s\" is neither true nor false, ignoring it", key, text);
	return -1;
}

bool ctr_may_own_cpus(const struct rp_ctr_info *info)
{
	return !(info->flags & RP_CTR_POD_RESOURCES) || info->cpu_request == info->cpu_limit;
}

int64_t ctr_shares_of(int64_t mcpu)
{
	int64_t shares = mcpu > SHARES_MAX * INT64_C(1000) / 1024 ? SHARES_MAX : mcpu * 1024 / 1000;
	return shares < SHARES_MIN ? SHARES_MIN : shares;
}

int32_t ctr_set_shares(const struct modhost *h, rp_txn txn, rp_ctr ctr, int64_t mcpu)
{
	return h->cache->set_int(h->ctx, txn, ctr, RP_F_SHARES, ctr_shares_of(mcpu));
}

static uint32_t nearest_memory(const struct modhost *h, uint32_t node, struct rp_ids with_memory)
{
	uint32_t best = RP_IDSET_NONE, best_distance = UINT32_MAX;
	RP_IDS_EACH (other, with_memory) {
		uint32_t d = h->topology->distance(h->ctx, node, other);
		if (d && d < best_distance) {
			best = other;
			best_distance = d;
		}
	}
	return best;
}

void ctr_memory_near(const struct modhost *h, struct rp_ids cpus, struct rp_idset *ret)
{
	struct rp_idset with_memory;
	rp_idset_clear(ret);
	modhost_set(h, RP_NODES_MEMORY, &with_memory);
	for (uint32_t i = 0; i < h->topology->n_units(h->ctx, RP_LEVEL_NODE); i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		if (h->topology->unit(h->ctx, RP_LEVEL_NODE, i, &unit) ||
		    !rp_ids_overlap(unit.cpus, cpus))
			continue;
		uint32_t node = rp_ids_has(rp_ids_of(&with_memory), unit.id)
					? unit.id
					: nearest_memory(h, unit.id, rp_ids_of(&with_memory));
		if (node != RP_IDSET_NONE)
			rp_idset_add(ret, node);
	}
}

void ctr_memory_for(const struct modhost *h, rp_ctr ctr, struct rp_ids cpus, struct rp_idset *ret)
{
	struct rp_idset rest;
	char why[CTR_WHY_MAX];
	ctr_memory_near(h, cpus, ret);
	modhost_set(h, RP_NODES_MEMORY, &rest);
	rp_idset_andnot(&rest, rp_ids_of(&rest), rp_ids_of(ret));
	while (RP_HAS(h->cache, hugepages) && !rp_ids_empty(rp_ids_of(ret)) &&
	       !rp_ids_empty(rp_ids_of(&rest)) &&
	       h->cache->hugepages(h->ctx, 0, ctr, rp_ids_of(ret), why, sizeof why) == -RP_ENOSPC) {
		uint32_t next = nearest_memory(h, rp_ids_first(rp_ids_of(ret)), rp_ids_of(&rest));
		if (next == RP_IDSET_NONE)
			return;
		rp_idset_add(ret, next);
		rp_idset_del(&rest, next);
	}
}

int32_t ctr_set_memory(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids nodes)
{
	struct rp_idset all;
	modhost_set(h, RP_NODES_MEMORY, &all);
	if (rp_ids_empty(nodes))
		nodes = rp_ids_of(&all);
	return rp_ids_empty(nodes) ? 0 : h->cache->set_mems(h->ctx, txn, ctr, nodes);
}

int32_t ctr_pin_memory(const struct modhost *h, rp_txn txn, const struct rp_ctr_info *info,
		       bool pin, struct rp_ids cpus)
{
	struct rp_idset nodes;
	pin = pin || info->flags & RP_CTR_CLAIM;
	if (info->flags & RP_CTR_PRESERVE_MEM || (!pin && rp_ids_empty(info->mems)))
		return 0;
	rp_idset_clear(&nodes);
	if (pin)
		ctr_memory_for(h, info->ctr, cpus, &nodes);
	return ctr_set_memory(h, txn, info->ctr, rp_ids_of(&nodes));
}

static int32_t set_group(const struct modhost *h, rp_txn txn, rp_ctr ctr, uint32_t group)
{
	if (RP_HAS(h->cache, set_group))
		return h->cache->set_group(h->ctx, txn, ctr, group);
	return group ? -RP_ENOTSUP : 0;
}

int32_t ctr_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr, const struct ctr_stage *s)
{
	int32_t r = h->cache->set_cpus(h->ctx, txn, ctr, s->cpus);
	if (!r)
		r = h->cache->set_exclusive(h->ctx, txn, ctr, s->own);
	if (!r)
		r = set_group(h, txn, ctr, s->group);
	return r ? r : h->cache->set_degraded(h->ctx, txn, ctr, s->degraded);
}

struct bytes_left ctr_record_bytes(const struct modhost *h, rp_ctr ctr)
{
	const void *data;
	uint32_t size;
	bool found = !h->cache->get_private(h->ctx, ctr, &data, &size) && data;
	return found ? bytes_of(data, size) : bytes_of("", 0);
}

bool ctr_record(const struct modhost *h, rp_ctr ctr, uint32_t version, void *ret, uint32_t size)
{
	struct bytes_left left = ctr_record_bytes(h, ctr);
	return bytes_n_left(&left) == size && memcmp(left.at, &version, sizeof version) == 0 &&
	       bytes_take(&left, ret, size);
}

int32_t ctr_set_record(const struct modhost *h, rp_txn txn, rp_ctr ctr, const void *record,
		       uint32_t size)
{
	return h->cache->set_private(h->ctx, txn, ctr, record, size);
}

int32_t ctr_forget(const struct modhost *h, rp_txn txn, rp_ctr ctr)
{
	int32_t r = h->cache->set_private(h->ctx, txn, ctr, NULL, 0);
	return r ? r : h->cache->set_exclusive(h->ctx, txn, ctr, rp_ids_none());
}

const char *ctr_data_text(const struct modhost *h, const char *key, struct rp_ids cpus,
			  char text[CTR_DATA_MAX + 1])
{
	if (rp_ids_format(cpus, text, CTR_DATA_MAX + 1) > CTR_DATA_MAX) {
		modhost_log(h, RP_LOG_WARNING, 0, "%s is too long for the data file of containers",
			    key);
		text[0] = '\0';
	}
	return text;
}

int32_t ctr_set_data_cpus(const struct modhost *h, rp_txn txn, rp_ctr ctr, const char *key,
			  struct rp_ids cpus)
{
	char text[CTR_DATA_MAX + 1];
	(void)ctr_data_text(h, key, cpus, text);
	return h->cache->set_data(h->ctx, txn, ctr, key, text);
}

int32_t ctr_set_data_sets(const struct modhost *h, rp_txn txn, rp_ctr ctr, struct rp_ids shared,
			  struct rp_ids own)
{
	struct rp_idset isolated, ordinary;
	modhost_set(h, RP_CPUS_ISOLATED, &isolated);
	rp_idset_and(&isolated, own, rp_ids_of(&isolated));
	rp_idset_andnot(&ordinary, own, rp_ids_of(&isolated));
	int32_t r = ctr_set_data_cpus(h, txn, ctr, "SHARED_CPUS", shared);
	if (!r)
		r = ctr_set_data_cpus(h, txn, ctr, "ISOLATED_CPUS", rp_ids_of(&isolated));
	return r ? r : ctr_set_data_cpus(h, txn, ctr, "EXCLUSIVE_CPUS", rp_ids_of(&ordinary));
}
