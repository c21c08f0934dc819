/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up machines for the tests of the CPU allocator. */
#ifndef TEST_UNIT_T_CPUALLOC_H
#define TEST_UNIT_T_CPUALLOC_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/cpualloc.h>

/* Counts are of units in the level before. Efficient cores come after the performance cores of
 * their node, single-threaded. */
struct shape {
	uint32_t packages, dies, nodes, cores, threads;
	uint32_t e_cores;
	uint32_t l3_cores; /* cores that share an L3; 0: the package does */
	uint32_t l2_cores; /* efficient cores that share an L2 and so a cluster; 0: 4 */
	bool siblings; /* first threads of all cores first */
	bool split_l1; /* two caches of level 1 */
};

struct machine {
	struct cpualloc_machine m;
	struct cpualloc_cpu *cpus;
	struct cpualloc_cache *caches;
	struct rp_idset *sets; /* CPUs of the caches */
	uint32_t *l3; /* by position: number of the L3 */
};

static inline struct machine machine_new(const struct shape *s)
{
	struct machine mc = {0};
	uint32_t n_nodes = s->packages * s->dies * s->nodes, n_cores = n_nodes * s->cores;
	uint32_t n = n_cores * s->threads + n_nodes * s->e_cores, k = 0, core = 0, l3 = 0,
		 cluster = 0;
	mc.cpus = calloc(n, sizeof *mc.cpus);
	mc.l3 = calloc(n, sizeof *mc.l3);
	for (uint32_t node = 0; node < n_nodes; node++) {
		uint32_t die = node / s->nodes, package = die / s->dies, in_l3 = 0;
		for (uint32_t c = 0; c < s->cores + s->e_cores; c++, core++) {
			bool e = c >= s->cores;
			cluster += !e || !((c - s->cores) % (s->l2_cores ? s->l2_cores : 4));
			if (s->l3_cores && in_l3++ == s->l3_cores) {
				l3++;
				in_l3 = 1;
			}
			for (uint32_t t = 0; t < (e ? 1 : s->threads); t++, k++) {
				mc.l3[k] = s->l3_cores ? l3 : package;
				mc.cpus[k] = (struct cpualloc_cpu){
					.cpu = s->siblings ? t * n_cores + core : k,
					.package = package,
					.die = die % s->dies,
					.cluster = cluster,
					.core = core,
					.node = node,
					.kind = e ? RP_CORE_EFFICIENT : RP_CORE_PERFORMANCE,
					.epp = RP_EPP_UNKNOWN,
					.base_khz = 0};
			}
		}
		l3++;
	}
	mc.m.cpus = mc.cpus;
	mc.m.n_cpus = n;
	/* Levels 1 to 3: the core, the cluster, the L3. */
	uint32_t n_caches = 0, base[4] = {0}, lasts[4] = {0, core, cluster + 1, l3 + s->packages};
	for (uint32_t level = 1; level <= 3; level++) {
		base[level] = n_caches;
		n_caches += lasts[level];
	}
	mc.caches = calloc(2 * (size_t)n_caches, sizeof *mc.caches);
	mc.sets = calloc(n_caches, sizeof *mc.sets);
	for (uint32_t i = 0; i < n; i++) {
		rp_idset_add(&mc.sets[base[1] + mc.cpus[i].core], mc.cpus[i].cpu);
		rp_idset_add(&mc.sets[base[2] + mc.cpus[i].cluster], mc.cpus[i].cpu);
		rp_idset_add(&mc.sets[base[3] + mc.l3[i]], mc.cpus[i].cpu);
	}
	for (uint32_t c = 0; c < n_caches; c++) {
		uint32_t level = c < base[2] ? 1 : c < base[3] ? 2 : 3;
		mc.caches[mc.m.n_caches++] =
			(struct cpualloc_cache){level, 0, rp_ids_of(&mc.sets[c])};
		if (level == 1 && s->split_l1)
			mc.caches[mc.m.n_caches++] =
				(struct cpualloc_cache){level, 0, rp_ids_of(&mc.sets[c])};
	}
	mc.m.caches = mc.caches;
	return mc;
}

static inline void machine_free(struct machine *mc)
{
	free(mc->cpus);
	free(mc->caches);
	free(mc->sets);
	free(mc->l3);
}

#endif
