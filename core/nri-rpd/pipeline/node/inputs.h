/* SPDX-License-Identifier: Apache-2.0 */
/* Input of one calculation pass, from the cache, the pod feed, the topology, the Node and
 * measurements. */
#pragma once

#include "core/nri-rpd/host/noderes.h"
#include "core/nri-rpd/noderes/facts.h"
#include "core/nri-rpd/pipeline/node/forecast.h"

struct inputs {
	struct nr_input in;
	struct rp_nr_pod *pods;
	struct bound {
		uint64_t w[RP_NODES_MAX / 64];
	} * bound; /* zones of pods */
	struct rp_nr_zone *zones;
	struct rp_nr_app *apps;
	struct forecast_pod *expected; /* entries of in.pods that have containers here */
	uint32_t n_expected;
	struct cpu_facts cpu;
	int64_t used[RP_NR_AMOUNTS]; /* usage of all pods and applications */
};

/* Fills the input, and stores the Node's amounts in p->node.noderes. 0 or -ENOMEM; call
 * inputs_fini() in any case. */
int inputs_fill(struct pipeline *p, uint64_t now_ms, struct inputs *ret);
void inputs_fini(struct inputs *in);
