/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NODERES_PASS_H
#define NODERES_PASS_H

#include "core/nri-rpd/noderes/result.h"

/*
 * One pass over calculators in their order, with env->noderes as input. What one of them fails at,
 * by number, goes to failed[]: no more is lost than what that one gives.
 */
int nr_calculate(struct instance *const *list, unsigned n, const struct nr_asking *how,
		 struct nr_result *ret, struct err failed[NR_CALCULATORS_MAX]);

/* The result on a copy of the Node: capacity and allocatable alike, rounded up to whole units.
 * Errors of calculators go to failed[]. */
int nr_apply(struct instance *const *list, unsigned n, const struct nr_result *result,
	     struct nr_result *node, struct nr_cost *costs, struct err failed[NR_CALCULATORS_MAX]);

/* Has the Node to be written, for its resources' sake, for that of labels and annotations?
 * Threshold in millionths. */
bool nr_need_sync(struct instance *const *list, unsigned n, struct nr_result *before,
		  struct nr_result *after, int64_t threshold);
bool nr_need_sync_meta(struct instance *const *list, unsigned n, const struct nr_result *before,
		       const struct nr_result *after);

/* Is it time to write the Node anyway? last_s: seconds since that was done; RP_NOT_SET: never. */
bool nr_is_due(int64_t last_s, int64_t every_s);

/* The rule for one resource: RP_NOT_SET where it is not there. */
bool nr_differs(int64_t before, int64_t after, int64_t threshold);

#endif
