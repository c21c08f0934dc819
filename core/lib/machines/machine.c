/* SPDX-License-Identifier: Apache-2.0 */
/* Makes CPUs, caches and memory nodes from a description. */
#include "core/lib/machines/machine.h"
#include "core/lib/machines/shipped.h"

#include <stdio.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define MEMORY_MAX (INT64_C(1) << 50)
#define DISTANCE_MAX 255

static const char machine_keys[] =
	"name about base numbering packages dies nodes cores threads memory kinds memoryNodes "
	"hugepages distances caches frequency isolated offline numa";

/* Values of the description, before they are multiplied out. */
struct plan {
	const json_t *d;
	struct machine *m;
	int64_t packages, dies, nodes; /* dies per package, nodes per die */
	int64_t memory; /* memory of each node */
	/* distances to nodes of the same die, of the same package, and of other packages */
	int64_t near_die, near_package, far;
	bool far_siblings;
	enum { L3_PACKAGE, L3_DIE, L3_NODE, L3_CORES } l3_shared;
	int64_t l3_cores;
	struct err *err;
};

/* ---- reading --------------------------------------------------------------------------------- */

static int read_frequency(struct args *a, struct machine_frequency *ret)
{
	struct args f = arg_sub(a, "frequency", "base min max");
	(void)arg_amount(&f, "base", ARG_KHZ, ret->base, &ret->base);
	(void)arg_amount(&f, "min", ARG_KHZ, ret->min, &ret->min);
	return arg_amount(&f, "max", ARG_KHZ, ret->max, &ret->max);
}

static int read_caches(struct plan *p, struct machine_kind *k)
{
	static const char keys[] = "l1d l1i l2 l2Cores l3 l3Shared l3Cores";
	const char *shared;
	int64_t l2_cores;
	struct args c = arg_sub(ARGS(p->d, p->err), "caches", keys);
	(void)arg_amount(&c, "l1d", ARG_BYTES, 32 << 10, &k->l1d);
	(void)arg_amount(&c, "l1i", ARG_BYTES, 32 << 10, &k->l1i);
	(void)arg_amount(&c, "l2", ARG_BYTES, 1 << 20, &k->l2);
	(void)arg_int(&c, "l2Cores", 1, 1, RP_CPUS_MAX, &l2_cores);
	(void)arg_amount(&c, "l3", ARG_BYTES, 16 << 20, &p->m->l3);
	(void)arg_int(&c, "l3Cores", 0, 0, RP_CPUS_MAX, &p->l3_cores);
	if (arg_text(&c, "l3Shared", "package", &shared))
		return c.r;
	k->l2_cores = (uint32_t)l2_cores;
	if (p->l3_cores)
		p->l3_shared = L3_CORES;
	else if (str_eq(shared, "die"))
		p->l3_shared = L3_DIE;
	else if (str_eq(shared, "node"))
		p->l3_shared = L3_NODE;
	else if (!str_eq(shared, "package"))
		return err_set(p->err, -EINVAL, "l3Shared: expected package, die or node");
	return 0;
}

static int read_kind(struct plan *p, const json_t *d, struct machine_kind *k)
{
	int64_t cores, threads, l2_cores;
	const char *type, *name;
	struct args *a = ARGS(d, p->err);
	(void)arg_int(a, "cores", 1, 1, RP_CPUS_MAX, &cores);
	(void)arg_int(a, "threads", 1, 1, 16, &threads);
	int r = read_frequency(a, &k->frequency);
	if (r)
		return r;
	k->cores = (uint32_t)cores;
	k->threads = (uint32_t)threads;
	if (d == p->d)
		return 0;
	(void)arg_check(a, "name type cores threads frequency l1d l1i l2 l2Cores", "kinds");
	(void)arg_text(a, "name", "cores", &name);
	(void)arg_text(a, "type", "performance", &type);
	(void)arg_amount(a, "l1d", ARG_BYTES, k->l1d, &k->l1d);
	(void)arg_amount(a, "l1i", ARG_BYTES, k->l1i, &k->l1i);
	(void)arg_amount(a, "l2", ARG_BYTES, k->l2, &k->l2);
	if (arg_int(a, "l2Cores", k->l2_cores, 1, RP_CPUS_MAX, &l2_cores))
		return a->r;
	if (!str_eq(type, "performance") && !str_eq(type, "efficient"))
		return err_set(p->err, -EINVAL, "kinds: type: expected performance or efficient");
	k->efficient = str_eq(type, "efficient");
	k->l2_cores = (uint32_t)l2_cores;
	k->name = arena_strdup(p->m->arena, name);
	return 0;
}

static int read_kinds(struct plan *p)
{
	struct machine *m = p->m;
	const json_t *kinds;
	struct machine_kind common = {.name = "cores"};
	int r = arg_list(ARGS(p->d, p->err), "kinds", &kinds);
	if (!r)
		r = read_caches(p, &common);
	if (!r && !kinds) {
		m->n_kinds = 1;
		m->kinds[0] = common;
		return read_kind(p, p->d, &m->kinds[0]);
	}
	m->n_kinds = (uint32_t)json_array_size(kinds);
	if (!r && (!m->n_kinds || m->n_kinds > MACHINE_KINDS_MAX))
		return err_set(p->err, -EINVAL, "kinds: expected 1 to %u", MACHINE_KINDS_MAX);
	for (uint32_t i = 0; !r && i < m->n_kinds; i++) {
		m->kinds[i] = common;
		r = read_kind(p, json_array_get(kinds, i), &m->kinds[i]);
	}
	return r;
}

static int read_shape(struct plan *p)
{
	const char *numbering;
	struct args *a = ARGS(p->d, p->err);
	(void)arg_int(a, "packages", 1, 1, MACHINE_NODES_MAX, &p->packages);
	(void)arg_int(a, "dies", 1, 1, MACHINE_NODES_MAX, &p->dies);
	(void)arg_int(a, "nodes", 1, 1, MACHINE_NODES_MAX, &p->nodes);
	(void)arg_amount(a, "memory", ARG_BYTES, INT64_C(4) << 30, &p->memory);
	(void)arg_text(a, "numbering", "near", &numbering);
	(void)arg_bool(a, "numa", true, &p->m->numa);
	struct args distances = arg_sub(a, "distances", "die package machine");
	(void)arg_int(&distances, "die", 12, 11, DISTANCE_MAX, &p->near_die);
	(void)arg_int(&distances, "package", p->near_die, 11, DISTANCE_MAX, &p->near_package);
	if (arg_int(&distances, "machine", 21, 11, DISTANCE_MAX, &p->far))
		return distances.r;
	if (p->memory > MEMORY_MAX)
		return err_set(p->err, -ERANGE, "memory: too large");
	if (!str_eq(numbering, "near") && !str_eq(numbering, "far"))
		return err_set(p->err, -EINVAL, "numbering: expected near or far (siblings)");
	p->far_siblings = str_eq(numbering, "far");
	if (!p->m->numa && p->packages * p->dies * p->nodes > 1)
		return err_set(p->err, -EINVAL, "numa: false is only possible with one node");
	return 0;
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

struct counters {
	uint32_t cpu, core, core_id, l2, l3;
};

/* Returns true if the core begins a new L3 cache: at the begin of each unit that shares one. */
static bool l3_begins(const struct plan *p, uint32_t node_in_die, uint32_t die,
		      uint32_t core_in_node)
{
	switch (p->l3_shared) {
	case L3_CORES:
		return core_in_node % p->l3_cores == 0;
	case L3_NODE:
		return core_in_node == 0;
	case L3_DIE:
		return core_in_node == 0 && node_in_die == 0;
	default:
		return core_in_node == 0 && node_in_die == 0 && die == 0;
	}
}

static void add_node(const struct plan *p, struct counters *c, uint32_t package, uint32_t die,
		     uint32_t node_in_die)
{
	struct machine *m = p->m;
	uint32_t node = (uint32_t)((package * p->dies + die) * p->nodes + node_in_die), in_node = 0;
	m->nodes[node] = (struct machine_node){p->memory, MEMORY_DRAM, package, die, false};
	for (uint32_t k = 0; k < m->n_kinds; k++) {
		const struct machine_kind *kind = &m->kinds[k];
		for (uint32_t i = 0; i < kind->cores; i++, in_node++) {
			c->l2 += i % kind->l2_cores == 0;
			c->l3 += l3_begins(p, node_in_die, die, in_node);
			for (uint32_t t = 0; t < kind->threads; t++)
				m->cpus[c->cpu++] =
					(struct machine_cpu){kind,
							     package,
							     die,
							     node,
							     c->core,
							     c->core_id,
							     t,
							     kind->l2 ? c->l2 - 1 : UINT32_MAX,
							     m->l3 ? c->l3 - 1 : UINT32_MAX};
			c->core++;
			c->core_id++;
		}
	}
}

/* Sorts all first threads before all second ones. */
static int spread_siblings(struct machine *m)
{
	struct machine_cpu *sorted = arena_array(m->arena, m->n_cpus, sizeof *sorted);
	uint32_t n = 0;
	if (!sorted)
		return -ENOMEM;
	for (uint32_t t = 0; n < m->n_cpus; t++)
		for (uint32_t i = 0; i < m->n_cpus; i++)
			if (m->cpus[i].thread == t)
				sorted[n++] = m->cpus[i];
	m->cpus = sorted;
	return 0;
}

static int make_cpus(struct plan *p)
{
	struct machine *m = p->m;
	uint32_t of_node = 0;
	for (uint32_t k = 0; k < m->n_kinds; k++)
		of_node += m->kinds[k].cores * m->kinds[k].threads;
	int64_t n_nodes = p->packages * p->dies * p->nodes;
	if (n_nodes > MACHINE_NODES_MAX || n_nodes * of_node > RP_CPUS_MAX)
		return err_set(p->err, -ERANGE, "more than %u nodes or %u CPUs", MACHINE_NODES_MAX,
			       RP_CPUS_MAX);
	m->n_packages = (uint32_t)p->packages;
	m->n_cpus = (uint32_t)n_nodes * of_node;
	m->n_nodes = (uint32_t)n_nodes;
	m->cpus = arena_array(m->arena, m->n_cpus, sizeof *m->cpus);
	m->nodes = arena_array(m->arena, MACHINE_NODES_MAX, sizeof *m->nodes);
	if (!m->cpus || !m->nodes)
		return err_errno(p->err, -ENOMEM, "machine");
	struct counters c = {0};
	for (uint32_t package = 0; package < p->packages; package++) {
		c.core_id = 0;
		for (uint32_t die = 0; die < p->dies; die++)
			for (uint32_t node = 0; node < p->nodes; node++)
				add_node(p, &c, package, die, node);
	}
	m->n_cores = c.core;
	return p->far_siblings && spread_siblings(m) ? err_errno(p->err, -ENOMEM, "machine") : 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int make_distances(struct plan *p)
{
	struct machine *m = p->m;
	uint32_t n = m->n_nodes;
	m->distances = arena_array(m->arena, (size_t)n * n, sizeof *m->distances);
	if (!m->distances)
		return err_errno(p->err, -ENOMEM, "machine");
	for (uint32_t a = 0; a < n; a++) {
		for (uint32_t b = 0; b < n; b++) {
			const struct machine_node *na = &m->nodes[a], *nb = &m->nodes[b];
			int64_t d = p->far;
			if (a == b)
				d = 10;
			else if (na->package == nb->package && na->package != UINT32_MAX)
				d = na->die == nb->die ? p->near_die : p->near_package;
			m->distances[a * n + b] = (uint16_t)d;
		}
	}
	return 0;
}

static int read_huge(struct plan *p)
{
	const json_t *map;
	const char *key;
	json_t *value;
	int r = arg_map(ARGS(p->d, p->err), "hugepages", &map);
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		struct machine_huge *h = &p->m->huge[p->m->n_huge];
		int64_t page;
		if (r)
			return r;
		if (str_to_bytes(key, &page) || page <= 0 || page % 1024 ||
		    p->m->n_huge == MACHINE_HUGE_MAX)
			return err_set(p->err, -EINVAL,
				       "hugepages: %s: expected up to %u page sizes, as 2Mi", key,
				       MACHINE_HUGE_MAX);
		h->page = (uint64_t)page;
		r = arg_int(ARGS(map, p->err), key, 0, 0, INT32_MAX, &h->n);
		p->m->n_huge++;
	}
	return r;
}

static int read_memory_node(struct plan *p, const json_t *d, struct machine_node *node)
{
	static const char *const types[] = {"dram", "hbm", "cxl", "pmem", "device"};
	const char *type;
	bool normal;
	struct args *a = ARGS(d, p->err);
	(void)arg_check(a, "memory type normal distances", "memoryNodes");
	(void)arg_amount(a, "memory", ARG_BYTES, p->memory, &node->memory);
	(void)arg_text(a, "type", "cxl", &type);
	if (arg_bool(a, "normal", true, &normal))
		return a->r;
	if (node->memory > MEMORY_MAX)
		return err_set(p->err, -ERANGE, "memoryNodes: memory: too large");
	node->package = node->die = UINT32_MAX;
	node->movable = !normal;
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		if (!str_eq(types[i], type))
			continue;
		node->type = (enum machine_memory)i;
		return 0;
	}
	return err_set(p->err, -EINVAL, "memoryNodes: type: expected hbm, cxl, pmem or device");
}

static int set_distances(struct plan *p, uint32_t node, const json_t *map)
{
	struct machine *m = p->m;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		uint64_t other;
		int64_t d;
		if (str_to_u64(key, &other) || other >= m->n_nodes || other == node)
			return err_set(p->err, -EINVAL, "distances: unknown node: %s", key);
		int r = arg_int(ARGS(map, p->err), key, 0, 11, DISTANCE_MAX, &d);
		if (r)
			return r;
		m->distances[node * m->n_nodes + other] = (uint16_t)d;
		m->distances[other * m->n_nodes + node] = (uint16_t)d;
	}
	return 0;
}

static int make_memory(struct plan *p)
{
	struct machine *m = p->m;
	const json_t *list, *distances;
	uint32_t with_cpus = m->n_nodes;
	int r = arg_list(ARGS(p->d, p->err), "memoryNodes", &list);
	size_t n = json_array_size(list);
	if (!r && (with_cpus + n > MACHINE_NODES_MAX || (n && !m->numa)))
		return err_set(p->err, -ERANGE, "memoryNodes: too many nodes");
	for (size_t i = 0; !r && i < n; i++)
		r = read_memory_node(p, json_array_get(list, i), &m->nodes[m->n_nodes++]);
	if (!r)
		r = make_distances(p);
	for (size_t i = 0; !r && i < n; i++) {
		r = arg_map(ARGS(json_array_get(list, i), p->err), "distances", &distances);
		if (!r)
			r = set_distances(p, with_cpus + (uint32_t)i, distances);
	}
	return r;
}

/* ---- the whole machine ----------------------------------------------------------------------- */

static int read_set(struct plan *p, const char *key, struct rp_idset *ret)
{
	char buf[ARG_NUMBER_MAX];
	const json_t *node = json_object_get(p->d, key);
	const char *text = node ? arg_scalar(node, buf) : "";
	if (!text || rp_idset_parse(ret, text, p->m->n_cpus))
		return err_set(p->err, -EINVAL, "%s: expected CPUs of the machine, as in 0-3,8",
			       key);
	return 0;
}

static int machine_build(struct plan *p)
{
	const char *name, *about;
	struct args *a = ARGS(p->d, p->err);
	(void)arg_check(a, machine_keys, "machine");
	(void)arg_text(a, "name", "unnamed", &name);
	int r = arg_text(a, "about", "", &about);
	if (!r)
		r = read_shape(p);
	if (!r)
		r = read_kinds(p);
	if (!r)
		r = make_cpus(p);
	if (!r)
		r = make_memory(p);
	if (!r)
		r = read_huge(p);
	if (!r)
		r = read_set(p, "isolated", &p->m->isolated);
	if (!r)
		r = read_set(p, "offline", &p->m->offline);
	if (r)
		return r;
	if (rp_ids_count(rp_ids_of(&p->m->offline)) == p->m->n_cpus)
		return err_set(p->err, -EINVAL, "offline: at least one CPU must stay online");
	p->m->name = arena_strdup(p->m->arena, name);
	p->m->about = arena_strdup(p->m->arena, about);
	return p->m->name && p->m->about ? 0 : err_errno(p->err, -ENOMEM, "machine");
}

#define BASES_MAX 4

/* Merges the description over its base: its keys replace those of the base. */
static int with_base(const json_t *description, unsigned depth, json_t **ret, struct err *err)
{
	const char *base;
	_json_ json_t *shipped = NULL;
	int r = arg_text(ARGS(description, err), "base", NULL, &base);
	if (r)
		return r;
	if (!base) {
		*ret = json_deep_copy(description);
		return *ret ? 0 : err_errno(err, -ENOMEM, "machine");
	}
	if (depth == BASES_MAX)
		return err_set(err, -ELOOP, "machine: bases are nested too deeply");
	r = machine_shipped(base, &shipped, err);
	if (!r)
		r = with_base(shipped, depth + 1, ret, err);
	if (!r)
		(void)json_object_update(*ret, (json_t *)(uintptr_t)description);
	return r;
}

int machine_from(const json_t *description, struct machine *ret, struct err *err)
{
	struct machine m = {.arena = arena_new(64 << 10, 0)};
	_json_ json_t *whole = NULL;
	int r = m.arena ? with_base(description, 0, &whole, err)
			: err_errno(err, -ENOMEM, "machine");
	struct plan p = {.d = whole, .m = &m, .err = err};
	if (!r)
		r = machine_build(&p);
	if (r) {
		machine_fini(&m);
		return r;
	}
	/* The kinds are within the copied struct. */
	*ret = m;
	for (uint32_t i = 0; i < ret->n_cpus; i++)
		ret->cpus[i].kind = &ret->kinds[m.cpus[i].kind - m.kinds];
	return 0;
}

void machine_fini(struct machine *m)
{
	m->arena = arena_free(m->arena);
}
