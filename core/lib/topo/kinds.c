/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinguishes performance and efficient cores. x86 uses the two PMUs of hybrid machines, others
 * (and x86 guests without PMU) the capacity of their cores. All threads of a core are of one kind.
 */
#include <stdio.h>

#include "core/lib/topo/impl.h"

#define PERFORMANCE_PMU "sys/devices/cpu_core/cpus"
#define EFFICIENT_PMU "sys/devices/cpu_atom/cpus"
#define CAPACITY_MAX 1024u

static int read_pmu(struct reader *r, const char *path, struct rp_idset *ret)
{
	int rc = fs_read_ids(&r->t->root, path, RP_CPUS_MAX, ret);
	if (rc && rc != -ENOENT)
		reader_note(r, "%s: not a list of CPUs, ignored", path);
	if (!rc)
		rp_idset_and(ret, rp_ids_of(ret), r->online);
	return rc;
}

/* Adds the siblings of the CPUs in the set. */
static int complete_cores(struct reader *r, struct rp_idset *set)
{
	struct topo *t = r->t;
	bool *marked = arena_array(r->scratch, t->n_cpus, sizeof *marked);
	if (!marked)
		return reader_no_memory(r);
	RP_IDS_EACH (cpu, rp_ids_of(set)) {
		marked[t->cpus[topo_cpu_index(t, cpu)].unit[RP_LEVEL_CORE]] = true;
	}
	for (uint32_t i = 0; i < t->n_cpus; i++)
		if (marked[t->cpus[i].unit[RP_LEVEL_CORE]])
			rp_idset_add(set, r->cpu_ids[i]);
	return 0;
}

/* Finds efficient cores from the PMUs. -ENOENT: the machine has no such PMUs. */
static int kinds_of_pmus(struct reader *r, struct rp_idset *efficient)
{
	struct rp_idset performance, both;
	int has_p = read_pmu(r, PERFORMANCE_PMU, &performance) == 0;
	int has_e = read_pmu(r, EFFICIENT_PMU, efficient) == 0;
	if (!has_p && !has_e)
		return -ENOENT;
	if (!has_e) {
		int rc = complete_cores(r, &performance);
		rp_idset_andnot(efficient, r->online, rp_ids_of(&performance));
		return rc;
	}
	int rc = complete_cores(r, efficient);
	if (rc || !has_p)
		return rc;
	rc = complete_cores(r, &performance);
	rp_idset_or(&both, rp_ids_of(&performance), rp_ids_of(efficient));
	if (!rp_ids_equal(rp_ids_of(&both), r->online))
		reader_note(r, PERFORMANCE_PMU
			    ", " EFFICIENT_PMU
			    ": some CPUs are missing, treating these as performance cores");
	if (rp_ids_overlap(rp_ids_of(&performance), rp_ids_of(efficient)))
		reader_note(r, PERFORMANCE_PMU
			    ", " EFFICIENT_PMU
			    ": some share cores, treating these as performance cores");
	rp_idset_andnot(efficient, rp_ids_of(efficient), rp_ids_of(&performance));
	return rc;
}

/* Reads the capacity of one CPU of each core. Returns false if the machine has none, or equal ones;
 * its first CPU shows whether there are any. */
static bool read_capacities(struct reader *r, uint16_t *ret_highest)
{
	struct topo *t = r->t;
	uint16_t lowest = UINT16_MAX, highest = 0;
	for (uint32_t i = 0; i < r->n_cores; i++) {
		struct topo_cpu *c = &t->cpus[r->core_head[i]];
		char path[64];
		uint32_t v;
		(void)snprintf(path, sizeof path, "cpu%u/cpu_capacity",
			       r->cpu_ids[r->core_head[i]]);
		int rc = topo_read_u32_at(r->cpu_fd, path, &v);
		if (rc == -ENOENT && i == 0)
			return false;
		if (rc || v == 0 || v > CAPACITY_MAX) {
			reader_note(r, CPU_DIR "/%s: not a capacity of 1 to %u, ignored", path,
				    CAPACITY_MAX);
			continue;
		}
		c->capacity = (uint16_t)v;
		lowest = c->capacity < lowest ? c->capacity : lowest;
		highest = c->capacity > highest ? c->capacity : highest;
	}
	for (uint32_t i = 0; i < t->n_cpus; i++)
		t->cpus[i].capacity =
			t->cpus[r->core_head[t->cpus[i].unit[RP_LEVEL_CORE]]].capacity;
	*ret_highest = highest;
	return lowest < highest;
}

/* Classifies cores by capacity. Cores of one kind differ a little on some machines, so only a
 * quarter less makes another kind. */
static void kinds_of_capacities(struct reader *r, uint16_t highest, struct rp_idset *efficient)
{
	for (uint32_t i = 0; i < r->t->n_cpus; i++) {
		uint32_t capacity = r->t->cpus[i].capacity;
		if (capacity && capacity * 4 < highest * 3u)
			rp_idset_add(efficient, r->cpu_ids[i]);
	}
}

int reader_kinds(struct reader *r)
{
	struct topo *t = r->t;
	struct rp_idset efficient, performance;
	uint16_t highest = 0;
	bool differ = read_capacities(r, &highest);
	int rc = kinds_of_pmus(r, &efficient);
	if (rc == -ENOENT) {
		rp_idset_clear(&efficient);
		if (differ)
			kinds_of_capacities(r, highest, &efficient);
	} else if (rc) {
		return rc;
	}
	rp_idset_andnot(&performance, r->online, rp_ids_of(&efficient));
	RP_IDS_EACH (cpu, rp_ids_of(&efficient)) {
		t->cpus[topo_cpu_index(t, cpu)].kind = RP_CORE_EFFICIENT;
	}
	rc = reader_keep_set(r, rp_ids_of(&efficient), &t->sets[RP_CPUS_EFFICIENT]);
	return rc ? rc : reader_keep_set(r, rp_ids_of(&performance), &t->sets[RP_CPUS_PERFORMANCE]);
}
