/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/util/cleanup.h"
#include "core/util/str.h"

#define GROUPS_MAX 128u
#define LETTERS 26u
#define WIDTH_USUAL 100u
#define DETAIL_CPUS_MAX 512u /* above, a node is told in numbers */
#define NOBODY 255u
#define SEVERAL 254u
#define REST 253u /* groups beyond the letters */

struct group {
	struct rp_idset cpus;
	bool shared; /* by several containers, or some of its CPUs with another group */
	unsigned letter; /* of its oldest container, and of the kind that map.h tells */
};

struct map {
	const struct sim *s;
	struct map_style style;
	struct buf *out;
	struct group *groups;
	unsigned n_groups;
	uint8_t *who; /* by index of the CPU */
};

struct map_style map_style_of_terminal(void)
{
	struct winsize size;
	bool terminal = isatty(STDOUT_FILENO);
	const char *columns = getenv("COLUMNS");
	uint64_t width = WIDTH_USUAL;
	if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		width = size.ws_col;
	else if (!columns || str_to_u64(columns, &width) || width > 1000)
		width = WIDTH_USUAL;
	if (width < MAP_WIDTH_MIN)
		width = MAP_WIDTH_MIN;
	return (struct map_style){(unsigned)width, terminal && !getenv("NO_COLOR")};
}

static char letter(unsigned who)
{
	if (who == NOBODY)
		return '.';
	if (who >= REST)
		return '*';
	return (char)(who < LETTERS ? 'a' + (int)who : 'A' + (int)(who - LETTERS));
}

static void add_letter(struct map *m, unsigned who)
{
	static const unsigned colours[] = {32, 33, 36, 35, 34, 31};
	if (m->style.colour && who < REST)
		buf_printf(m->out, "\x1b[1;%um%c\x1b[0m",
			   colours[who % LETTERS % (sizeof colours / sizeof *colours)],
			   letter(who));
	else
		buf_printf(m->out, "%c", letter(who));
}

/* ---- who is where ---------------------------------------------------------------------------- */

/* The index of a group, REST when there is none. */
static unsigned group_of(const struct map *m, struct rp_ids cpus)
{
	for (unsigned i = 0; i < m->n_groups; i++)
		if (rp_ids_equal(rp_ids_of(&m->groups[i].cpus), cpus))
			return i;
	return REST;
}

static void add_to_groups(struct map *m, const struct sim_ctr *c)
{
	struct rp_idset cpus;
	model_cpus(m->s, c, &cpus);
	unsigned g = group_of(m, rp_ids_of(&cpus));
	if (g != REST) {
		m->groups[g].shared = true;
		return;
	}
	if (m->n_groups == GROUPS_MAX)
		return;
	struct group *new = &m->groups[m->n_groups++];
	new->letter = c->number % LETTERS;
	rp_idset_copy(&new->cpus, rp_ids_of(&cpus));
	for (struct group *other = m->groups; other < new; other++)
		if (rp_ids_overlap(rp_ids_of(&other->cpus), rp_ids_of(&cpus)))
			other->shared = new->shared = true;
}

static void make_groups(struct map *m)
{
	for (const struct sim_ctr *c = m->s->ctrs; c; c = c->next)
		if (c->state != CTR_EXITED)
			add_to_groups(m, c);
	for (unsigned g = 0; g < m->n_groups; g++)
		m->groups[g].letter += m->groups[g].shared ? 0 : LETTERS;
	for (uint32_t i = 0; i < m->s->view.n_cpus; i++) {
		m->who[i] = NOBODY;
		for (unsigned g = 0; g < m->n_groups; g++)
			if (rp_ids_has(rp_ids_of(&m->groups[g].cpus), m->s->view.cpus[i].id))
				m->who[i] = (uint8_t)(m->who[i] == NOBODY ? m->groups[g].letter
									  : SEVERAL);
	}
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void add_size(struct map *m, int64_t bytes)
{
	if (bytes >= INT64_C(1) << 30)
		buf_printf(m->out, "%.1f GiB", (double)bytes / (double)(INT64_C(1) << 30));
	else
		buf_printf(m->out, "%lld MiB", (long long)(bytes >> 20));
}

/* The CPUs of a core behind one another, with brackets when there are several. */
static void add_core(struct map *m, struct rp_ids core, bool brackets)
{
	if (brackets)
		buf_add_str(m->out, "[");
	RP_IDS_EACH (cpu, core) {
		const struct view_cpu *c = view_cpu(&m->s->view, cpu);
		if (c)
			add_letter(m, m->who[c - m->s->view.cpus]);
		else
			buf_add_str(m->out, "x");
	}
	if (brackets)
		buf_add_str(m->out, "]");
}

static void add_cores(struct map *m, struct rp_ids cpus, unsigned indent)
{
	const struct view *v = &m->s->view;
	struct rp_idset cores, unit, one;
	unsigned column = indent;
	view_units(v, VIEW_CORE, cpus, &cores);
	RP_IDS_EACH (core, rp_ids_of(&cores)) {
		rp_idset_clear(&one);
		rp_idset_add(&one, core);
		view_cpus(v, VIEW_CORE, rp_ids_of(&one), &unit);
		unsigned n = rp_ids_count(rp_ids_of(&unit)), width = n > 1 ? n + 3 : n + 1;
		if (column + width > m->style.width) {
			buf_printf(m->out, "\n%*s", (int)indent, "");
			column = indent;
		}
		add_core(m, rp_ids_of(&unit), n > 1);
		buf_add_str(m->out, " ");
		column += width;
	}
}

static void add_counts(struct map *m, struct rp_ids cpus)
{
	unsigned of[256] = {0}, n = 0;
	RP_IDS_EACH (cpu, cpus) {
		const struct view_cpu *c = view_cpu(&m->s->view, cpu);
		if (c) {
			of[m->who[c - m->s->view.cpus]]++;
			n++;
		}
	}
	buf_printf(m->out, "%u CPUs:", n);
	for (unsigned who = 0; who < 256; who++) {
		if (!of[who])
			continue;
		buf_add_str(m->out, " ");
		add_letter(m, who);
		buf_printf(m->out, " %u", of[who]);
	}
}

static void add_node(struct map *m, const struct view_node *node)
{
	struct rp_idset cpus, one;
	rp_idset_clear(&one);
	rp_idset_add(&one, node->id);
	view_cpus(&m->s->view, VIEW_NODE, rp_ids_of(&one), &cpus);
	size_t start = buf_len(m->out);
	buf_printf(m->out, "  node %-3u ", node->id);
	add_size(m, node->memory);
	unsigned indent = (unsigned)(buf_len(m->out) - start);
	for (; indent < 22; indent++)
		buf_add_str(m->out, " ");
	if (rp_ids_empty(rp_ids_of(&cpus)))
		buf_add_str(m->out, "memory only");
	else if (m->s->view.n_cpus > DETAIL_CPUS_MAX)
		add_counts(m, rp_ids_of(&cpus));
	else
		add_cores(m, rp_ids_of(&cpus), indent);
	buf_add_str(m->out, "\n");
}

static uint32_t package_of(const struct view *v, uint32_t node)
{
	for (uint32_t i = 0; i < v->n_cpus; i++)
		if (v->cpus[i].unit[VIEW_NODE] == node)
			return v->cpus[i].unit[VIEW_PACKAGE];
	return VIEW_NONE;
}

static void add_machine(struct map *m)
{
	const struct view *v = &m->s->view;
	uint32_t last = VIEW_NONE;
	for (uint32_t i = 0; i < v->n_nodes; i++) {
		uint32_t package = package_of(v, v->node[i].id);
		if (package != last && package != VIEW_NONE)
			buf_printf(m->out, "package %u\n", package);
		last = package;
		add_node(m, &v->node[i]);
	}
}

/* ---- the containers -------------------------------------------------------------------------- */

static void place_text(const struct sim *s, const struct sim_ctr *c, char *buf, size_t size)
{
	_free_ struct rp_idset *set = malloc(sizeof *set);
	_free_ char *cpus = malloc(RP_IDSET_TEXT_MAX);
	buf[0] = '\0';
	if (!set || !cpus)
		return;
	model_cpus(s, c, set);
	(void)rp_ids_format(rp_ids_of(set), cpus, RP_IDSET_TEXT_MAX);
	char mems[64];
	model_mems(s, c, set);
	(void)rp_ids_format(rp_ids_of(set), mems, sizeof mems);
	(void)snprintf(buf, size, "CPUs %s, memory %s", cpus, mems);
}

static void add_container(struct map *m, const struct sim_ctr *c, const json_t *before)
{
	struct rp_idset cpus;
	char name[MODEL_NAME_MAX], place[256];
	model_cpus(m->s, c, &cpus);
	buf_add_str(m->out, "  ");
	unsigned g = group_of(m, rp_ids_of(&cpus));
	add_letter(m, g == REST ? REST : m->groups[g].letter);
	place_text(m->s, c, place, sizeof place);
	buf_printf(m->out, "  %-22s %-10s  %s", model_name(c, name), kubelet_qos_name(c->pod->qos),
		   place);
	const char *was = json_string_value(json_object_get(before, c->id));
	if (before && !was)
		buf_add_str(m->out, "  (new)");
	else if (was && !str_eq(was, place))
		buf_printf(m->out, "  (was %s)", was);
	buf_add_str(m->out, "\n");
}

void map_draw(const struct sim *s, struct map_style style, const json_t *before, struct buf *out)
{
	struct map m = {.s = s, .style = style, .out = out};
	m.groups = calloc(GROUPS_MAX, sizeof *m.groups);
	m.who = calloc(s->view.n_cpus + 1, 1);
	if (m.groups && m.who) {
		make_groups(&m);
		add_machine(&m);
		for (const struct sim_ctr *c = s->ctrs; c; c = c->next)
			if (c->state != CTR_EXITED)
				add_container(&m, c, before);
	}
	free(m.groups);
	free(m.who);
}

json_t *map_remember(const struct sim *s)
{
	json_t *places = json_object();
	char place[256];
	for (const struct sim_ctr *c = s->ctrs; c; c = c->next) {
		place_text(s, c, place, sizeof place);
		doc_put_text(places, c->id, place);
	}
	return places;
}
