/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the calculators over the node's inputs, applies their result to a Node and decides whether
 * it has to be written.
 */
#pragma once

#include "core/nri-rpd/noderes/result.h"

/*
 * Runs one pass over calculators in their order, with env->noderes as input. Errors go to failed[],
 * by calculator; an error loses only the results of that calculator.
 */
int nr_calculate(struct instance *const *list, unsigned n, const struct nr_asking *how,
		 struct nr_result *ret, struct err failed[NR_CALCULATORS_MAX]);

/* Applies the result to a copy of the Node: capacity and allocatable alike, rounded up to whole
 * units. Errors of calculators go to failed[]. */
int nr_apply(struct instance *const *list, unsigned n, const struct nr_result *result,
	     struct nr_result *node, struct nr_cost *costs, struct err failed[NR_CALCULATORS_MAX]);

/* Returns true if the Node has to be written because of its resources, or because of labels and
 * annotations. Threshold in millionths. */
bool nr_need_sync(struct instance *const *list, unsigned n, struct nr_result *before,
		  struct nr_result *after, int64_t threshold);
bool nr_need_sync_meta(struct instance *const *list, unsigned n, const struct nr_result *before,
		       const struct nr_result *after);

/* Returns true if the Node has to be written even without a change. last_s: seconds since the last
 * write; RP_NOT_SET: never written. */
bool nr_is_due(int64_t last_s, int64_t every_s);

/* Returns true if two amounts of a resource differ by more than the threshold. RP_NOT_SET:
 * absent. */
bool nr_differs(int64_t before, int64_t after, int64_t threshold);
