/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/map.h"
#include "core/nri-rp-sim/control.h"
#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/kubelet.h"
#include "core/nri-rp-sim/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lib/term/cpumap.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

/* limit of drawn CPU sets; containers on other sets are only listed */
#define GROUPS_MAX 128u
#define LETTERS 26u
#define WIDTH_USUAL 100u
#define WIDTH_MOST 1000u
#define ASK_MS 5000u

struct map {
	const struct sim *s;
	json_t *containers; /* nri-rpd's list of containers; NULL: nri-rpd cannot be queried */
	struct cpumap drawn;
	struct cpumap_cpu *cpus;
	struct cpumap_node *nodes;
	struct cpumap_group *groups;
};

void map_terminal(struct term *ret)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width;
	term_init(ret, STDOUT_FILENO);
	if (!ret->width && columns && str_to_u64(columns, &width) == 0 && width <= WIDTH_MOST)
		ret->width = (unsigned)width;
	if (!ret->width)
		ret->width = WIDTH_USUAL;
	if (ret->width < MAP_WIDTH_MIN)
		ret->width = MAP_WIDTH_MIN;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Returns the index of the group with these CPUs, or CPUMAP_NOBODY. */
static uint32_t group_of(const struct map *m, struct rp_ids cpus)
{
	for (uint32_t i = 0; i < m->drawn.n_groups; i++)
		if (rp_ids_equal(rp_ids_of(&m->groups[i].cpus), cpus))
			return i;
	return CPUMAP_NOBODY;
}

/* Returns true if nri-rpd says that all CPUs of the container are exclusive. */
static bool map_exclusive(const struct map *m, const struct sim_ctr *c)
{
	const json_t *of;
	size_t i;
	json_array_foreach(m->containers, i, of)
	{
		const char *id = json_string_value(json_object_get(of, "id"));
		const char *own = json_string_value(json_object_get(of, "exclusive"));
		const char *cpus = json_string_value(json_object_get(of, "cpus"));
		if (id && str_eq(id, c->id))
			return own && cpus && str_eq(own, cpus);
	}
	return false;
}

/* Adds a container to the group of its CPUs. Its letter comes from its number, so it is the same in
 * every map. */
static void add_to_groups(struct map *m, const struct sim_ctr *c)
{
	struct rp_idset cpus;
	model_cpus(m->s, c, &cpus);
	uint32_t g = group_of(m, rp_ids_of(&cpus));
	if (g != CPUMAP_NOBODY) {
		m->groups[g].exclusive = false;
		return;
	}
	if (m->drawn.n_groups == GROUPS_MAX)
		return;
	struct cpumap_group *new = &m->groups[m->drawn.n_groups++];
	*new = (struct cpumap_group){.exclusive = map_exclusive(m, c),
				     .ordinal = c->number % LETTERS};
	rp_idset_copy(&new->cpus, rp_ids_of(&cpus));
	for (struct cpumap_group *other = m->groups; other < new; other++)
		if (rp_ids_overlap(rp_ids_of(&other->cpus), rp_ids_of(&cpus)))
			other->exclusive = new->exclusive = false;
}

/* Orders groups: exclusive ones, then smaller ones. The first group with a CPU determines how it is
 * drawn. */
static int compare_groups(const void *x, const void *y)
{
	const struct cpumap_group *a = x, *b = y;
	if (a->exclusive != b->exclusive)
		return a->exclusive ? -1 : 1;
	unsigned na = rp_ids_count(rp_ids_of(&a->cpus)), nb = rp_ids_count(rp_ids_of(&b->cpus));
	if (na != nb)
		return na < nb ? -1 : 1;
	return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static int read_model(struct map *m)
{
	struct topo *t = m->s->topo;
	struct rp_ids cpus = topo_ids(t, RP_CPUS_ONLINE), nodes = topo_ids(t, RP_NODES_ONLINE);
	m->cpus = calloc(rp_ids_count(cpus) + 1, sizeof *m->cpus);
	m->nodes = calloc(rp_ids_count(nodes) + 1, sizeof *m->nodes);
	m->groups = calloc(GROUPS_MAX, sizeof *m->groups);
	if (!m->cpus || !m->nodes || !m->groups)
		return -1;
	RP_IDS_EACH (cpu, cpus) {
		struct rp_cpu_info c = {.size = offsetof(struct rp_cpu_info, base_khz)};
		(void)topo_cpu(t, cpu, &c);
		m->cpus[m->drawn.n_cpus++] =
			(struct cpumap_cpu){cpu, c.unit[RP_LEVEL_PACKAGE], c.node_id,
					    c.unit[RP_LEVEL_L3], c.unit[RP_LEVEL_CORE]};
	}
	RP_IDS_EACH (id, nodes) {
		struct rp_node_info node = {.size = sizeof node};
		(void)topo_node(t, id, &node);
		m->nodes[m->drawn.n_nodes++] = (struct cpumap_node){id, "", node.memory, "", 0};
	}
	for (const struct sim_ctr *c = m->s->ctrs; c; c = c->next)
		if (c->state != CTR_EXITED)
			add_to_groups(m, c);
	qsort(m->groups, m->drawn.n_groups, sizeof *m->groups, compare_groups);
	m->drawn.cpus = m->cpus;
	m->drawn.nodes = m->nodes;
	m->drawn.groups = m->groups;
	return 0;
}

/* ---- list of containers ---------------------------------------------------------------------- */

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

static void add_container(const struct map *m, const struct sim_ctr *c, const json_t *before,
			  struct out *o)
{
	struct rp_idset cpus;
	char name[MODEL_NAME_MAX], place[256], mark[CPUMAP_MARK_MAX], line[512];
	model_cpus(m->s, c, &cpus);
	uint32_t g = group_of(m, rp_ids_of(&cpus));
	out_put(o, "  ");
	out_styled(o, cpumap_style(g), cpumap_mark(&m->drawn, g, mark));
	place_text(m->s, c, place, sizeof place);
	(void)snprintf(line, sizeof line, "  %-22s %-10s  %s", model_name(c, name),
		       kubelet_qos_name(c->pod->qos), place);
	out_text(o, line);
	const char *was = json_string_value(json_object_get(before, c->id));
	if (before && !was)
		out_put(o, "  (new)");
	else if (was && !str_eq(was, place))
		out_printf(o, "  (was %s)", was);
	out_put(o, "\n");
}

void map_draw(struct sim *s, const json_t *before, struct out *o)
{
	struct map m = {.s = s};
	int exit_status;
	if (daemon_running(s))
		(void)control_ask(s, "Containers", NULL, ASK_MS, &m.containers, &exit_status, NULL);
	int r = read_model(&m);
	if (!r)
		r = cpumap_draw(&m.drawn, o);
	for (const struct sim_ctr *c = s->ctrs; c && !r; c = c->next)
		if (c->state != CTR_EXITED)
			add_container(&m, c, before, o);
	if (r)
		o->buf.failed = -1;
	free(m.cpus);
	free(m.nodes);
	free(m.groups);
	json_decref(m.containers);
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
