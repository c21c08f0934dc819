/* SPDX-License-Identifier: Apache-2.0 */
/* Output of the machine: a head, the map (core/lib/term/cpumap.h), a legend. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <nri-rp/set.h>

#include "core/nri-rpctl/cli.h"
#include "core/lib/term/cpumap.h"

#define NEAR_MAX 32u

struct map {
	struct out *o;
	const json_t *doc, *groups;
	struct cpumap_cpu *cpus;
	struct cpumap_node *nodes;
	struct cpumap_group *sets;
	char (*near)[NEAR_MAX]; /* texts by node */
	struct rp_idset reserved;
	struct cpumap drawn;
};

/* ---- reading --------------------------------------------------------------------------------- */

static uint32_t unit_of(const json_t *cpu, const char *key)
{
	const json_t *v = json_object_get(cpu, key);
	return json_is_integer(v) ? (uint32_t)json_integer_value(v) : 0;
}

static void read_cpus(struct map *m)
{
	const json_t *cpu;
	size_t i;
	json_array_foreach(json_object_get(m->doc, "cpus"), i, cpu)
	{
		m->cpus[m->drawn.n_cpus++] = (struct cpumap_cpu){
			.cpu = unit_of(cpu, "cpu"),
			.package = unit_of(cpu, "package"),
			.node = unit_of(cpu, "node"),
			.cache = unit_of(cpu, "cache_unit"),
			.core = unit_of(cpu, "core_unit"),
		};
	}
}

static void read_nodes(struct map *m)
{
	const json_t *node;
	size_t i;
	json_array_foreach(json_object_get(m->doc, "nodes"), i, node)
	{
		(void)snprintf(m->near[i], NEAR_MAX, ", near package %" PRId64,
			       ji(node, "package"));
		m->nodes[m->drawn.n_nodes++] = (struct cpumap_node){
			.node = unit_of(node, "node"),
			.type = js(node, "type"),
			.memory = (uint64_t)ji(node, "memory"),
			.used = (uint64_t)ji(node, "memory_used"),
			.where = m->near[i],
		};
	}
}

/* Reads the groups, which come in order: exclusive ones, then smaller ones. The first group with a
 * CPU determines how it is drawn. */
static void read_groups(struct map *m)
{
	uint32_t n_exclusive = 0;
	const json_t *g;
	size_t i;
	json_array_foreach(m->groups, i, g)
	{
		struct cpumap_group *set = &m->sets[m->drawn.n_groups];
		set->exclusive = jb(g, "exclusive");
		set->ordinal = set->exclusive ? n_exclusive++ : (uint32_t)i - n_exclusive;
		if (rp_idset_parse(&set->cpus, js(g, "cpus"), RP_CPUS_MAX))
			rp_idset_clear(&set->cpus);
		m->drawn.n_groups++;
	}
}

static int read_map(struct map *m)
{
	size_t n_nodes = json_array_size(json_object_get(m->doc, "nodes"));
	m->cpus = calloc(json_array_size(json_object_get(m->doc, "cpus")) + 1, sizeof *m->cpus);
	m->nodes = calloc(n_nodes + 1, sizeof *m->nodes);
	m->near = calloc(n_nodes + 1, sizeof *m->near);
	m->sets = calloc(json_array_size(m->groups) + 1, sizeof *m->sets);
	if (!m->cpus || !m->nodes || !m->near || !m->sets)
		return -1;
	read_cpus(m);
	read_nodes(m);
	read_groups(m);
	m->drawn.cpus = m->cpus;
	m->drawn.nodes = m->nodes;
	m->drawn.groups = m->sets;
	if (!rp_idset_parse(&m->reserved, js(m->doc, "reserved"), RP_CPUS_MAX))
		m->drawn.reserved = &m->reserved;
	return 0;
}

/* ---- head and legend ------------------------------------------------------------------------- */

static void draw_head(const struct map *m)
{
	static const struct {
		const char *key, *name;
	} sets[] = {{"isolated", "isolated"},
		    {"nohz_full", "nohz_full"},
		    {"reserved", "reserved"},
		    {"efficient", "efficient cores"}};
	static const struct {
		const char *key, *one, *many;
	} counts[] = {{"n_packages", "package", "packages"},
		      {"n_nodes", "memory node", "memory nodes"},
		      {"n_cores", "core", "cores"},
		      {"n_cpus", "CPU", "CPUs"}};
	char text[UNIT_MAX];
	struct rp_idset online, off;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		out_printf(m->o, "%s, ",
			   unit_count((uint64_t)ji(m->doc, counts[i].key), counts[i].one,
				      counts[i].many, text));
	out_put(m->o, unit_bytes((uint64_t)ji(m->doc, "memory"), text));
	if (*js(m->doc, "policy"))
		out_printf(m->o, "; policy %s", js(m->doc, "policy"));
	out_put(m->o, "\n");
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		if (*js(m->doc, sets[i].key))
			out_printf(m->o, "%s: %s\n", sets[i].name, js(m->doc, sets[i].key));
	if (rp_idset_parse(&online, js(m->doc, "online"), RP_CPUS_MAX) == 0 &&
	    rp_idset_parse(&off, js(m->doc, "present"), RP_CPUS_MAX) == 0) {
		char list[256];
		rp_idset_andnot(&off, rp_ids_of(&off), rp_ids_of(&online));
		if (rp_ids_format(rp_ids_of(&off), list, sizeof list))
			out_printf(m->o, "offline: %s\n", list);
	}
	out_put(m->o, "\n");
}

static void draw_legend(const struct map *m)
{
	static const struct column columns[] = {
		{.title = ""},
		{.title = "Use"},
		{.title = "CPUs", .flex = true},
		{.title = "Containers", .right = true},
		{.title = "Names", .flex = true, .drop = 1},
		{.title = "CPU used", .right = true},
	};
	const json_t *g, *name;
	size_t i, k;
	int64_t unconfined = ji(m->doc, "unconfined");
	char count[UNIT_MAX];
	const bool measured = json_object_get(json_array_get(m->groups, 0), "cpu_used_milli");
	struct table *t = table_new(&m->o->term, columns, measured ? 6 : 5);
	json_array_foreach(m->groups, i, g)
	{
		const json_t *containers = json_object_get(g, "containers");
		struct buf names = BUF_INIT;
		char text[UNIT_MAX], mark[CPUMAP_MARK_MAX];
		table_add(t, cpumap_style((uint32_t)i), cpumap_mark(&m->drawn, (uint32_t)i, mark));
		table_add(t, PLAIN, jb(g, "exclusive") ? "exclusive" : "shared");
		table_add(t, PLAIN, js(g, "cpus"));
		(void)snprintf(text, sizeof text, "%zu", json_array_size(containers));
		table_add(t, PLAIN, text);
		json_array_foreach(containers, k, name) if (k < 8)(void)
			buf_printf(&names, "%s%s", k ? ", " : "", json_string_value(name));
		if (json_array_size(containers) > 8)
			(void)buf_add_str(&names, ", …");
		table_add(t, PLAIN, buf_text(&names));
		if (measured)
			table_add(t, PLAIN, unit_cpu(ji(g, "cpu_used_milli"), text));
		buf_fini(&names);
	}
	if (table_rows(t))
		out_put(m->o, "\n");
	table_end(t, m->o);
	if (unconfined)
		out_printf(m->o, "\n%s may run on any CPU.\n",
			   unit_count((uint64_t)unconfined, "container", "containers", count));
}

void show_topology_map(struct out *o, const json_t *doc)
{
	struct map m = {.o = o, .doc = doc, .groups = json_object_get(doc, "groups")};
	int r = read_map(&m);
	if (!r) {
		draw_head(&m);
		r = cpumap_draw(&m.drawn, o);
	}
	if (!r) {
		draw_legend(&m);
		show_speedselect(o, doc);
	}
	if (r)
		o->buf.failed = -1;
	free(m.cpus);
	free(m.nodes);
	free(m.near);
	free(m.sets);
}
