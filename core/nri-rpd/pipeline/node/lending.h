/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calculators put on the Node: decided on a copy of it, the Node as the agent has told it last
 * or, where no agent has, one that holds what was decided before. What is decided is told as wishes
 * of the calculators (host/node.h), which the agent writes. A write that comes too late is refused
 * by the server; the Node that was there first is told, and all is put on a copy of that one.
 */
#ifndef PIPELINE_LENDING_H
#define PIPELINE_LENDING_H

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/nri-rpd/noderes/strategy.h"

/* All zeros: nothing was decided yet. */
struct lending {
	struct nr_result stands; /* what calculators have put there, and nothing else */
	struct nr_result zones; /* what they have put on zones, as it was told last */
	uint64_t zones_ms; /* monotonic: of the last change of that */
	uint64_t writes; /* decisions that changed what stands */
	uint64_t decided_ms; /* monotonic; 0: never */
};

struct lending_pass {
	struct instance *const *calculators;
	unsigned n_calculators;
	const struct nr_result *result;
	struct nr_cost *costs; /* of calculators */
	const struct strategy *strategy;
	const struct node_object *node; /* NULL: no agent has told */
	bool cluster; /* there is somebody to tell wishes to */
	bool other_zones; /* out: what is to be told of zones has changed */
};

/* Decides anew, if it is time to or enough has changed. 0 or -ENOMEM: what stood stands. */
int lending_decide(struct lending *l, struct lending_pass *pass, uint64_t now_ms);
/* Others than these have gone, and with them what they wished; it is time to decide. */
void lending_keep(struct lending *l, struct instance *const *calculators, unsigned n);
void lending_fini(struct lending *l);

#endif
