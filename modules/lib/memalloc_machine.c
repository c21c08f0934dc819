/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of a memory allocator: nodes, types and distances. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/memalloc_impl.h"

#define DISTANCE_UNKNOWN (UINT32_MAX - 1) /* farther than all known distances */

__attribute__((format(printf, 4, 5))) static int memalloc_refuse(char *why, size_t why_size,
								 int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (why && why_size)
		(void)vsnprintf(why, why_size, fmt, ap);
	va_end(ap);
	return code;
}

/* Returns the index of a type, or N_TYPES if there is no such type. */
static uint32_t type_index(uint32_t type)
{
	uint32_t i = 0;
	while (i < N_TYPES && type != UINT32_C(1) << i)
		i++;
	return i;
}

/* ---- construction ---------------------------------------------------------------------------- */

static int memalloc_machine_check(const struct memalloc_machine *machine, char *why,
				  size_t why_size)
{
	bool memory = false;
	if (machine->n_nodes > MEMALLOC_NODES_MAX)
		return memalloc_refuse(why, why_size, -RP_E2BIG,
				       "%u memory nodes: at most %u are supported",
				       machine->n_nodes, MEMALLOC_NODES_MAX);
	for (uint32_t i = 0; i < machine->n_nodes; i++) {
		const struct memalloc_node *n = &machine->nodes[i];
		if (n->id >= RP_NODES_MAX || (i && n->id <= n[-1].id))
			return memalloc_refuse(why, why_size, -RP_EINVAL,
					       "memory node %u: not in order or too large", n->id);
		if (type_index(n->type) == N_TYPES)
			return memalloc_refuse(why, why_size, -RP_EINVAL,
					       "memory node %u: unknown type %u", n->id, n->type);
		if (n->bytes > MEMALLOC_NODE_BYTES_MAX)
			return memalloc_refuse(
				why, why_size, -RP_EINVAL,
				"memory node %u: %llu bytes are more than is supported", n->id,
				(unsigned long long)n->bytes);
		memory |= n->bytes > 0;
	}
	return memory ? 0
		      : memalloc_refuse(why, why_size, -RP_EINVAL,
					"the machine has no memory node with memory");
}

/* Groups the other nodes by distance, nearest first. Returns the end of the written array. */
static struct distance *sort_distances(struct node *n, uint32_t self, const uint32_t *row,
				       uint32_t n_nodes, struct distance *out)
{
	n->others = out;
	for (uint32_t i = 0; i < n_nodes; i++) {
		uint32_t d = row[i] ? row[i] : DISTANCE_UNKNOWN, k = n->n_others;
		if (i == self)
			continue;
		while (k && out[k - 1].distance > d)
			k--;
		if (k && out[k - 1].distance == d) {
			out[k - 1].nodes |= UINT64_C(1) << i;
			continue;
		}
		for (uint32_t j = n->n_others++; j > k; j--)
			out[j] = out[j - 1];
		out[k] = (struct distance){d, 0, UINT64_C(1) << i};
	}
	return out + n->n_others;
}

static void take_node(struct memalloc *m, uint32_t i)
{
	const struct memalloc_node *n = &m->nodes[i].is;
	memalloc_mask bit = UINT64_C(1) << i;
	m->all |= bit;
	m->of_kind[type_index(n->type)] |= bit;
	if (!n->bytes)
		return;
	m->types |= n->type;
	m->with_memory |= bit;
	m->of_type[type_index(n->type)] |= bit;
	m->total += (int64_t)n->bytes;
	if (n->normal)
		m->normal |= bit;
}

int memalloc_new_machine(const struct memalloc_machine *machine, struct memalloc **ret, char *why,
			 size_t why_size)
{
	uint32_t n = machine->n_nodes;
	int r = memalloc_machine_check(machine, why, why_size);
	if (r)
		return r;
	struct memalloc *m = calloc(1, sizeof *m);
	struct distance *d = calloc((size_t)n * n, sizeof *d);
	if (!m || !d) {
		free(m);
		free(d);
		return memalloc_refuse(why, why_size, -RP_ENOMEM, "out of memory");
	}
	m->distances = d;
	m->n_nodes = n;
	for (uint32_t i = 0; i < n; i++) {
		m->nodes[i].is = machine->nodes[i];
		d = sort_distances(&m->nodes[i], i, machine->distance + (size_t)i * n, n, d);
		take_node(m, i);
	}
	m->version = 1;
	*ret = m;
	return 0;
}

struct memalloc *memalloc_free(struct memalloc *m)
{
	if (!m)
		return NULL;
	memalloc_settle(m);
	m->in_txn = false;
	memalloc_reset(m);
	for (uint32_t i = 0; i < m->n_zones + m->n_spare; i++) {
		free(m->zones[i]->users);
		free(m->zones[i]);
	}
	free(m->zones);
	free(m->over);
	free(m->over_sorted);
	table_fini(&m->requests);
	free(m->journal);
	free(m->moves);
	free(m->moved);
	free(m->distances);
	free(m);
	return NULL;
}

/* ---- the host's topology --------------------------------------------------------------------- */

static uint32_t type_of(uint32_t type)
{
	switch (type) {
	case RP_MEM_PMEM:
	case RP_MEM_CXL:
		return MEMALLOC_PMEM;
	case RP_MEM_HBM:
		return MEMALLOC_HBM;
	default:
		return MEMALLOC_DRAM;
	}
}

/* Reads symmetric distances: the mean of both directions if they differ. */
static void read_distances(const struct rp_host_topology *topo, void *ctx,
			   const struct memalloc_node *nodes, uint32_t n, uint32_t *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < n; k++) {
			uint64_t there = topo->distance(ctx, nodes[i].id, nodes[k].id);
			uint64_t back = topo->distance(ctx, nodes[k].id, nodes[i].id);
			ret[i * n + k] = there && back ? (uint32_t)((there + back) / 2)
						       : (uint32_t)(there + back);
		}
	}
}

/* Returns the average memory of the nodes with CPUs. */
static uint64_t average_memory(const struct rp_host_topology *topo, void *ctx, struct rp_ids nodes)
{
	uint64_t sum = 0, n = 0;
	RP_IDS_EACH (id, nodes) {
		struct rp_node_info info = {.size = sizeof info};
		if (topo->node(ctx, id, &info) || rp_ids_empty(info.cpus))
			continue;
		sum += info.memory / RP_NODES_MAX; /* divided first, so that it does not overflow */
		n++;
	}
	return n ? sum / n * RP_NODES_MAX : 0;
}

static int memalloc_read(const struct rp_host_topology *topo, void *ctx, bool by_size,
			 struct memalloc **ret, char *why, size_t why_size)
{
	struct memalloc_node nodes[MEMALLOC_NODES_MAX];
	uint32_t distance[MEMALLOC_NODES_MAX * MEMALLOC_NODES_MAX], n = 0;
	struct rp_ids online;
	int r = topo->set(ctx, RP_NODES_ONLINE, &online);
	if (r)
		return memalloc_refuse(why, why_size, r,
				       "the host does not report the memory nodes");
	uint64_t average = by_size ? average_memory(topo, ctx, online) : 0;
	RP_IDS_EACH (id, online) {
		struct rp_node_info info = {.size = sizeof info};
		r = topo->node(ctx, id, &info);
		if (r)
			return memalloc_refuse(why, why_size, r,
					       "memory node %u: not reported by the host", id);
		if (!info.memory && rp_ids_empty(info.cpus))
			continue;
		if (n == MEMALLOC_NODES_MAX)
			return memalloc_refuse(why, why_size, -RP_E2BIG,
					       "more than %u memory nodes are not supported", n);
		uint32_t type = type_of(info.type);
		if (by_size && rp_ids_empty(info.cpus))
			type = info.memory < average ? MEMALLOC_HBM : MEMALLOC_PMEM;
		nodes[n++] = (struct memalloc_node){id, type, info.normal, 0, info.memory};
	}
	read_distances(topo, ctx, nodes, n, distance);
	struct memalloc_machine machine = {nodes, distance, n, 0};
	return memalloc_new_machine(&machine, ret, why, why_size);
}

/* ---- sets of nodes --------------------------------------------------------------------------- */

memalloc_mask memalloc_all(const struct memalloc *m)
{
	return m->all;
}

memalloc_mask memalloc_with_memory(const struct memalloc *m)
{
	return m->with_memory;
}

memalloc_mask memalloc_of_types(const struct memalloc *m, uint32_t types)
{
	memalloc_mask nodes = 0;
	for (uint32_t t = 0; t < N_TYPES; t++)
		if (types >> t & 1)
			nodes |= m->of_type[t];
	return nodes;
}

uint32_t memalloc_types(const struct memalloc *m, memalloc_mask nodes)
{
	uint32_t types = 0;
	for (uint32_t t = 0; t < N_TYPES; t++)
		if (nodes & m->of_kind[t])
			types |= 1u << t;
	return types;
}

uint32_t memalloc_all_types(const struct memalloc *m)
{
	return m->types;
}

memalloc_mask memalloc_mask_of(const struct memalloc *m, struct rp_ids nodes)
{
	memalloc_mask mask = 0;
	for (uint32_t i = 0; i < m->n_nodes; i++)
		if (rp_ids_has(nodes, m->nodes[i].is.id))
			mask |= UINT64_C(1) << i;
	return mask;
}

void memalloc_ids(const struct memalloc *m, memalloc_mask nodes, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	for (memalloc_mask left = nodes & m->all; left; left &= left - 1)
		rp_idset_add(ret, m->nodes[__builtin_ctzll(left)].is.id);
}

memalloc_mask memalloc_nearest(const struct memalloc *m, memalloc_mask node, memalloc_mask among)
{
	memalloc_mask nearest = 0;
	if (!(node & m->all))
		return 0;
	const struct node *n = &m->nodes[__builtin_ctzll(node & m->all)];
	for (uint32_t i = 0; !nearest && i < n->n_others; i++)
		nearest = n->others[i].nodes & among;
	return nearest;
}

int64_t memalloc_capacity(const struct memalloc *m, memalloc_mask nodes)
{
	int64_t bytes = 0;
	for (memalloc_mask left = nodes & m->with_memory; left; left &= left - 1)
		bytes += (int64_t)m->nodes[__builtin_ctzll(left)].is.bytes;
	return bytes;
}

int memalloc_new(const struct rp_host_topology *topo, void *ctx, struct memalloc **ret, char *why,
		 size_t why_size)
{
	return memalloc_read(topo, ctx, false, ret, why, why_size);
}

int memalloc_new_by_size(const struct rp_host_topology *topo, void *ctx, struct memalloc **ret,
			 char *why, size_t why_size)
{
	return memalloc_read(topo, ctx, true, ret, why, why_size);
}
