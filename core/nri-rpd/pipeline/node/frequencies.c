/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU frequencies are read when a module first requests them, which is in the attempt of its
 * configuration. The daemon copies the values that the child has read: on a large node this is half
 * of all files that a start reads.
 */
#include "core/nri-rpd/pipeline/internal.h"

#include "core/lib/util/log.h"
#include "core/nri-rpd/pipeline/node/frequencies.h"

#define LOG_SOURCE "config"

#define EPP_MAX 255u

void frequencies_told(const struct topo *t, Trial__Report *report)
{
	struct topo_freq f;
	uint32_t n = topo_n_freqs(t), cpu = 0;
	Trial__Frequencies *all = calloc(n + 1, sizeof *all);
	report->frequencies = calloc(n + 1, sizeof *report->frequencies);
	if (!all || !report->frequencies)
		return;
	report->frequencies_generation = topo_generation(t);
	while (topo_next_freq(t, &cpu, &f)) {
		Trial__Frequencies *m = &all[report->n_frequencies];
		trial__frequencies__init(m);
		m->cpu = f.cpu;
		m->base_khz = f.base_khz;
		m->min_khz = f.min_khz;
		m->max_khz = f.max_khz;
		m->has_epp = f.has_epp;
		m->epp = f.epp;
		report->frequencies[report->n_frequencies++] = m;
	}
}

static int frequencies_take(struct topo *t, const Trial__Frequencies *m)
{
	const struct topo_freq f = {.cpu = m->cpu,
				    .base_khz = m->base_khz,
				    .min_khz = m->min_khz,
				    .max_khz = m->max_khz,
				    .epp = m->epp,
				    .has_epp = m->has_epp};
	return f.epp <= EPP_MAX || f.epp == RP_EPP_UNKNOWN ? topo_put_freq(t, &f) : -EINVAL;
}

void frequencies_took(struct topo *t, const Trial__Report *report)
{
	if (!report->n_frequencies || report->frequencies_generation != topo_generation(t))
		return; /* the topology has changed since */
	for (size_t i = 0; i < report->n_frequencies; i++) {
		if (frequencies_take(t, report->frequencies[i])) {
			log_warning(
				"the trial's readings of frequencies are ignored from CPU %u on",
				report->frequencies[i]->cpu);
			return;
		}
	}
}
