/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU frequencies are read when a module first requests them, which is in the attempt of its
 * configuration. The daemon copies the values that the child has read: on a large node this is half
 * of all files that a start reads.
 */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/pipeline/node/frequencies.h"

#define LOG_SOURCE "config"

#define EPP_MAX 255u

void frequencies_told(const struct topo *t, Trial__Report *report)
{
	struct topo_freq *all = calloc(topo_n_freqs(t) + 1, sizeof *all);
	uint32_t cpu = 0;
	size_t n = 0;
	while (all && topo_next_freq(t, &cpu, &all[n]))
		n++;
	report->frequencies = (ProtobufCBinaryData){n * sizeof *all, (uint8_t *)all};
	report->frequencies_generation = topo_generation(t);
}

void frequencies_took(struct topo *t, const Trial__Report *report)
{
	struct topo_freq f;
	if (report->frequencies_generation != topo_generation(t))
		return; /* the topology has changed since */
	if (report->frequencies.len % sizeof f) {
		log_warning("the trial's readings of frequencies are incomplete: ignoring them");
		return;
	}
	for (size_t at = 0; at < report->frequencies.len; at += sizeof f) {
		memcpy(&f, report->frequencies.data + at, sizeof f);
		if ((f.epp > EPP_MAX && f.epp != RP_EPP_UNKNOWN) || topo_put_freq(t, &f)) {
			log_warning(
				"the trial's readings of frequencies are ignored from CPU %u on",
				f.cpu);
			return;
		}
	}
}
