/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the snapshot as a table for people. */
#include <inttypes.h>
#include <stdio.h>

#include "core/lib/topo/impl.h"

static const char *const type_names[] = {
	[RP_MEM_DRAM] = "DRAM", [RP_MEM_PMEM] = "PMEM", [RP_MEM_HBM] = "HBM",
	[RP_MEM_CXL] = "CXL",	[RP_MEM_NONE] = "none",
};

const char *topo_memory_type_name(uint32_t type)
{
	return type < sizeof type_names / sizeof type_names[0] ? type_names[type] : "unknown";
}

static void put_set(struct buf *out, struct rp_ids ids)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	(void)buf_add_str(out, text[0] ? text : "-");
}

/* Writes "2.5 GiB": the largest unit that leaves at least 1, with one decimal unless it is a whole
 * number. */
static void put_bytes(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	unsigned u = 0;
	uint64_t tenths = bytes % 1024 * 10 / 1024, whole = bytes;
	for (; whole >= 1024 && u + 1 < sizeof units / sizeof units[0]; u++) {
		tenths = whole % 1024 * 10 / 1024;
		whole /= 1024;
	}
	if (u && tenths)
		(void)buf_printf(out, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths, units[u]);
	else
		(void)buf_printf(out, "%" PRIu64 " %s", whole, units[u]);
}

static void put_summary(const struct topo *t, struct buf *out)
{
	static const struct {
		uint32_t level;
		const char *one, *many;
	} levels[] = {
		{RP_LEVEL_PACKAGE, "package", "packages"}, {RP_LEVEL_DIE, "die", "dies"},
		{RP_LEVEL_CLUSTER, "cluster", "clusters"}, {RP_LEVEL_NODE, "node", "nodes"},
		{RP_LEVEL_CORE, "core", "cores"},	   {RP_LEVEL_THREAD, "CPU", "CPUs"},
	};
	(void)buf_add_str(out, "machine  ");
	for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		uint32_t n = t->levels[levels[i].level].n;
		(void)buf_printf(out, "%u %s, ", n, n == 1 ? levels[i].one : levels[i].many);
	}
	put_bytes(out, t->memory);
	(void)buf_add_str(out, "\n");
}

static void put_sets(const struct topo *t, struct buf *out)
{
	static const struct {
		uint32_t which;
		const char *name;
		bool always;
	} sets[] = {
		{RP_CPUS_POSSIBLE, "possible", true},
		{RP_CPUS_PRESENT, "present", true},
		{RP_CPUS_ONLINE, "online", true},
		{RP_CPUS_ISOLATED, "isolated", false},
		{RP_CPUS_NOHZ_FULL, "nohz_full", false},
		{RP_CPUS_PERFORMANCE, "performance", false},
		{RP_CPUS_EFFICIENT, "efficient", false},
	};
	bool hybrid = !rp_ids_empty(t->sets[RP_CPUS_EFFICIENT]);
	for (unsigned i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		struct rp_ids ids = t->sets[sets[i].which];
		if (!sets[i].always &&
		    (rp_ids_empty(ids) || (sets[i].which == RP_CPUS_PERFORMANCE && !hybrid)))
			continue;
		(void)buf_printf(out, "  %-12s ", sets[i].name);
		put_set(out, ids);
		(void)buf_add_str(out, "\n");
	}
}

static void put_units(const struct topo *t, uint32_t level, const char *name, struct buf *out)
{
	for (uint32_t i = 0; i < t->levels[level].n; i++) {
		const struct topo_unit *u = &t->levels[level].units[i];
		const struct topo_cpu *c = &t->cpus[topo_cpu_index(t, rp_ids_first(u->cpus))];
		(void)buf_printf(out, "%-8s ", name);
		if (level == RP_LEVEL_DIE || level == RP_LEVEL_CLUSTER)
			(void)buf_printf(out, "%u/", c->package_id);
		if (level == RP_LEVEL_CLUSTER)
			(void)buf_printf(out, "%u/", c->die_id);
		(void)buf_printf(out, "%-4u cpus ", u->id);
		put_set(out, u->cpus);
		(void)buf_add_str(out, "\n");
	}
}

static void put_nodes(const struct topo *t, struct buf *out)
{
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		const struct topo_node *n = &t->nodes[i];
		(void)buf_printf(out, "node     %-4u %s ", n->id, type_names[n->type]);
		put_bytes(out, n->memory);
		(void)buf_printf(out, "%s, package %u die %u, distances",
				 n->has_memory && !n->normal ? " movable" : "", n->package_id,
				 n->die_id);
		for (uint32_t j = 0; j < t->n_nodes; j++)
			(void)buf_printf(out, " %u", t->distances[(size_t)i * t->n_nodes + j]);
		(void)buf_add_str(out, ", cpus ");
		put_set(out, n->cpus);
		(void)buf_add_str(out, "\n");
	}
}

/* Writes caches: those private to a core by count, the others one by one. */
static void put_caches(const struct topo *t, struct buf *out)
{
	static const char *const types[] = {
		[RP_CACHE_DATA] = "d", [RP_CACHE_INSTRUCTION] = "i", [RP_CACHE_UNIFIED] = ""};
	const struct topo_level *cores = &t->levels[RP_LEVEL_CORE];
	for (uint32_t i = 0, n_same; i < t->n_caches; i += n_same) {
		const struct topo_cache *c = &t->caches[i];
		char name[16];
		(void)snprintf(name, sizeof name, "L%u%s", c->level, types[c->type]);
		(void)buf_printf(out, "%-8s ", name);
		for (n_same = 0; i + n_same < t->n_caches; n_same++) {
			const struct topo_cache *d = &t->caches[i + n_same];
			uint16_t core = t->cpus[topo_cpu_index(t, rp_ids_first(d->cpus))]
						.unit[RP_LEVEL_CORE];
			if (d->level != c->level || d->type != c->type || d->bytes != c->bytes ||
			    !rp_ids_equal(d->cpus, cores->units[core].cpus))
				break;
		}
		if (n_same > 1) {
			(void)buf_printf(out, "%u of ", n_same);
			put_bytes(out, c->bytes);
			(void)buf_add_str(out, ", one a core\n");
			continue;
		}
		n_same = 1;
		(void)buf_printf(out, "%-4u ", c->id);
		put_bytes(out, c->bytes);
		(void)buf_add_str(out, ", cpus ");
		put_set(out, c->cpus);
		(void)buf_add_str(out, "\n");
	}
}

static bool same_freq(const struct topo_cpu *a, const struct topo_cpu *b)
{
	return a->base_khz == b->base_khz && a->min_khz == b->min_khz && a->max_khz == b->max_khz &&
	       a->epp == b->epp && a->capacity == b->capacity && a->kind == b->kind;
}

static void put_freq(const struct topo_cpu *c, struct buf *out)
{
	(void)buf_printf(out, "%s, base %u min %u max %u MHz, ",
			 c->kind == RP_CORE_EFFICIENT ? "efficient" : "performance",
			 c->base_khz / 1000, c->min_khz / 1000, c->max_khz / 1000);
	if (c->epp == RP_EPP_UNKNOWN)
		(void)buf_add_str(out, "epp unknown");
	else
		(void)buf_printf(out, "epp %u", c->epp);
	if (c->capacity)
		(void)buf_printf(out, ", capacity %u", c->capacity);
}

/* Writes one line for each group of identical CPUs. */
static void put_kinds(struct topo *t, struct buf *out)
{
	struct rp_idset done, same;
	rp_idset_clear(&done);
	RP_IDS_EACH (cpu, t->sets[RP_CPUS_ONLINE]) {
		topo_load_freq(t, cpu, &t->cpus[topo_cpu_index(t, cpu)]);
	}
	RP_IDS_EACH (cpu, t->sets[RP_CPUS_ONLINE]) {
		const struct topo_cpu *c = &t->cpus[topo_cpu_index(t, cpu)];
		if (rp_ids_has(rp_ids_of(&done), cpu))
			continue;
		rp_idset_clear(&same);
		RP_IDS_EACH (other, t->sets[RP_CPUS_ONLINE]) {
			if (same_freq(c, &t->cpus[topo_cpu_index(t, other)]))
				rp_idset_add(&same, other);
		}
		rp_idset_or(&done, rp_ids_of(&done), rp_ids_of(&same));
		(void)buf_add_str(out, "cpus     ");
		put_set(out, rp_ids_of(&same));
		(void)buf_add_str(out, ": ");
		put_freq(c, out);
		(void)buf_add_str(out, "\n");
	}
}

int topo_describe(struct topo *t, struct buf *out)
{
	put_summary(t, out);
	put_sets(t, out);
	put_units(t, RP_LEVEL_PACKAGE, "package", out);
	if (t->levels[RP_LEVEL_DIE].n > t->levels[RP_LEVEL_PACKAGE].n)
		put_units(t, RP_LEVEL_DIE, "die", out);
	if (t->levels[RP_LEVEL_CLUSTER].n > t->levels[RP_LEVEL_DIE].n)
		put_units(t, RP_LEVEL_CLUSTER, "cluster", out);
	put_nodes(t, out);
	put_caches(t, out);
	put_kinds(t, out);
	for (uint32_t i = 0; i < t->n_notes; i++)
		(void)buf_printf(out, "note     %s\n", t->notes[i]);
	return out->failed;
}
