/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of the copy of the topology, queries, and growing of a container's CPUs. */
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>

#include <nri-rp/lib/machine.h>

static const uint32_t host_level[MACHINE_N_LEVELS] = {
	[MACHINE_PACKAGE] = RP_LEVEL_PACKAGE, [MACHINE_DIE] = RP_LEVEL_DIE,
	[MACHINE_NODE] = RP_LEVEL_NODE,	      [MACHINE_CACHE] = RP_LEVEL_LLC,
	[MACHINE_CORE] = RP_LEVEL_CORE,	      [MACHINE_THREAD] = RP_LEVEL_THREAD,
};

struct machine *machine_free(struct machine *m)
{
	if (!m)
		return NULL;
	for (int l = 0; l < MACHINE_N_LEVELS; l++) {
		free(m->level[l].units);
		free(m->level[l].unit_of);
		free(m->level[l].cpus);
		free(m->level[l].words);
		free(m->place[l]);
	}
	free(m->ranks);
	free(m);
	return NULL;
}

/* Returns the host's unit of the online CPU at a position. machine.h documents the substitute for a
 * level that the host does not know. */
static uint32_t host_unit(const struct modhost *h, enum machine_level level, uint32_t cpu,
			  uint32_t position)
{
	struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
	bool known = h->topology->cpu(h->ctx, cpu, &info) == 0;
	if (known && info.unit[host_level[level]] != RP_IDSET_NONE)
		return info.unit[host_level[level]];
	if (level == MACHINE_CACHE)
		return MACHINE_NOWHERE;
	if (level == MACHINE_CORE || level == MACHINE_THREAD)
		return position;
	return level == MACHINE_DIE ? host_unit(h, MACHINE_PACKAGE, cpu, position) : 0;
}

static uint32_t unit_id(const struct modhost *h, enum machine_level level, uint32_t unit)
{
	struct rp_unit_info info = {.size = sizeof info};
	if (h->topology->unit(h->ctx, host_level[level], unit, &info))
		return unit;
	return info.id;
}

/* Gives each unit its part of the level's list of CPUs. */
static void fill_lists(struct machine_level_units *lv, const struct machine *m)
{
	uint32_t *at = lv->cpus;
	for (uint32_t i = 0; i < lv->n_units; i++) {
		lv->units[i].cpus = at;
		at += lv->units[i].n_cpus;
		lv->units[i].n_cpus = 0;
	}
	RP_IDS_EACH (cpu, rp_ids_of(&m->online)) {
		if (lv->unit_of[cpu] == MACHINE_NOWHERE)
			continue;
		struct machine_unit *u = &lv->units[lv->unit_of[cpu]];
		lv->cpus[(u->cpus - lv->cpus) + u->n_cpus++] = cpu;
	}
}

/* Gives each unit its CPUs as a set, without the words before its first CPU and behind its last. */
static int32_t fill_words(struct machine_level_units *lv)
{
	size_t n = 0;
	for (uint32_t i = 0; i < lv->n_units; i++) {
		struct machine_unit *u = &lv->units[i];
		if (!u->n_cpus)
			continue;
		u->word = u->cpus[0] / 64;
		u->n_words = u->cpus[u->n_cpus - 1] / 64 - u->word + 1;
		n += u->n_words;
	}
	uint64_t *at = lv->words = calloc(n ? n : 1, sizeof *lv->words);
	if (!at)
		return -RP_ENOMEM;
	for (uint32_t i = 0; i < lv->n_units; i++) {
		struct machine_unit *u = &lv->units[i];
		u->words = at;
		for (uint32_t k = 0; k < u->n_cpus; k++)
			at[u->cpus[k] / 64 - u->word] |= UINT64_C(1) << u->cpus[k] % 64;
		at += u->n_words;
	}
	return 0;
}

/* Reads a level. The host numbers units by their lowest CPU, without gaps. */
static int32_t read_level(const struct modhost *h, struct machine *m, enum machine_level level)
{
	struct machine_level_units *lv = &m->level[level];
	uint32_t position = 0;
	lv->units = calloc(m->n_cpus, sizeof *lv->units);
	lv->cpus = calloc(m->n_cpus, sizeof *lv->cpus);
	lv->unit_of = malloc(m->cpu_end * sizeof *lv->unit_of);
	m->place[level] = calloc(m->n_cpus, sizeof *m->place[level]);
	if (!lv->units || !lv->cpus || !lv->unit_of || !m->place[level])
		return -RP_ENOMEM;
	memset(lv->unit_of, 0xff, m->cpu_end * sizeof *lv->unit_of);
	RP_IDS_EACH (cpu, rp_ids_of(&m->online)) {
		uint32_t unit = host_unit(h, level, cpu, position++);
		if (unit >= m->n_cpus)
			continue;
		lv->unit_of[cpu] = unit;
		lv->units[unit].n_cpus++;
		lv->n_units = unit < lv->n_units ? lv->n_units : unit + 1;
	}
	for (uint32_t i = 0; i < lv->n_units; i++)
		lv->units[i].id = unit_id(h, level, i);
	fill_lists(lv, m);
	return fill_words(lv);
}

static int is_hybrid(const struct modhost *h, const struct machine *m)
{
	unsigned kinds = 0;
	RP_IDS_EACH (cpu, rp_ids_of(&m->online)) {
		struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
		if (h->topology->cpu(h->ctx, cpu, &info) == 0)
			kinds |= info.kind == RP_CORE_EFFICIENT ? 2u : 1u;
	}
	return kinds == 3;
}

/* Numbers units by their lowest CPU, for levels whose kernel numbers are not unique in the
 * machine. */
static void number_by_cpu(struct machine_level_units *lv)
{
	for (uint32_t i = 0; i < lv->n_units; i++)
		lv->units[i].id = lv->units[i].cpus[0];
}

static int32_t read_machine(const struct modhost *h, struct machine *m)
{
	for (int l = 0; l < MACHINE_N_LEVELS; l++)
		if (read_level(h, m, (enum machine_level)l))
			return -RP_ENOMEM;
	number_by_cpu(&m->level[MACHINE_DIE]);
	number_by_cpu(&m->level[MACHINE_CORE]);
	number_by_cpu(&m->level[MACHINE_THREAD]);
	m->threads = m->n_cpus / m->level[MACHINE_CORE].n_units;
	m->hybrid = is_hybrid(h, m);
	m->ranks = calloc(m->n_cpus, sizeof *m->ranks);
	return m->ranks ? 0 : -RP_ENOMEM;
}

int32_t machine_new(const struct modhost *h, struct machine **ret)
{
	struct machine *m = calloc(1, sizeof *m);
	if (!m)
		return modhost_no_memory(h);
	modhost_set(h, RP_CPUS_ONLINE, &m->online);
	modhost_set(h, RP_CPUS_ISOLATED, &m->isolated);
	rp_idset_and(&m->isolated, rp_ids_of(&m->isolated), rp_ids_of(&m->online));
	m->n_cpus = rp_ids_count(rp_ids_of(&m->online));
	if (!m->n_cpus) {
		machine_free(m);
		return modhost_fail(h, -RP_EINVAL, "the machine has no online CPUs");
	}
	m->cpu_end = rp_ids_last(rp_ids_of(&m->online)) + 1;
	if (read_machine(h, m)) {
		machine_free(m);
		return modhost_no_memory(h);
	}
	*ret = m;
	return 0;
}

uint32_t machine_count_free(const struct machine_unit *u, struct rp_ids free)
{
	uint32_t n = 0;
	if (u->n_cpus <= u->n_words) {
		for (uint32_t i = 0; i < u->n_cpus; i++)
			n += (uint32_t)rp_ids_has(free, u->cpus[i]);
		return n;
	}
	for (uint32_t i = 0; i < u->n_words; i++)
		n += (uint32_t)__builtin_popcountll(u->words[i] & rp_ids_word(free, u->word + i));
	return n;
}

void machine_add_free(const struct machine_unit *u, struct rp_ids free, struct rp_idset *ret)
{
	for (uint32_t i = 0; i < u->n_words; i++) {
		uint64_t left = u->words[i] & rp_ids_word(free, u->word + i);
		for (; left; left &= left - 1)
			rp_idset_add(ret, (u->word + i) * 64 + (uint32_t)__builtin_ctzll(left));
	}
}

void machine_whole_cores(const struct machine *m, struct rp_ids from, struct rp_idset *ret)
{
	struct rp_idset whole;
	rp_idset_clear(&whole);
	const struct machine_level_units *cores = &m->level[MACHINE_CORE];
	for (uint32_t i = 0; i < cores->n_units; i++)
		if (machine_count_free(&cores->units[i], from) == cores->units[i].n_cpus)
			machine_add_free(&cores->units[i], from, &whole);
	rp_idset_copy(ret, rp_ids_of(&whole));
}

void machine_surround(const struct machine *m, enum machine_level level, struct rp_ids cpus,
		      struct rp_idset *ret)
{
	struct rp_idset all;
	rp_idset_clear(&all);
	RP_IDS_EACH (cpu, cpus) {
		const struct machine_unit *u = machine_unit_of(m, level, cpu);
		for (uint32_t i = 0; u && i < u->n_cpus; i++)
			rp_idset_add(&all, u->cpus[i]);
	}
	rp_idset_copy(ret, rp_ids_of(&all));
}

void machine_one_per_core(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret)
{
	struct rp_idset seen;
	rp_idset_clear(&seen);
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, cpus) {
		const struct machine_unit *core = machine_unit_of(m, MACHINE_CORE, cpu);
		if (core && rp_ids_has(rp_ids_of(&seen), core->cpus[0]))
			continue;
		rp_idset_add(&seen, core ? core->cpus[0] : cpu);
		rp_idset_add(ret, cpu);
	}
}

void machine_cpus_of(const struct machine *m, struct rp_ids nodes, struct rp_idset *ret)
{
	const struct machine_level_units *level = &m->level[MACHINE_NODE];
	rp_idset_clear(ret);
	for (uint32_t i = 0; i < level->n_units; i++)
		if (rp_ids_has(nodes, level->units[i].id))
			machine_add_free(&level->units[i], rp_ids_of(&m->online), ret);
}

void machine_nodes_of(const struct machine *m, struct rp_ids cpus, struct rp_idset *ret)
{
	rp_idset_clear(ret);
	RP_IDS_EACH (cpu, cpus) {
		const struct machine_unit *node = machine_unit_of(m, MACHINE_NODE, cpu);
		if (node)
			rp_idset_add(ret, node->id);
	}
}

/* ---- growing --------------------------------------------------------------------------------- */

/* A container that grows: its CPUs, the free CPUs, and the units of its CPUs. */
struct growing {
	const struct machine *m;
	struct rp_idset cpus, left;
	struct rp_idset units[MACHINE_N_LEVELS]; /* unit indexes, by level */
};

static void grow_by(struct growing *g, uint32_t cpu)
{
	rp_idset_add(&g->cpus, cpu);
	rp_idset_del(&g->left, cpu);
	for (int l = 0; l < MACHINE_N_LEVELS; l++)
		if (machine_unit_of(g->m, (enum machine_level)l, cpu))
			rp_idset_add(&g->units[l], g->m->level[l].unit_of[cpu]);
}

static uint32_t is_in(const struct growing *g, enum machine_level level, uint32_t cpu)
{
	return (uint32_t)rp_ids_has(rp_ids_of(&g->units[level]), g->m->level[level].unit_of[cpu]);
}

/* Returns how near a CPU is; larger is nearer. The first criterion has the largest weight. */
static uint32_t machine_nearness(const struct growing *g, uint32_t cpu)
{
	const struct machine_unit *core = machine_unit_of(g->m, MACHINE_CORE, cpu);
	uint32_t idle = machine_count_free(core, rp_ids_of(&g->left)) == core->n_cpus;
	return is_in(g, MACHINE_CORE, cpu) << 3 | is_in(g, MACHINE_NODE, cpu) << 2 |
	       is_in(g, MACHINE_PACKAGE, cpu) << 1 | idle;
}

int32_t machine_grow(const struct machine *m, struct rp_ids own, struct rp_ids free, uint32_t more,
		     struct rp_idset *ret)
{
	struct growing g = {.m = m};
	rp_idset_and(&g.left, free, rp_ids_of(&m->online));
	if (rp_ids_count(rp_ids_of(&g.left)) < more)
		return -RP_ENOSPC;
	RP_IDS_EACH (cpu, own)
		grow_by(&g, cpu);
	for (; more; more--) {
		uint32_t best = RP_IDSET_NONE, best_near = 0;
		RP_IDS_EACH (cpu, rp_ids_of(&g.left)) {
			uint32_t near = machine_nearness(&g, cpu);
			if (best != RP_IDSET_NONE && near <= best_near)
				continue;
			best = cpu;
			best_near = near;
		}
		grow_by(&g, best);
	}
	rp_idset_copy(ret, rp_ids_of(&g.cpus));
	return 0;
}
