/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "test/unit/fake_impl.h"

#define DISTANCE_LOCAL 10u
#define DISTANCE_PACKAGE 11u
#define DISTANCE_OTHER 21u
#define DISTANCE_MEMORY 28u
#define E_CORES_PER_L2 4u

/* ---- building -------------------------------------------------------------------------------- */

struct place {
	uint32_t package, die, node, core_in_package, core, kind, e_index;
};

static void put_cpu(struct fake_topology *t, uint32_t cpu, const struct place *p)
{
	const struct fake_machine *m = &t->machine;
	struct fake_cpu *c = &t->cpus[cpu];
	uint32_t node = m->no_numa ? 0 : p->node;
	*c = (struct fake_cpu){.exists = true};
	c->info = (struct rp_cpu_info){
		.size = sizeof c->info,
		.cpu = cpu,
		.package_id = p->package,
		.die_id = p->die % m->dies,
		.cluster_id = p->kind == RP_CORE_EFFICIENT ? 1 + p->e_index / E_CORES_PER_L2 : 0,
		.core_id = p->core_in_package,
		.node_id = node,
		.kind = p->kind,
		.epp = RP_EPP_UNKNOWN,
	};
	uint32_t l2 = p->core / (m->l2_cores ? m->l2_cores : 1);
	if (p->kind == RP_CORE_EFFICIENT)
		l2 = (1u << 16) + p->package * 1024 + p->e_index / E_CORES_PER_L2;
	uint32_t l3 = m->l3_cores ? p->core / m->l3_cores : p->package;
	const uint32_t raw[RP_N_LEVELS] = {
		[RP_LEVEL_PACKAGE] = p->package,
		[RP_LEVEL_DIE] = p->die,
		[RP_LEVEL_NODE] = node,
		[RP_LEVEL_L3] = l3,
		[RP_LEVEL_L2] = l2,
		[RP_LEVEL_CORE] = p->core,
		[RP_LEVEL_THREAD] = cpu,
		[RP_LEVEL_LLC] = l3,
		[RP_LEVEL_CLUSTER] =
			m->e_cores ? c->info.cluster_id + p->package * 1024 : RP_IDSET_NONE,
	};
	memcpy(c->raw, raw, sizeof raw);
}

/* Cores in order of package, die, node; E-cores of a node come after its P-cores. */
static struct place place_of_core(const struct fake_machine *m, uint32_t core)
{
	uint32_t per_node = m->cores + m->e_cores;
	uint32_t node = core / per_node, in_node = core % per_node;
	uint32_t nodes_per_package = m->dies * m->nodes;
	struct place p = {
		.package = node / nodes_per_package,
		.die = node / m->nodes,
		.node = node,
		.core_in_package = core % (per_node * nodes_per_package),
		.core = core,
		.kind = in_node < m->cores ? RP_CORE_PERFORMANCE : RP_CORE_EFFICIENT,
	};
	if (p.kind == RP_CORE_EFFICIENT)
		p.e_index = in_node - m->cores;
	return p;
}

static void number_cpus(struct fake_topology *t)
{
	const struct fake_machine *m = &t->machine;
	uint32_t n_cores = m->packages * m->dies * m->nodes * (m->cores + m->e_cores);
	uint32_t next = 0;
	t->cpus = fake_alloc((size_t)n_cores * m->threads * sizeof *t->cpus);
	for (uint32_t round = 0; round < (m->siblings ? m->threads : 1); round++) {
		for (uint32_t core = 0; core < n_cores; core++) {
			struct place p = place_of_core(m, core);
			uint32_t threads = p.kind == RP_CORE_EFFICIENT ? 1 : m->threads;
			uint32_t first = m->siblings ? round : 0;
			uint32_t end = m->siblings ? round + 1 : threads;
			for (uint32_t i = first; i < end && i < threads; i++)
				put_cpu(t, next++, &p);
		}
	}
	t->n_cpus = next;
}

static void make_nodes(struct fake_topology *t)
{
	const struct fake_machine *m = &t->machine;
	uint32_t n_packages_nodes = m->dies * m->nodes;
	uint32_t with_cpus = m->no_numa ? 1 : m->packages * n_packages_nodes;
	t->n_nodes = with_cpus + m->memory_nodes;
	t->nodes = fake_alloc(t->n_nodes * sizeof *t->nodes);
	t->distance = fake_alloc((size_t)t->n_nodes * t->n_nodes * sizeof *t->distance);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		t->nodes[i] = (struct rp_node_info){
			.size = sizeof t->nodes[i],
			.id = i,
			.type = i < with_cpus ? RP_MEM_DRAM : RP_MEM_PMEM,
			.normal = 1,
			.memory = m->node_memory ? m->node_memory : UINT64_C(2) << 30,
			.package_id = i < with_cpus && !m->no_numa ? i / n_packages_nodes
								   : (i - with_cpus) % m->packages,
		};
		for (uint32_t k = 0; k <= i; k++) {
			uint32_t d = DISTANCE_OTHER;
			if (i == k)
				d = DISTANCE_LOCAL;
			else if (i >= with_cpus)
				d = DISTANCE_MEMORY;
			else if (i / n_packages_nodes == k / n_packages_nodes)
				d = DISTANCE_PACKAGE;
			t->distance[i * t->n_nodes + k] = d;
			t->distance[k * t->n_nodes + i] = d;
		}
	}
}

static uint32_t kernel_id(const struct fake_cpu *c, uint32_t level)
{
	switch (level) {
	case RP_LEVEL_DIE:
		return c->info.die_id;
	case RP_LEVEL_CORE:
		return c->info.core_id;
	default:
		return c->raw[level];
	}
}

static void add_to_unit(struct fake_topology *t, uint32_t level, struct fake_cpu *c)
{
	uint32_t i = 0;
	c->info.unit[level] = RP_IDSET_NONE;
	if (c->raw[level] == RP_IDSET_NONE)
		return;
	while (i < t->n_units[level] && t->units[level][i].raw != c->raw[level])
		i++;
	if (i == t->n_units[level]) {
		t->units[level] = fake_grow(t->units[level], i + 1, sizeof(struct fake_unit));
		t->units[level][i] =
			(struct fake_unit){.raw = c->raw[level], .id = kernel_id(c, level)};
		t->n_units[level]++;
	}
	rp_idset_add(&t->units[level][i].cpus, c->info.cpu);
	c->info.unit[level] = i;
}

static void add_memory_nodes(struct fake_topology *t)
{
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		uint32_t k = 0, n = t->n_units[RP_LEVEL_NODE];
		while (k < n && t->units[RP_LEVEL_NODE][k].raw != i)
			k++;
		if (k < n)
			continue;
		t->units[RP_LEVEL_NODE] =
			fake_grow(t->units[RP_LEVEL_NODE], n + 1, sizeof(struct fake_unit));
		t->units[RP_LEVEL_NODE][n] = (struct fake_unit){.raw = i, .id = i};
		t->n_units[RP_LEVEL_NODE]++;
	}
}

void fake_topology_update(struct fake_topology *t)
{
	struct rp_idset *s = t->sets;
	t->generation++;
	memset(s, 0, sizeof t->sets);
	memset(t->n_units, 0, sizeof t->n_units);
	if (t->n_cpus)
		rp_idset_add_range(&s[RP_CPUS_POSSIBLE], 0, t->n_cpus - 1);
	s[RP_CPUS_PRESENT] = s[RP_CPUS_POSSIBLE];
	rp_idset_andnot(&s[RP_CPUS_ONLINE], rp_ids_of(&s[RP_CPUS_PRESENT]), rp_ids_of(&t->offline));
	rp_idset_and(&s[RP_CPUS_ISOLATED], rp_ids_of(&t->isolated), rp_ids_of(&s[RP_CPUS_ONLINE]));
	RP_IDS_EACH (cpu, rp_ids_of(&s[RP_CPUS_ONLINE])) {
		for (uint32_t level = RP_LEVEL_SYSTEM; level < RP_N_LEVELS; level++)
			add_to_unit(t, level, &t->cpus[cpu]);
		rp_idset_add(&s[t->cpus[cpu].info.kind == RP_CORE_EFFICIENT ? RP_CPUS_EFFICIENT
									    : RP_CPUS_PERFORMANCE],
			     cpu);
	}
	add_memory_nodes(t);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		rp_idset_add(&s[RP_NODES_ONLINE], i);
		if (t->nodes[i].memory)
			rp_idset_add(&s[RP_NODES_MEMORY], i);
		if (t->nodes[i].memory && t->nodes[i].normal)
			rp_idset_add(&s[RP_NODES_NORMAL], i);
	}
}

void fake_topology_init(struct fake_topology *t, const struct fake_machine *m)
{
	t->machine = *m;
	uint32_t *counts[] = {&t->machine.packages, &t->machine.dies, &t->machine.nodes,
			      &t->machine.threads};
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (!*counts[i])
			*counts[i] = 1;
	if (!t->machine.cores && !t->machine.e_cores)
		t->machine.cores = 1;
	fake_parse_set(&t->isolated, m->isolated);
	fake_parse_set(&t->offline, m->offline);
	number_cpus(t);
	make_nodes(t);
	fake_topology_update(t);
}

void fake_topology_fini(struct fake_topology *t)
{
	for (uint32_t level = 0; level < RP_N_LEVELS; level++)
		free(t->units[level]);
	free(t->cpus);
	free(t->nodes);
	free(t->distance);
}

struct rp_cpu_info *fake_cpu_info(struct fake_host *f, uint32_t cpu)
{
	return cpu < f->topology.n_cpus ? &f->topology.cpus[cpu].info : NULL;
}

struct rp_node_info *fake_node_info(struct fake_host *f, uint32_t node)
{
	return node < f->topology.n_nodes ? &f->topology.nodes[node] : NULL;
}

void fake_set_distance(struct fake_host *f, uint32_t from, uint32_t to, uint32_t distance)
{
	struct fake_topology *t = &f->topology;
	if (from >= t->n_nodes || to >= t->n_nodes)
		fake_die("no nodes %u, %u", from, to);
	t->distance[from * t->n_nodes + to] = distance;
	t->distance[to * t->n_nodes + from] = distance;
}

/* ---- the service ----------------------------------------------------------------------------- */

static struct fake_topology *topo(void *ctx)
{
	return &((struct fake_host *)ctx)->topology;
}

/* Fills an out-struct as far as the caller's version of it goes. */
static void fill(void *out, const void *from, uint32_t known)
{
	uint32_t size;
	memcpy(&size, out, sizeof size);
	memcpy(out, from, size < known ? size : known);
	memcpy(out, &size, sizeof size);
}

static uint64_t topo_generation(void *ctx)
{
	return topo(ctx)->generation;
}

static int32_t topo_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	int32_t r = fake_call(ctx);
	if (r)
		return r;
	if (!which || which > RP_NODES_NORMAL)
		return -RP_EINVAL;
	*ret = rp_ids_of(&topo(ctx)->sets[which]);
	return 0;
}

static int32_t topo_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *out)
{
	int32_t r = fake_call(ctx);
	if (r)
		return r;
	if (!rp_ids_has(rp_ids_of(&topo(ctx)->sets[RP_CPUS_ONLINE]), cpu))
		return -RP_ENOENT;
	fill(out, &topo(ctx)->cpus[cpu].info, sizeof *out);
	return 0;
}

static uint32_t topo_n_units(void *ctx, uint32_t level)
{
	return level < RP_N_LEVELS ? topo(ctx)->n_units[level] : 0;
}

static int32_t topo_unit(void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out)
{
	int32_t r = fake_call(ctx);
	if (r)
		return r;
	if (index >= topo_n_units(ctx, level))
		return -RP_ENOENT;
	const struct fake_unit *u = &topo(ctx)->units[level][index];
	struct rp_unit_info info = {sizeof info, u->id, rp_ids_of(&u->cpus)};
	fill(out, &info, sizeof info);
	return 0;
}

static int32_t topo_node(void *ctx, uint32_t node, struct rp_node_info *out)
{
	int32_t r = fake_call(ctx);
	if (r)
		return r;
	struct fake_topology *t = topo(ctx);
	if (node >= t->n_nodes)
		return -RP_ENOENT;
	for (uint32_t i = 0; i < t->n_units[RP_LEVEL_NODE]; i++)
		if (t->units[RP_LEVEL_NODE][i].raw == node)
			t->nodes[node].cpus = rp_ids_of(&t->units[RP_LEVEL_NODE][i].cpus);
	fill(out, &t->nodes[node], sizeof *out);
	return 0;
}

static uint32_t topo_distance(void *ctx, uint32_t from, uint32_t to)
{
	const struct fake_topology *t = topo(ctx);
	return from < t->n_nodes && to < t->n_nodes ? t->distance[from * t->n_nodes + to] : 0;
}

static uint32_t topo_n_caches(void *ctx)
{
	return topo_n_units(ctx, RP_LEVEL_L2) + topo_n_units(ctx, RP_LEVEL_L3);
}

static int32_t topo_cache(void *ctx, uint32_t index, struct rp_cache_info *out)
{
	int32_t r = fake_call(ctx);
	if (r)
		return r;
	uint32_t n_l2 = topo_n_units(ctx, RP_LEVEL_L2);
	if (index >= topo_n_caches(ctx))
		return -RP_ENOENT;
	const struct fake_unit *u = index < n_l2 ? &topo(ctx)->units[RP_LEVEL_L2][index]
						 : &topo(ctx)->units[RP_LEVEL_L3][index - n_l2];
	struct rp_cache_info info = {
		.size = sizeof info,
		.id = u->id,
		.level = index < n_l2 ? 2 : 3,
		.type = RP_CACHE_UNIFIED,
		.bytes = index < n_l2 ? UINT64_C(2) << 20 : UINT64_C(32) << 20,
		.cpus = rp_ids_of(&u->cpus),
	};
	fill(out, &info, sizeof info);
	return 0;
}

void fake_device(struct fake_host *f, const char *what, const char *sysfs_path, const char *cpus,
		 const char *nodes)
{
	f->devices = fake_grow(f->devices, f->n_devices + 1, sizeof *f->devices);
	struct fake_device *d = &f->devices[f->n_devices++];
	*d = (struct fake_device){.what = fake_strdup(what), .path = fake_strdup(sysfs_path)};
	fake_parse_set(&d->cpus, cpus);
	fake_parse_set(&d->nodes, nodes);
}

static const struct fake_device *find_device(const struct fake_host *f, const char *what)
{
	for (uint32_t i = 0; i < f->n_devices; i++)
		if (strcmp(f->devices[i].what, what) == 0 || strcmp(f->devices[i].path, what) == 0)
			return &f->devices[i];
	return NULL;
}

static int32_t topo_device(void *ctx, const char *path, struct rp_idset *ret_cpus,
			   struct rp_idset *ret_nodes)
{
	const struct fake_device *d = find_device(ctx, path);
	if (!d || rp_ids_empty(rp_ids_of(&d->nodes)))
		return -RP_ENOENT;
	rp_idset_copy(ret_cpus, rp_ids_of(&d->cpus));
	rp_idset_copy(ret_nodes, rp_ids_of(&d->nodes));
	return 0;
}

static int32_t topo_device_path(void *ctx, const char *what, char *buf, uint32_t cap)
{
	const struct fake_device *d = find_device(ctx, what);
	if (!d)
		return -RP_ENOENT;
	int n = snprintf(buf, cap, "%s", d->path);
	return (uint32_t)n < cap ? n : -RP_E2BIG;
}

static int32_t topo_simulated(void *ctx)
{
	return !topo(ctx)->machine.real;
}

static uint64_t topo_memory(void *ctx)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < topo(ctx)->n_nodes; i++)
		sum += topo(ctx)->nodes[i].memory;
	return sum;
}

const struct rp_host_topology fake_topology_service = {
	.size = sizeof(struct rp_host_topology),
	.generation = topo_generation,
	.set = topo_set,
	.cpu = topo_cpu,
	.n_units = topo_n_units,
	.unit = topo_unit,
	.node = topo_node,
	.distance = topo_distance,
	.n_caches = topo_n_caches,
	.cache = topo_cache,
	.device = topo_device,
	.memory = topo_memory,
	.device_path = topo_device_path,
	.simulated = topo_simulated,
};
