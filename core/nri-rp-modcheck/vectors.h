/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs tables of inputs and results of node-resource calculations through the real modules and the
 * host's own functions. A document has `kind`, `defaults` and `cases`; each case has `name`, `in`
 * and `out`. `in` replaces keys of the defaults; in strategy, node and metrics it replaces single
 * keys. nri-rp-modcheck(1) lists the kinds with their keys.
 */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/noderes.h"
#include "core/nri-rpd/noderes/result.h"
#include "core/lib/util/buf.h"

/* Runs a file with the calculators of a folder, prints the results as TAP and returns the exit
 * status. */
int vectors_run(const char *file, const char *dir);

/* ---- cases ----------------------------------------------------------------------------------- */

struct vector {
	rp_cfg defaults, in, out;
	/* calculators in their order, then controllers that have decisions */
	struct instance **list;
	unsigned n_list;
	struct host_env *env;
	struct buf *why; /* differences; empty: none */
};

struct vector_kind {
	const char *name;
	/* Runs a case. Returns 0, with v->why filled if the result differs; an error: the case
	 * cannot be run. */
	int (*run)(struct vector *v, struct err *err);
};

/* Returns the input with that key; NULL when it is missing or null. */
rp_cfg vector_in(const struct vector *v, const char *key);
/* Returns a key of the input strategy, node or metrics. */
rp_cfg vector_sub(const struct vector *v, const char *of, const char *key);
/* Returns the value in milli-CPU, or the fallback. */
int64_t vector_cpu(rp_cfg node, int64_t fallback);
int64_t vector_bytes(rp_cfg node, int64_t fallback);
int64_t vector_int(rp_cfg node, int64_t fallback);
/* Records a difference unless the values are equal; RP_NOT_SET: absent. */
void vector_compare(struct vector *v, const char *what, int64_t expected, int64_t found);
void vector_compare_bool(struct vector *v, const char *what, bool found);
void vector_compare_text(struct vector *v, const char *what, const char *expected,
			 const char *found);
/* Finds the calculator with that name; -ENOENT with a message. */
int vector_module(struct vector *v, const char *name, struct instance **ret, struct err *err);
/* Configures an instance with a section, which must live as long as the case. */
int vector_configure(struct instance *i, rp_cfg section, struct err *err);

extern const struct vector_kind vector_kinds_calculators[]; /* the last element has no name */
extern const struct vector_kind vector_kinds_host[];
