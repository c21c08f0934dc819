/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants of every snapshot, for any tree. The includer defines `check`, which handles a
 * condition. */
#ifndef T_TOPO_CHECK_H
#define T_TOPO_CHECK_H

#include "core/lib/topo/topo.h"

#ifndef check
#error "define check(condition) first"
#endif

/* Units: in ascending order of their lowest CPU, disjoint, of online CPUs, and known to each CPU
 * they have. */
static inline void topo_check_level(struct topo *t, uint32_t level, bool all_cpus)
{
	struct rp_idset seen;
	uint32_t last_first = 0, n = topo_n_units(t, level);
	rp_idset_clear(&seen);
	for (uint32_t i = 0; i < n; i++) {
		struct rp_unit_info u = {.size = sizeof u};
		check(topo_unit(t, level, i, &u) == 0 && u.size == sizeof u);
		check(!rp_ids_overlap(u.cpus, rp_ids_of(&seen)));
		rp_idset_or(&seen, rp_ids_of(&seen), u.cpus);
		if (rp_ids_empty(u.cpus)) {
			check(level == RP_LEVEL_NODE);
			continue;
		}
		check(i == 0 || rp_ids_first(u.cpus) > last_first);
		last_first = rp_ids_first(u.cpus);
		RP_IDS_EACH (cpu, u.cpus) {
			struct rp_cpu_info c = {.size = offsetof(struct rp_cpu_info, base_khz)};
			check(topo_cpu(t, cpu, &c) == 0 && c.unit[level] == i);
		}
	}
	struct rp_unit_info u = {.size = sizeof u};
	check(topo_unit(t, level, n, &u) < 0);
	check(rp_ids_subset(rp_ids_of(&seen), topo_ids(t, RP_CPUS_ONLINE)));
	check(!all_cpus || rp_ids_equal(rp_ids_of(&seen), topo_ids(t, RP_CPUS_ONLINE)));
}

static inline void topo_check_nodes(struct topo *t)
{
	struct rp_ids online = topo_ids(t, RP_NODES_ONLINE);
	check(!rp_ids_empty(online));
	check(rp_ids_subset(topo_ids(t, RP_NODES_MEMORY), online));
	check(rp_ids_subset(topo_ids(t, RP_NODES_NORMAL), topo_ids(t, RP_NODES_MEMORY)));
	check(topo_n_units(t, RP_LEVEL_NODE) == rp_ids_count(online));
	RP_IDS_EACH (a, online) {
		struct rp_node_info n = {.size = sizeof n};
		check(topo_node(t, a, &n) == 0 && n.id == a && n.type <= RP_MEM_NONE);
		check(n.normal == (uint32_t)rp_ids_has(topo_ids(t, RP_NODES_NORMAL), a));
		check(n.type != RP_MEM_NONE ||
		      (!rp_ids_has(topo_ids(t, RP_NODES_MEMORY), a) && rp_ids_empty(n.cpus)));
		RP_IDS_EACH (b, online) {
			check(topo_distance(t, a, b) == topo_distance(t, b, a));
		}
	}
}

static inline void topo_check_cpus(struct topo *t)
{
	struct rp_ids online = topo_ids(t, RP_CPUS_ONLINE);
	struct rp_idset kinds;
	check(!rp_ids_empty(online));
	check(rp_ids_subset(online, topo_ids(t, RP_CPUS_PRESENT)));
	check(rp_ids_subset(topo_ids(t, RP_CPUS_PRESENT), topo_ids(t, RP_CPUS_POSSIBLE)));
	check(rp_ids_subset(topo_ids(t, RP_CPUS_ISOLATED), online));
	check(rp_ids_subset(topo_ids(t, RP_CPUS_NOHZ_FULL), online));
	check(!rp_ids_overlap(topo_ids(t, RP_CPUS_PERFORMANCE), topo_ids(t, RP_CPUS_EFFICIENT)));
	rp_idset_or(&kinds, topo_ids(t, RP_CPUS_PERFORMANCE), topo_ids(t, RP_CPUS_EFFICIENT));
	check(rp_ids_equal(rp_ids_of(&kinds), online));
	RP_IDS_EACH (cpu, online) {
		struct rp_cpu_info c = {.size = sizeof c};
		check(topo_cpu(t, cpu, &c) == 0 && c.cpu == cpu && c.size == sizeof c);
		check((c.kind == RP_CORE_EFFICIENT) ==
		      rp_ids_has(topo_ids(t, RP_CPUS_EFFICIENT), cpu));
		check(c.epp <= 255 || c.epp == RP_EPP_UNKNOWN);
		check(c.capacity <= 1024);
	}
}

static inline void topo_check_caches(struct topo *t)
{
	uint32_t n = topo_n_caches(t);
	struct rp_cache_info c = {.size = sizeof c};
	for (uint32_t i = 0; i < n; i++) {
		c.size = sizeof c;
		check(topo_cache(t, i, &c) == 0 && c.level >= 1 && c.level <= 8);
		check(c.type >= RP_CACHE_DATA && c.type <= RP_CACHE_UNIFIED);
		check(!rp_ids_empty(c.cpus) && rp_ids_subset(c.cpus, topo_ids(t, RP_CPUS_ONLINE)));
	}
	check(topo_cache(t, n, &c) < 0);
}

static inline void topo_check(struct topo *t)
{
	static const struct {
		uint32_t level;
		bool all_cpus;
	} levels[] = {
		{RP_LEVEL_SYSTEM, true}, {RP_LEVEL_PACKAGE, true}, {RP_LEVEL_DIE, true},
		{RP_LEVEL_NODE, true},	 {RP_LEVEL_CLUSTER, true}, {RP_LEVEL_CORE, true},
		{RP_LEVEL_THREAD, true}, {RP_LEVEL_L2, false},	   {RP_LEVEL_L3, false},
		{RP_LEVEL_LLC, false},
	};
	for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++)
		topo_check_level(t, levels[i].level, levels[i].all_cpus);
	check(topo_n_units(t, RP_LEVEL_SYSTEM) == 1);
	check(topo_n_units(t, 0) == 0 && topo_n_units(t, RP_N_LEVELS) == 0);
	topo_check_cpus(t);
	topo_check_nodes(t);
	topo_check_caches(t);
	for (uint32_t i = 0; i < topo_n_notes(t); i++)
		check(topo_note(t, i) && topo_note(t, i)[0] && !strchr(topo_note(t, i), '\n'));
	check(!topo_note(t, topo_n_notes(t)) && topo_n_notes(t) <= TOPO_NOTES_MAX);
}

#endif
