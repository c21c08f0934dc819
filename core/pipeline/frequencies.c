/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frequencies are read when a module first asks for them, which is in the trial of its configuration. What the child has read there the
 * daemon takes over: on a large machine it is half of all files that a start reads.
 */
#include "core/pipeline/internal.h"

#include "core/util/log.h"

#define LOG_SOURCE "config"

int frequencies_told(const struct topo *t, Trial__Report *report)
{
	struct topo_freq f;
	uint32_t n = topo_n_freqs(t), cpu = 0;
	Trial__Frequencies *all = calloc(n + 1, sizeof *all);
	report->frequencies = calloc(n + 1, sizeof *report->frequencies);
	if (!all || !report->frequencies)
		return -ENOMEM;
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
	return 0;
}

void frequencies_took(struct pipeline *p, const Trial__Report *report)
{
	if (!report || report->frequencies_generation != topo_generation(p->env.topo))
		return; /* another machine by now */
	for (size_t i = 0; i < report->n_frequencies; i++) {
		const Trial__Frequencies *m = report->frequencies[i];
		const struct topo_freq f = {.cpu = m->cpu,
					    .base_khz = m->base_khz,
					    .min_khz = m->min_khz,
					    .max_khz = m->max_khz,
					    .epp = m->epp,
					    .has_epp = m->has_epp};
		if (topo_put_freq(p->env.topo, &f))
			log_warning("a trial tells frequencies of CPU %u, which is not there",
				    m->cpu);
	}
}
