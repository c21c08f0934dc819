/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expectations: `cpus(web/app) == 2-3`, `disjoint(a, b)`, `count(cpus(a)) == 4 and not isolated &
 * cpus(a)`. See nri-rp-sim(1) for the language.
 *
 * A value is a number (truth is 1 or 0), a set of ids, a text, or a container. Where a set is
 * wanted a number is the set with that one member, and a container is its CPUs. A set is true when
 * it has members.
 */
#ifndef SIM_EXPECT_H
#define SIM_EXPECT_H

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/buf.h"

#define EXPECT_DEPTH_MAX 40u

/*
 * Whether the expression holds. What its functions gave goes to why, which may be NULL, a line
 * each. -EINVAL: it makes no sense; -ENOENT: it names a container that there is not.
 */
int expect_holds(const struct sim *s, const char *text, bool *ret, struct buf *why,
		 struct err *err);

/* Words and brackets, which can be looked at before there is anything to be expected of.
 * -EINVAL. */
int expect_check(const char *text, struct err *err);

#endif
