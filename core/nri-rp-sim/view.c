/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/fs.h"

#define CPU "sys/devices/system/cpu"
#define NODE "sys/devices/system/node"
#define MEMINFO_MAX 8192
#define CACHES_MAX 8u

struct reader {
	struct view *v;
	struct fs_root root;
	struct err *err;
};

/* Returns MemTotal of a meminfo text in bytes; 0: missing. */
static int64_t mem_total(const char *text)
{
	const char *p = strstr(text, "MemTotal:");
	long long kb = 0;
	if (!p || sscanf(p, "MemTotal: %lld kB", &kb) != 1 || kb < 0 || kb > INT64_MAX >> 10)
		return 0;
	return (int64_t)kb << 10;
}

static int64_t read_memory(struct reader *r, const char *path)
{
	char text[MEMINFO_MAX];
	return fs_read(&r->root, path, text, sizeof text) < 0 ? 0 : mem_total(text);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

/* Reads the first of a CPU's list files that exists; otherwise returns the CPU alone. */
static void read_sharers(struct reader *r, uint32_t cpu, const char *const *files,
			 struct rp_idset *ret)
{
	char path[96];
	for (; *files; files++) {
		(void)snprintf(path, sizeof path, CPU "/cpu%u/%s", cpu, *files);
		if (fs_read_ids(&r->root, path, RP_CPUS_MAX, ret) == 0 &&
		    rp_ids_has(rp_ids_of(ret), cpu))
			return;
	}
	rp_idset_clear(ret);
	rp_idset_add(ret, cpu);
}

/* Numbers the units of a level in the order of their first CPUs. */
static void read_level(struct reader *r, enum view_level level, const char *const *files)
{
	struct view *v = r->v;
	struct rp_idset sharers;
	for (uint32_t i = 0; i < v->n_cpus; i++) {
		if (v->cpus[i].unit[level] != VIEW_NONE)
			continue;
		read_sharers(r, v->cpus[i].id, files, &sharers);
		uint32_t unit = v->n_units[level]++;
		for (uint32_t k = i; k < v->n_cpus; k++)
			if (v->cpus[k].unit[level] == VIEW_NONE &&
			    rp_ids_has(rp_ids_of(&sharers), v->cpus[k].id))
				v->cpus[k].unit[level] = unit;
	}
}

/* Finds the cache/indexN of the third level; ret: the path of its shared_cpu_list. */
static bool find_l3(struct reader *r, uint32_t cpu, char *ret, size_t size)
{
	char path[96];
	int64_t level;
	for (unsigned i = 0; i < CACHES_MAX; i++) {
		(void)snprintf(path, sizeof path, CPU "/cpu%u/cache/index%u/level", cpu, i);
		if (fs_read_i64(&r->root, path, &level) || level != 3)
			continue;
		(void)snprintf(ret, size, "cache/index%u/shared_cpu_list", i);
		return true;
	}
	return false;
}

static void read_cpu_levels(struct reader *r)
{
	static const char *const core[] = {"topology/core_cpus_list",
					   "topology/thread_siblings_list", NULL};
	static const char *const package[] = {"topology/package_cpus_list",
					      "topology/core_siblings_list", NULL};
	static const char *const die[] = {"topology/die_cpus_list", "topology/package_cpus_list",
					  "topology/core_siblings_list", NULL};
	char l3_file[64];
	read_level(r, VIEW_CORE, core);
	read_level(r, VIEW_PACKAGE, package);
	read_level(r, VIEW_DIE, die);
	if (r->v->n_cpus && find_l3(r, r->v->cpus[0].id, l3_file, sizeof l3_file))
		read_level(r, VIEW_L3, (const char *const[]){l3_file, NULL});
}

static int make_cpus(struct reader *r)
{
	struct view *v = r->v;
	if (fs_read_ids(&r->root, CPU "/online", RP_CPUS_MAX, &v->online) &&
	    fs_read_ids(&r->root, CPU "/present", RP_CPUS_MAX, &v->online))
		return err_set(r->err, -EINVAL,
			       "%s: not the folder of a machine: it lacks " CPU "/online",
			       r->root.path);
	if (fs_read_ids(&r->root, CPU "/present", RP_CPUS_MAX, &v->present))
		rp_idset_copy(&v->present, rp_ids_of(&v->online));
	if (fs_read_ids(&r->root, CPU "/isolated", RP_CPUS_MAX, &v->isolated))
		rp_idset_clear(&v->isolated);
	v->n_cpus = rp_ids_count(rp_ids_of(&v->online));
	v->n_ids = v->n_cpus ? rp_ids_last(rp_ids_of(&v->online)) + 1 : 0;
	v->cpus = arena_array(v->arena, v->n_cpus + 1, sizeof *v->cpus);
	v->index_of = arena_array(v->arena, v->n_ids + 1, sizeof *v->index_of);
	if (!v->cpus || !v->index_of)
		return err_errno(r->err, -ENOMEM, "machine");
	uint32_t n = 0;
	memset(v->index_of, 0xff, (v->n_ids + 1) * sizeof *v->index_of);
	RP_IDS_EACH (cpu, rp_ids_of(&v->online)) {
		v->index_of[cpu] = n;
		memset(v->cpus[n].unit, 0xff, sizeof v->cpus[n].unit);
		v->cpus[n++].id = cpu;
	}
	read_cpu_levels(r);
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int make_nodes(struct reader *r)
{
	struct view *v = r->v;
	char path[96];
	bool numa = fs_read_ids(&r->root, NODE "/online", RP_NODES_MAX, &v->nodes) == 0;
	if (!numa) {
		rp_idset_clear(&v->nodes);
		rp_idset_add(&v->nodes, 0);
	}
	rp_idset_clear(&v->memory);
	v->total_memory = read_memory(r, "proc/meminfo");
	v->node = arena_array(v->arena, rp_ids_count(rp_ids_of(&v->nodes)) + 1, sizeof *v->node);
	if (!v->node)
		return err_errno(r->err, -ENOMEM, "machine");
	RP_IDS_EACH (node, rp_ids_of(&v->nodes)) {
		struct view_node *n = &v->node[v->n_nodes++];
		struct rp_idset cpus;
		n->id = node;
		(void)snprintf(path, sizeof path, NODE "/node%u/meminfo", node);
		n->memory = numa ? read_memory(r, path) : v->total_memory;
		if (n->memory)
			rp_idset_add(&v->memory, node);
		(void)snprintf(path, sizeof path, NODE "/node%u/cpulist", node);
		if (!numa || fs_read_ids(&r->root, path, RP_CPUS_MAX, &cpus))
			rp_idset_copy(&cpus, numa ? rp_ids_none() : rp_ids_of(&v->online));
		for (uint32_t i = 0; i < v->n_cpus; i++)
			if (rp_ids_has(rp_ids_of(&cpus), v->cpus[i].id))
				v->cpus[i].unit[VIEW_NODE] = node;
	}
	/* a CPU that no online node lists is treated as one of the first node, as by nri-rpd */
	for (uint32_t i = 0; i < v->n_cpus && v->n_nodes; i++)
		if (v->cpus[i].unit[VIEW_NODE] == VIEW_NONE)
			v->cpus[i].unit[VIEW_NODE] = v->node[0].id;
	v->n_units[VIEW_NODE] = v->n_nodes;
	if (rp_ids_empty(rp_ids_of(&v->memory)))
		rp_idset_copy(&v->memory, rp_ids_of(&v->nodes));
	return 0;
}

int view_read(const char *root, struct view *ret, struct err *err)
{
	struct view v = {.arena = arena_new(64 << 10, 0)};
	struct reader r = {.v = &v, .err = err};
	if (!v.arena)
		return err_errno(err, -ENOMEM, "machine");
	int rc = fs_root_open(&r.root, root, err);
	if (rc) {
		view_fini(&v);
		return rc;
	}
	rc = make_cpus(&r);
	if (!rc)
		rc = make_nodes(&r);
	fs_root_close(&r.root);
	if (rc)
		view_fini(&v);
	else
		*ret = v;
	return rc;
}

void view_fini(struct view *v)
{
	v->arena = arena_free(v->arena);
}

const struct view_cpu *view_cpu(const struct view *v, uint32_t id)
{
	if (id >= v->n_ids || v->index_of[id] == VIEW_NONE)
		return NULL;
	return &v->cpus[v->index_of[id]];
}

void view_units(const struct view *v, enum view_level level, struct rp_ids cpus,
		struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, cpus) {
		const struct view_cpu *c = view_cpu(v, cpu);
		if (c && c->unit[level] != VIEW_NONE)
			rp_idset_add(ret, c->unit[level]);
	}
}

void view_cpus(const struct view *v, enum view_level level, struct rp_ids units,
	       struct rp_idset *ret)
{
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < v->n_cpus; i++)
		if (v->cpus[i].unit[level] != VIEW_NONE &&
		    rp_ids_has(units, v->cpus[i].unit[level]))
			rp_idset_add(ret, v->cpus[i].id);
}
