/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the map: sorts CPUs, assigns letters, writes rows. */
#include "core/lib/term/cpumap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DENSE_MAX 256u /* largest number of CPUs that are drawn one by one */
#define WIDTH_DEFAULT 100u
#define LETTERS 26u

struct cell {
	struct cpumap_cpu at;
	uint32_t group; /* index of the group, or CPUMAP_NOBODY */
};

struct drawing {
	struct out *o;
	const struct cpumap *m;
	struct cell *cells; /* CPUs sorted by package, node, cache and core */
	uint32_t n;
	unsigned letters; /* number of letters per mark */
	unsigned digits; /* number of digits per CPU number */
	unsigned threads; /* threads of the largest core */
	bool many_caches; /* at least one node has several */
};

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_cells(const void *x, const void *y)
{
	const struct cpumap_cpu *a = &((const struct cell *)x)->at;
	const struct cpumap_cpu *b = &((const struct cell *)y)->at;
	const uint32_t ka[] = {a->package, a->node, a->cache, a->core, a->cpu};
	const uint32_t kb[] = {b->package, b->node, b->cache, b->core, b->cpu};
	for (size_t i = 0; i < sizeof ka / sizeof ka[0]; i++)
		if (ka[i] != kb[i])
			return ka[i] < kb[i] ? -1 : 1;
	return 0;
}

static bool same_node(const struct cell *a, const struct cell *b)
{
	return a->at.node == b->at.node && a->at.package == b->at.package;
}

static bool same_cache(const struct cell *a, const struct cell *b)
{
	return a->at.cache == b->at.cache && same_node(a, b);
}

static bool same_core(const struct cell *a, const struct cell *b)
{
	return a->at.core == b->at.core && same_node(a, b);
}

static uint32_t group_of(const struct cpumap *m, uint32_t cpu)
{
	for (uint32_t g = 0; g < m->n_groups; g++)
		if (rp_ids_has(rp_ids_of(&m->groups[g].cpus), cpu))
			return g;
	return CPUMAP_NOBODY;
}

static unsigned letters_of(const struct cpumap *m)
{
	for (uint32_t g = 0; g < m->n_groups; g++)
		if (m->groups[g].ordinal >= LETTERS)
			return 2;
	return 1;
}

static void cpumap_measure(struct drawing *d)
{
	unsigned in_core = 0;
	uint32_t highest = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct cell *c = &d->cells[i];
		in_core = i && same_core(c, c - 1) ? in_core + 1 : 1;
		if (in_core > d->threads)
			d->threads = in_core;
		if (c->at.cpu > highest)
			highest = c->at.cpu;
		if (i && same_node(c, c - 1) && !same_cache(c, c - 1))
			d->many_caches = true;
	}
	d->digits = highest > 999 ? 4 : highest > 99 ? 3 : highest > 9 ? 2 : 1;
	d->letters = letters_of(d->m);
}

/* ---- marks ----------------------------------------------------------------------------------- */

const char *cpumap_mark(const struct cpumap *m, uint32_t group, char buf[CPUMAP_MARK_MAX])
{
	bool two = letters_of(m) > 1;
	if (group == CPUMAP_NOBODY)
		return two ? " ·" : "·";
	const struct cpumap_group *g = &m->groups[group];
	char first = g->exclusive ? 'A' : 'a';
	char high = (char)(first + (char)(g->ordinal / LETTERS % LETTERS));
	char low = (char)(first + (char)(g->ordinal % LETTERS));
	if (two)
		(void)snprintf(buf, CPUMAP_MARK_MAX, "%c%c", high, low);
	else
		(void)snprintf(buf, CPUMAP_MARK_MAX, "%c", low);
	return buf;
}

enum style cpumap_style(uint32_t group)
{
	static const enum style styles[] = {GREEN, CYAN, YELLOW, MAGENTA, BLUE};
	return group == CPUMAP_NOBODY ? DIM : styles[group % (sizeof styles / sizeof styles[0])];
}

/* ---- drawing --------------------------------------------------------------------------------- */

static unsigned width_of(const struct drawing *d)
{
	return d->o->term.width ? d->o->term.width : WIDTH_DEFAULT;
}

static const struct cpumap_node *node_of(const struct drawing *d, uint32_t id)
{
	for (uint32_t i = 0; i < d->m->n_nodes; i++)
		if (d->m->nodes[i].node == id)
			return &d->m->nodes[i];
	return NULL;
}

static void put_part(struct out *o, unsigned n, const char *what, const char *before)
{
	if (n)
		out_printf(o, "%s %u %s", before, n, what);
}

static void draw_node_head(const struct drawing *d, const struct cell *c, uint32_t n)
{
	const struct cpumap_node *node = node_of(d, c->at.node);
	unsigned exclusive = 0, shared = 0, reserved = 0;
	char memory[UNIT_MAX];
	for (uint32_t i = 0; i < n; i++) {
		if (c[i].group == CPUMAP_NOBODY)
			reserved += d->m->reserved &&
				    rp_ids_has(rp_ids_of(d->m->reserved), c[i].at.cpu);
		else if (d->m->groups[c[i].group].exclusive)
			exclusive++;
		else
			shared++;
	}
	out_style(d->o, BOLD);
	out_printf(d->o, "  node %u", c->at.node);
	out_style(d->o, PLAIN);
	if (node)
		out_printf(d->o, "  %s%s%s", node->type, *node->type ? " " : "",
			   unit_bytes(node->memory, memory));
	if (node && node->used)
		out_printf(d->o, " (%s used)", unit_bytes(node->used, memory));
	out_printf(d->o, ", %u CPUs:", n);
	put_part(d->o, exclusive, "exclusive", "");
	put_part(d->o, shared, "shared", exclusive ? "," : "");
	put_part(d->o, reserved, "reserved", exclusive || shared ? "," : "");
	put_part(d->o, n - exclusive - shared - reserved, "free",
		 exclusive || shared || reserved ? "," : "");
	out_put(d->o, "\n");
}

static void draw_cpu(const struct drawing *d, const struct cell *c)
{
	char mark[CPUMAP_MARK_MAX], number[16];
	(void)snprintf(number, sizeof number, "%*u ", (int)d->digits, c->at.cpu);
	out_styled(d->o, c->group == CPUMAP_NOBODY ? DIM : PLAIN, number);
	out_styled(d->o, cpumap_style(c->group), cpumap_mark(d->m, c->group, mark));
}

/* Draws a core with the width of the largest one. Returns the number of its CPUs. */
static uint32_t draw_core(const struct drawing *d, const struct cell *c, uint32_t left)
{
	uint32_t n = 0;
	for (; n < left && same_core(c, c + n); n++) {
		if (n)
			out_pad(d->o, 1);
		draw_cpu(d, c + n);
	}
	if (n < d->threads)
		out_pad(d->o, (d->threads - n) * (d->digits + d->letters + 2));
	return n;
}

static uint32_t count_cores(const struct cell *c, uint32_t n)
{
	uint32_t cores = n ? 1 : 0;
	for (uint32_t i = 1; i < n; i++)
		cores += !same_core(c + i, c + i - 1);
	return cores;
}

/* Returns the number of cores per row, so that rows have equal lengths if possible. */
static uint32_t cores_a_row(const struct drawing *d, uint32_t cores, unsigned indent)
{
	unsigned cell = d->threads * (d->digits + d->letters + 2) - 1, room = width_of(d) - indent;
	uint32_t most = room > cell ? (room + 3) / (cell + 3) : 1;
	uint32_t rows = (cores + most - 1) / most;
	return (cores + rows - 1) / rows;
}

static void draw_cache(const struct drawing *d, const struct cell *c, uint32_t n)
{
	char label[32] = "";
	if (d->many_caches)
		(void)snprintf(label, sizeof label, "cache %u", c->at.cache);
	unsigned indent = d->many_caches ? 14 : 4;
	uint32_t a_row = cores_a_row(d, count_cores(c, n), indent), in_row = 0;
	for (uint32_t at = 0; at < n;) {
		if (!in_row) {
			out_pad(d->o, 4);
			out_styled(d->o, DIM, label);
			out_pad(d->o, indent - 4 - text_width(label));
		}
		at += draw_core(d, c + at, n - at);
		bool ends = ++in_row == a_row || at >= n;
		out_styled(d->o, DIM, ends ? "" : " │ ");
		if (ends) {
			out_put(d->o, "\n");
			label[0] = '\0';
			in_row = 0;
		}
	}
}

/* Draws one line of sets: "A 0-3 a 4-60 free 61-63". */
static void draw_sets(const struct drawing *d, const struct cell *c, uint32_t n)
{
	struct buf line = BUF_INIT;
	uint32_t n_groups = d->m->n_groups;
	for (uint32_t g = 0; g <= n_groups; g++) {
		uint32_t group = g < n_groups ? g : CPUMAP_NOBODY;
		struct rp_idset set;
		char text[RP_IDSET_TEXT_MAX], mark[CPUMAP_MARK_MAX];
		rp_idset_clear(&set);
		for (uint32_t i = 0; i < n; i++)
			if (c[i].group == group)
				rp_idset_add(&set, c[i].at.cpu);
		if (!rp_ids_format(rp_ids_of(&set), text, sizeof text))
			continue;
		(void)buf_printf(&line, "%s%s %s", buf_len(&line) ? "   " : "",
				 group == CPUMAP_NOBODY ? "free" : cpumap_mark(d->m, group, mark),
				 text);
	}
	out_pad(d->o, 4);
	out_wrap(d->o, buf_text(&line), 4, 6);
	out_put(d->o, "\n");
	buf_fini(&line);
}

static void draw_node(const struct drawing *d, const struct cell *c, uint32_t n)
{
	draw_node_head(d, c, n);
	if (d->n > DENSE_MAX) {
		draw_sets(d, c, n);
		return;
	}
	for (uint32_t at = 0, k; at < n; at += k) {
		for (k = 1; at + k < n && same_cache(c + at, c + at + k); k++)
			;
		draw_cache(d, c + at, k);
	}
}

static void draw_machine(const struct drawing *d)
{
	for (uint32_t at = 0, n; at < d->n; at += n) {
		const struct cell *c = &d->cells[at];
		for (n = 1; at + n < d->n && same_node(c, c + n); n++)
			;
		if (!at || c->at.package != c[-1].at.package) {
			out_style(d->o, BOLD);
			out_printf(d->o, "package %u", c->at.package);
			out_style(d->o, PLAIN);
			out_put(d->o, "\n");
		}
		draw_node(d, c, n);
	}
}

/* Draws nodes without CPUs. */
static void draw_memory_nodes(const struct drawing *d)
{
	for (uint32_t i = 0; i < d->m->n_nodes; i++) {
		const struct cpumap_node *node = &d->m->nodes[i];
		char memory[UNIT_MAX];
		uint32_t at = 0;
		while (at < d->n && d->cells[at].at.node != node->node)
			at++;
		if (at == d->n)
			out_printf(d->o, "memory node %u  %s%s%s%s\n", node->node, node->type,
				   *node->type ? " " : "", unit_bytes(node->memory, memory),
				   node->where);
	}
}

int cpumap_draw(const struct cpumap *m, struct out *o)
{
	struct drawing d = {.o = o, .m = m, .n = m->n_cpus, .threads = 1};
	d.cells = calloc(m->n_cpus + 1, sizeof *d.cells);
	if (!d.cells)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_cpus; i++)
		d.cells[i] = (struct cell){m->cpus[i], group_of(m, m->cpus[i].cpu)};
	qsort(d.cells, d.n, sizeof *d.cells, compare_cells);
	cpumap_measure(&d);
	draw_machine(&d);
	draw_memory_nodes(&d);
	free(d.cells);
	return 0;
}
