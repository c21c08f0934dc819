/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as a map: packages, nodes, caches, cores, and on every CPU the letter of those who
 * run there.
 *
 *   node 0  DRAM 16 GiB  CPUs 0-7: 2 exclusive, 6 shared
 *     0 a   1 a │   2 A   3 A │   4 a   5 a │   6 a   7 a
 *
 * Capitals are CPUs of one container alone, small letters are shared ones. Large machines get a
 * line of sets for each node instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/nri-rpctl/cli.h"
#include "core/util/str.h"

#define DENSE_MAX 256u /* CPUs drawn one by one */
#define WIDTH_DEFAULT 100u
#define LETTERS 26u
#define NOBODY UINT32_MAX

struct map_cpu {
	uint32_t cpu, package, node, cache, core;
	uint32_t group; /* index, or NOBODY */
};

struct map {
	struct out *o;
	const json_t *doc, *groups;
	struct map_cpu *cpus;
	uint32_t n;
	unsigned letters; /* of a mark */
	unsigned digits; /* of a CPU */
	unsigned threads; /* of the largest core */
	bool many_caches; /* a node has several */
};

/* ---- reading --------------------------------------------------------------------------------- */

static int compare_cpus(const void *x, const void *y)
{
	const struct map_cpu *a = x, *b = y;
	const uint32_t ka[] = {a->package, a->node, a->cache, a->core, a->cpu};
	const uint32_t kb[] = {b->package, b->node, b->cache, b->core, b->cpu};
	for (size_t i = 0; i < sizeof ka / sizeof ka[0]; i++)
		if (ka[i] != kb[i])
			return ka[i] < kb[i] ? -1 : 1;
	return 0;
}

static bool same_core(const struct map_cpu *a, const struct map_cpu *b)
{
	return a->core == b->core && a->node == b->node && a->package == b->package;
}

static bool same_cache(const struct map_cpu *a, const struct map_cpu *b)
{
	return a->cache == b->cache && a->node == b->node && a->package == b->package;
}

static bool same_node(const struct map_cpu *a, const struct map_cpu *b)
{
	return a->node == b->node && a->package == b->package;
}

/* Groups come with what is exclusive first, then the smaller ones: the first that has a CPU says
 * most about it. */
static void assign_groups(struct map *m)
{
	const json_t *g;
	size_t i;
	struct rp_idset set;
	json_array_foreach(m->groups, i, g)
	{
		if (rp_idset_parse(&set, js(g, "cpus"), RP_CPUS_MAX))
			continue;
		for (uint32_t k = 0; k < m->n; k++)
			if (m->cpus[k].group == NOBODY &&
			    rp_ids_has(rp_ids_of(&set), m->cpus[k].cpu))
				m->cpus[k].group = (uint32_t)i;
	}
}

static void measure(struct map *m)
{
	unsigned in_core = 0;
	uint32_t highest = 0;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct map_cpu *c = &m->cpus[i];
		in_core = i && same_core(c, c - 1) ? in_core + 1 : 1;
		if (in_core > m->threads)
			m->threads = in_core;
		if (c->cpu > highest)
			highest = c->cpu;
		if (i && same_node(c, c - 1) && !same_cache(c, c - 1))
			m->many_caches = true;
	}
	m->digits = highest > 999 ? 4 : highest > 99 ? 3 : highest > 9 ? 2 : 1;
	m->letters = json_array_size(m->groups) > LETTERS ? 2 : 1;
}

static uint32_t unit_of(const json_t *cpu, const char *key)
{
	const json_t *v = json_object_get(cpu, key);
	return json_is_integer(v) ? (uint32_t)json_integer_value(v) : 0;
}

static int read_map(struct map *m)
{
	const json_t *list = json_object_get(m->doc, "cpus"), *cpu;
	size_t i;
	m->cpus = calloc(json_array_size(list) + 1, sizeof *m->cpus);
	if (!m->cpus)
		return -1;
	json_array_foreach(list, i, cpu) m->cpus[m->n++] = (struct map_cpu){
		.cpu = unit_of(cpu, "cpu"),
		.package = unit_of(cpu, "package"),
		.node = unit_of(cpu, "node"),
		.cache = unit_of(cpu, "cache_unit"),
		.core = unit_of(cpu, "core_unit"),
		.group = NOBODY,
	};
	qsort(m->cpus, m->n, sizeof *m->cpus, compare_cpus);
	assign_groups(m);
	measure(m);
	return 0;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static bool is_exclusive(const struct map *m, uint32_t group)
{
	return jb(json_array_get(m->groups, group), "exclusive");
}

/* Letters are given out for each kind by itself: A, B … and a, b … */
static const char *mark_of(const struct map *m, uint32_t group, char buf[8])
{
	if (group == NOBODY)
		return m->letters > 1 ? " ·" : "·";
	bool exclusive = is_exclusive(m, group);
	uint32_t nth = 0;
	for (uint32_t i = 0; i < group; i++)
		nth += is_exclusive(m, i) == exclusive;
	char first = exclusive ? 'A' : 'a';
	if (m->letters == 1)
		(void)snprintf(buf, 8, "%c", (char)(first + (char)(nth % LETTERS)));
	else
		(void)snprintf(buf, 8, "%c%c", (char)(first + (char)(nth / LETTERS % LETTERS)),
			       (char)(first + (char)(nth % LETTERS)));
	return buf;
}

static enum style style_of(uint32_t group)
{
	static const enum style styles[] = {GREEN, CYAN, YELLOW, MAGENTA, BLUE};
	return group == NOBODY ? DIM : styles[group % (sizeof styles / sizeof styles[0])];
}

/* ---- drawing --------------------------------------------------------------------------------- */

static unsigned width_of(const struct map *m)
{
	return m->o->term.width ? m->o->term.width : WIDTH_DEFAULT;
}

static const json_t *node_of(const struct map *m, uint32_t id)
{
	const json_t *n;
	size_t i;
	json_array_foreach(json_object_get(m->doc, "nodes"), i,
			   n) if (ji(n, "node") == id) return n;
	return NULL;
}

static void put_part(struct out *o, unsigned n, const char *what, const char *before)
{
	if (n)
		out_printf(o, "%s %u %s", before, n, what);
}

static void draw_node_head(const struct map *m, const struct map_cpu *c, uint32_t n)
{
	const json_t *node = node_of(m, c->node);
	unsigned exclusive = 0, shared = 0;
	char memory[UNIT_MAX];
	for (uint32_t i = 0; i < n; i++) {
		if (c[i].group == NOBODY)
			continue;
		if (is_exclusive(m, c[i].group))
			exclusive++;
		else
			shared++;
	}
	out_style(m->o, BOLD);
	out_printf(m->o, "  node %u", c->node);
	out_style(m->o, PLAIN);
	if (node)
		out_printf(m->o, "  %s %s", js(node, "type"),
			   unit_bytes((uint64_t)ji(node, "memory"), memory));
	out_printf(m->o, ", %u CPUs:", n);
	put_part(m->o, exclusive, "exclusive", "");
	put_part(m->o, shared, "shared", exclusive ? "," : "");
	put_part(m->o, n - exclusive - shared, "free", exclusive || shared ? "," : "");
	out_put(m->o, "\n");
}

static void draw_cpu(const struct map *m, const struct map_cpu *c)
{
	char mark[8], number[16];
	(void)snprintf(number, sizeof number, "%*u ", (int)m->digits, c->cpu);
	out_styled(m->o, c->group == NOBODY ? DIM : PLAIN, number);
	out_styled(m->o, style_of(c->group), mark_of(m, c->group, mark));
}

/* A core with as much room as the largest has. Returns its CPUs. */
static uint32_t draw_core(const struct map *m, const struct map_cpu *c, uint32_t left)
{
	uint32_t n = 0;
	for (; n < left && same_core(c, c + n); n++) {
		if (n)
			out_pad(m->o, 1);
		draw_cpu(m, c + n);
	}
	if (n < m->threads)
		out_pad(m->o, (m->threads - n) * (m->digits + m->letters + 2));
	return n;
}

static uint32_t count_cores(const struct map_cpu *c, uint32_t n)
{
	uint32_t cores = n ? 1 : 0;
	for (uint32_t i = 1; i < n; i++)
		cores += !same_core(c + i, c + i - 1);
	return cores;
}

/* Rows of equal length, as far as it goes. */
static uint32_t cores_a_row(const struct map *m, uint32_t cores, unsigned indent)
{
	unsigned cell = m->threads * (m->digits + m->letters + 2) - 1, room = width_of(m) - indent;
	uint32_t most = room > cell ? (room + 3) / (cell + 3) : 1;
	uint32_t rows = (cores + most - 1) / most;
	return (cores + rows - 1) / rows;
}

static void draw_cache(const struct map *m, const struct map_cpu *c, uint32_t n)
{
	char label[32] = "";
	if (m->many_caches)
		(void)snprintf(label, sizeof label, "cache %u", c->cache);
	unsigned indent = m->many_caches ? 14 : 4;
	uint32_t a_row = cores_a_row(m, count_cores(c, n), indent), in_row = 0;
	for (uint32_t at = 0; at < n;) {
		if (!in_row) {
			out_pad(m->o, 4);
			out_styled(m->o, DIM, label);
			out_pad(m->o, indent - 4 - text_width(label));
		}
		at += draw_core(m, c + at, n - at);
		bool ends = ++in_row == a_row || at >= n;
		out_styled(m->o, DIM, ends ? "" : " │ ");
		if (ends) {
			out_put(m->o, "\n");
			label[0] = '\0';
			in_row = 0;
		}
	}
}

/* One line of sets: "A 0-3  a 4-60  free 61-63". */
static void draw_sets(const struct map *m, const struct map_cpu *c, uint32_t n)
{
	struct buf line = BUF_INIT;
	size_t n_groups = json_array_size(m->groups);
	for (size_t g = 0; g <= n_groups; g++) {
		uint32_t group = g < n_groups ? (uint32_t)g : NOBODY;
		struct rp_idset set;
		char text[RP_IDSET_TEXT_MAX], mark[8];
		rp_idset_clear(&set);
		for (uint32_t i = 0; i < n; i++)
			if (c[i].group == group)
				rp_idset_add(&set, c[i].cpu);
		if (!rp_ids_format(rp_ids_of(&set), text, sizeof text))
			continue;
		(void)buf_printf(&line, "%s%s %s", buf_len(&line) ? "   " : "",
				 group == NOBODY ? "free" : mark_of(m, group, mark), text);
	}
	out_pad(m->o, 4);
	out_wrap(m->o, buf_text(&line), 4, 6);
	out_put(m->o, "\n");
	buf_fini(&line);
}

static void draw_node(const struct map *m, const struct map_cpu *c, uint32_t n)
{
	draw_node_head(m, c, n);
	if (m->n > DENSE_MAX) {
		draw_sets(m, c, n);
		return;
	}
	for (uint32_t at = 0, k; at < n; at += k) {
		for (k = 1; at + k < n && same_cache(c + at, c + at + k); k++)
			;
		draw_cache(m, c + at, k);
	}
}

static void draw_machine(const struct map *m)
{
	for (uint32_t at = 0, n; at < m->n; at += n) {
		const struct map_cpu *c = &m->cpus[at];
		for (n = 1; at + n < m->n && same_node(c, c + n); n++)
			;
		if (!at || c->package != c[-1].package) {
			out_style(m->o, BOLD);
			out_printf(m->o, "package %u", c->package);
			out_style(m->o, PLAIN);
			out_put(m->o, "\n");
		}
		draw_node(m, c, n);
	}
}

/* Nodes without CPUs. */
static void draw_memory_nodes(const struct map *m)
{
	const json_t *n;
	size_t i;
	char memory[UNIT_MAX];
	json_array_foreach(json_object_get(m->doc, "nodes"), i, n) if (!*js(n, "cpus")) out_printf(
		m->o, "memory node %" PRId64 "  %s %s, near package %" PRId64 "\n", ji(n, "node"),
		js(n, "type"), unit_bytes((uint64_t)ji(n, "memory"), memory), ji(n, "package"));
}

/* ---- head and legend ------------------------------------------------------------------------- */

static void draw_head(const struct map *m)
{
	static const struct {
		const char *key, *name;
	} sets[] = {{"isolated", "isolated"},
		    {"nohz_full", "nohz_full"},
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
	};
	const json_t *g, *name;
	size_t i, k;
	int64_t unconfined = ji(m->doc, "unconfined");
	char count[UNIT_MAX];
	struct table *t = table_new(&m->o->term, columns, 5);
	json_array_foreach(m->groups, i, g)
	{
		const json_t *containers = json_object_get(g, "containers");
		struct buf names = BUF_INIT;
		char text[UNIT_MAX], mark[8];
		table_add(t, style_of((uint32_t)i), mark_of(m, (uint32_t)i, mark));
		table_add(t, PLAIN, jb(g, "exclusive") ? "exclusive" : "shared");
		table_add(t, PLAIN, js(g, "cpus"));
		(void)snprintf(text, sizeof text, "%zu", json_array_size(containers));
		table_add(t, PLAIN, text);
		json_array_foreach(containers, k, name) if (k < 8)(void)
			buf_printf(&names, "%s%s", k ? ", " : "", json_string_value(name));
		if (json_array_size(containers) > 8)
			(void)buf_add_str(&names, ", …");
		table_add(t, PLAIN, buf_text(&names));
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
	struct map m = {.o = o, .doc = doc, .groups = json_object_get(doc, "groups"), .threads = 1};
	if (read_map(&m)) {
		o->buf.failed = -1;
		return;
	}
	draw_head(&m);
	draw_machine(&m);
	draw_memory_nodes(&m);
	draw_legend(&m);
	show_speedselect(o, doc);
	free(m.cpus);
}
