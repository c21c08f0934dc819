/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expectations: `cpus(web/app) == 2-3`, `disjoint(a, b)`, `count(cpus(a)) == 4 and not isolated &
 * cpus(a)`. nri-rp-sim(1) describes the language.
 *
 * A value is a number (1 or 0 for truth), a set of ids, a text, or a container. In place of a set,
 * a number is the set with that one member, and a container is its CPUs. A set is true when it has
 * members.
 */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/buf.h"

#define EXPECT_DEPTH_MAX 40u

/*
 * Evaluates an expression; *ret tells whether it holds. The results of its functions are added to
 * `why`, which may be NULL, one a line. -EINVAL: syntax error; -ENOENT: it names an unknown
 * container.
 */
int expect_holds(const struct sim *s, const char *text, bool *ret, struct buf *why,
		 struct err *err);

/* Checks the syntax of an expression without evaluating it. -EINVAL. */
int expect_check(const char *text, struct err *err);
