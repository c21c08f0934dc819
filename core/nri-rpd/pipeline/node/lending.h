/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publication of the calculators' results on the Node. Decides on a copy of the Node, taken from
 * the agent's latest report or, without an agent, from previous decisions. Decisions are published
 * as wishes of the calculators (host/node.h), which the agent writes. The API server refuses a
 * write that is based on an outdated Node; after the agent's next report the results are applied to
 * the new Node.
 */
#pragma once

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/nri-rpd/noderes/strategy.h"

/* Published entries; all zeros: nothing has been decided. */
struct lending {
	struct nr_result stands; /* entries that calculators have written to the Node */
	struct nr_result zones; /* zone amounts published last */
	uint64_t zones_ms; /* last change of zones, monotonic */
	uint64_t writes; /* number of decisions that changed the published entries `stands` */
	uint64_t decided_ms; /* last decision, monotonic; 0: never */
};

struct lending_pass {
	struct instance *const *calculators;
	unsigned n_calculators;
	const struct nr_result *result;
	struct nr_cost *costs; /* costs of the calculators, by position */
	const struct strategy *strategy;
	/* the Node as the agent reported it; NULL: no report from an agent */
	const struct node_object *node;
	bool cluster; /* an agent that publishes changes of the Node is connected */
	bool other_zones; /* output: the published zones have changed */
};

/* Decides again if that is due or enough has changed. 0 or -ENOMEM: the previous decision is
 * unchanged. */
int lending_decide(struct lending *l, struct lending_pass *pass, uint64_t now_ms);
/* Drops the entries of calculators that are not listed, and makes the next decision due. */
void lending_keep(struct lending *l, struct instance *const *calculators, unsigned n);
void lending_fini(struct lending *l);
