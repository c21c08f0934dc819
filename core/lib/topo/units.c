/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the units of each level from the attributes of each CPU. */
#include <stdlib.h>
#include <string.h>

#include "core/lib/topo/impl.h"

struct member {
	uint64_t key;
	uint32_t cpu; /* index of the CPU */
};

static int by_key(const void *pa, const void *pb)
{
	const struct member *a = pa, *b = pb;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

/* Sorts CPUs by their keys; returns the number of keys. */
static uint32_t sort_members(const struct topo *t, const uint64_t *keys, struct member *members,
			     uint32_t *ret_n_members)
{
	uint32_t n = 0, n_keys = 0;
	for (uint32_t i = 0; i < t->n_cpus; i++)
		if (keys[i] != TOPO_NO_KEY)
			members[n++] = (struct member){keys[i], i};
	qsort(members, n, sizeof *members, by_key);
	for (uint32_t i = 0; i < n; i++)
		n_keys += i == 0 || members[i].key != members[i - 1].key;
	*ret_n_members = n;
	return n_keys;
}

/* Sets each CPU's number of its unit; keys become numbers in the order of first CPUs. */
static void number_units(struct topo *t, uint32_t level, const struct member *members,
			 uint32_t n_members, uint16_t *group_of, uint16_t *number_of)
{
	uint16_t group = 0, n = 0;
	memset(group_of, 0xff, t->n_cpus * sizeof *group_of);
	for (uint32_t i = 0; i < n_members; i++) {
		if (i && members[i].key != members[i - 1].key)
			group++;
		group_of[members[i].cpu] = group;
		number_of[group] = TOPO_NO_UNIT;
	}
	for (uint32_t i = 0; i < t->n_cpus; i++) {
		uint16_t *unit = &t->cpus[i].unit[level];
		*unit = TOPO_NO_UNIT;
		if (group_of[i] == TOPO_NO_UNIT)
			continue;
		if (number_of[group_of[i]] == TOPO_NO_UNIT)
			number_of[group_of[i]] = n++;
		*unit = number_of[group_of[i]];
	}
}

int reader_level(struct reader *r, uint32_t level, const uint64_t *keys, const uint32_t *ids)
{
	struct topo *t = r->t;
	struct member *members = arena_array(r->scratch, t->n_cpus, sizeof *members);
	uint16_t *group_of = arena_array(r->scratch, t->n_cpus, sizeof *group_of);
	uint16_t *number_of = arena_array(r->scratch, t->n_cpus, sizeof *number_of);
	if (!members || !group_of || !number_of)
		return reader_no_memory(r);
	struct topo_level *l = &t->levels[level];
	uint32_t n_members;
	l->n = sort_members(t, keys, members, &n_members);
	number_units(t, level, members, n_members, group_of, number_of);
	/* Includes room for nodes without CPUs. */
	uint32_t room = level == RP_LEVEL_NODE ? t->n_nodes : l->n;
	l->units = room ? arena_array(t->arena, room, sizeof *l->units) : NULL;
	if (room && !l->units)
		return reader_no_memory(r);
	struct rp_idset set;
	for (uint32_t i = 0; i < n_members; i++) {
		uint32_t cpu = members[i].cpu;
		struct topo_unit *u = &l->units[t->cpus[cpu].unit[level]];
		if (i == 0 || members[i].key != members[i - 1].key) {
			rp_idset_clear(&set);
			u->id = ids[cpu];
		}
		rp_idset_add(&set, r->cpu_ids[cpu]);
		if (i + 1 < n_members && members[i + 1].key == members[i].key)
			continue;
		int rc = reader_keep_set(r, rp_ids_of(&set), &u->cpus);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- keys of the levels ---------------------------------------------------------------------- */

static uint64_t units_below(uint16_t parent, uint32_t id)
{
	return (uint64_t)parent << 32 | id;
}

static void system_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	memset(keys, 0, r->t->n_cpus * sizeof *keys);
	memset(ids, 0, r->t->n_cpus * sizeof *ids);
}

static void package_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++)
		keys[i] = ids[i] = r->t->cpus[i].package_id;
}

static void die_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++) {
		const struct topo_cpu *c = &r->t->cpus[i];
		keys[i] = units_below(c->unit[RP_LEVEL_PACKAGE], c->die_id);
		ids[i] = c->die_id;
	}
}

static void node_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++) {
		keys[i] = r->t->cpus[i].node;
		ids[i] = r->t->nodes[r->t->cpus[i].node].id;
	}
}

static void thread_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++)
		keys[i] = ids[i] = r->cpu_ids[i];
}

static void kernel_cluster_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++) {
		const struct topo_cpu *c = &r->t->cpus[i];
		keys[i] = units_below(c->unit[RP_LEVEL_DIE], c->cluster_id);
		ids[i] = c->cluster_id;
	}
}

/* Makes logical clusters of the kernel's: clusters of a single core are combined within their die.
 * No cluster id is UINT32_MAX. */
static void cluster_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	const struct topo *t = r->t;
	kernel_cluster_keys(r, keys, ids);
	for (uint32_t i = 0; i < t->n_cpus; i++) {
		const struct topo_cpu *c = &t->cpus[i];
		struct rp_ids core = t->levels[RP_LEVEL_CORE].units[c->unit[RP_LEVEL_CORE]].cpus;
		if (rp_ids_equal(core,
				 t->levels[RP_LEVEL_CLUSTER].units[c->unit[RP_LEVEL_CLUSTER]].cpus))
			keys[i] = units_below(c->unit[RP_LEVEL_DIE], UINT32_MAX);
	}
}

static void cache_keys(const struct reader *r, uint32_t level, uint64_t *keys, uint32_t *ids)
{
	const struct topo *t = r->t;
	memset(keys, 0xff, t->n_cpus * sizeof *keys);
	for (uint32_t i = 0; i < t->n_caches; i++) {
		const struct topo_cache *c = &t->caches[i];
		if (c->level != level || c->type == RP_CACHE_INSTRUCTION)
			continue;
		RP_IDS_EACH (cpu, c->cpus) {
			keys[topo_cpu_index(t, cpu)] = i;
			ids[topo_cpu_index(t, cpu)] = c->id;
		}
	}
}

static void l2_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	cache_keys(r, 2, keys, ids);
}

static void l3_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	cache_keys(r, 3, keys, ids);
}

static void llc_keys(const struct reader *r, uint64_t *keys, uint32_t *ids)
{
	uint32_t last = 0;
	for (uint32_t i = 0; i < r->t->n_caches; i++)
		if (r->t->caches[i].type != RP_CACHE_INSTRUCTION && r->t->caches[i].level > last)
			last = r->t->caches[i].level;
	cache_keys(r, last, keys, ids);
}

/* Appends nodes without CPUs behind the others. */
static void add_empty_nodes(struct topo *t)
{
	struct topo_level *l = &t->levels[RP_LEVEL_NODE];
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (rp_ids_empty(t->nodes[i].cpus))
			l->units[l->n++] = (struct topo_unit){rp_ids_none(), t->nodes[i].id};
}

int reader_units(struct reader *r)
{
	static const struct {
		uint32_t level;
		void (*fill)(const struct reader *r, uint64_t *keys, uint32_t *ids);
	} levels[] = {
		{RP_LEVEL_SYSTEM, system_keys},	  {RP_LEVEL_PACKAGE, package_keys},
		{RP_LEVEL_DIE, die_keys},	  {RP_LEVEL_CLUSTER, kernel_cluster_keys},
		{RP_LEVEL_CLUSTER, cluster_keys}, {RP_LEVEL_NODE, node_keys},
		{RP_LEVEL_L3, l3_keys},		  {RP_LEVEL_L2, l2_keys},
		{RP_LEVEL_LLC, llc_keys},	  {RP_LEVEL_THREAD, thread_keys},
	};
	uint64_t *keys = arena_array(r->scratch, r->t->n_cpus, sizeof *keys);
	uint32_t *ids = arena_array(r->scratch, r->t->n_cpus, sizeof *ids);
	if (!keys || !ids)
		return reader_no_memory(r);
	for (uint32_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		levels[i].fill(r, keys, ids);
		int rc = reader_level(r, levels[i].level, keys, ids);
		if (rc)
			return rc;
	}
	add_empty_nodes(r->t);
	return 0;
}
