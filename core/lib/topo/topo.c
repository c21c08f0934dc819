/* SPDX-License-Identifier: Apache-2.0 */
/* Reference count and getters of a snapshot. */
#include "core/lib/topo/topo.h"

#include <stdlib.h>

#include "core/lib/topo/impl.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/getter.h"
#include "core/lib/topo/sst_impl.h"

DEFINE_GETTER_OF(topo_root_fd, int, const struct topo *t, t->root.fd)

struct topo *topo_free(struct topo *t)
{
	if (!t)
		return NULL;
	arena_free(t->arena);
	sst_free(t->sst);
	fs_root_close(&t->root);
	free(t);
	return NULL;
}

DEFINE_GETTER_OF(topo_generation, uint64_t, const struct topo *t, t->generation)
DEFINE_GETTER_OF(topo_memory, uint64_t, const struct topo *t, t->memory)

size_t topo_size(const struct topo *t)
{
	return sizeof *t + arena_held(t->arena) + sst_size(t);
}

DEFINE_GETTER_OF(topo_n_notes, uint32_t, const struct topo *t, t->n_notes)

const char *topo_note(const struct topo *t, uint32_t index)
{
	return index < t->n_notes ? t->notes[index] : NULL;
}

int topo_set(const struct topo *t, uint32_t which, struct rp_ids *ret)
{
	bool cpus = which >= RP_CPUS_POSSIBLE && which <= RP_CPUS_NOHZ_FULL;
	bool nodes = which >= RP_NODES_ONLINE && which <= RP_NODES_NORMAL;
	if (!cpus && !nodes)
		return -EINVAL;
	*ret = t->sets[which];
	return 0;
}

int topo_cpu(struct topo *t, uint32_t cpu, struct rp_cpu_info *out)
{
	uint16_t index = topo_cpu_index(t, cpu);
	if (index == TOPO_NO_INDEX)
		return -ENOENT;
	struct topo_cpu *c = &t->cpus[index];
	if (out->size > offsetof(struct rp_cpu_info, base_khz))
		topo_load_freq(t, cpu, c);
	struct rp_cpu_info info = {
		.cpu = cpu,
		.package_id = c->package_id,
		.die_id = c->die_id,
		.cluster_id = c->cluster_id,
		.core_id = c->core_id,
		.node_id = t->nodes[c->node].id,
		.kind = c->kind,
		.base_khz = c->base_khz,
		.min_khz = c->min_khz,
		.max_khz = c->max_khz,
		.epp = c->epp,
		.capacity = c->capacity,
	};
	for (uint32_t i = 0; i < RP_N_LEVELS; i++)
		info.unit[i] = c->unit[i] == TOPO_NO_UNIT ? RP_IDSET_NONE : c->unit[i];
	sized_fill(out, &info, sizeof info);
	return 0;
}

uint32_t topo_n_units(const struct topo *t, uint32_t level)
{
	return level < RP_N_LEVELS ? t->levels[level].n : 0;
}

int topo_unit(const struct topo *t, uint32_t level, uint32_t index, struct rp_unit_info *out)
{
	if (index >= topo_n_units(t, level))
		return -ENOENT;
	const struct topo_unit *u = &t->levels[level].units[index];
	struct rp_unit_info info = {.id = u->id, .cpus = u->cpus};
	sized_fill(out, &info, sizeof info);
	return 0;
}

int topo_node(const struct topo *t, uint32_t node, struct rp_node_info *out)
{
	uint16_t index = topo_node_index(t, node);
	if (index == TOPO_NO_INDEX)
		return -ENOENT;
	const struct topo_node *n = &t->nodes[index];
	struct rp_node_info info = {
		.id = n->id,
		.type = n->type,
		.normal = n->normal,
		.memory = n->memory,
		.cpus = n->cpus,
		.package_id = n->package_id,
		.die_id = n->die_id,
	};
	sized_fill(out, &info, sizeof info);
	return 0;
}

uint32_t topo_distance(const struct topo *t, uint32_t from, uint32_t to)
{
	uint16_t a = topo_node_index(t, from), b = topo_node_index(t, to);
	if (a == TOPO_NO_INDEX || b == TOPO_NO_INDEX)
		return 0;
	return t->distances[(size_t)a * t->n_nodes + b];
}

DEFINE_GETTER_OF(topo_n_caches, uint32_t, const struct topo *t, t->n_caches)

int topo_cache(const struct topo *t, uint32_t index, struct rp_cache_info *out)
{
	if (index >= t->n_caches)
		return -ENOENT;
	const struct topo_cache *c = &t->caches[index];
	struct rp_cache_info info = {
		.id = c->id,
		.level = c->level,
		.type = c->type,
		.bytes = c->bytes,
		.cpus = c->cpus,
	};
	sized_fill(out, &info, sizeof info);
	return 0;
}

const char *topo_memory_type_name(uint32_t type)
{
	static const char *const names[] = {
		[RP_MEM_DRAM] = "DRAM", [RP_MEM_PMEM] = "PMEM", [RP_MEM_HBM] = "HBM",
		[RP_MEM_CXL] = "CXL",	[RP_MEM_NONE] = "none",
	};
	return type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}
