/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pass of the calculators has made: items, labels and annotations, merged; and a Node as far
 * as it is looked at and written: its extended resources, labels and annotations. Quantities are
 * thousandths, as in <nri-rp/calculator.h>.
 */
#ifndef NODERES_RESULT_H
#define NODERES_RESULT_H

#include <stdbool.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

#define NR_ITEMS_MAX 256u /* resources, or labels, or annotations of one result or Node */
#define NR_ZONES_MAX 64u
#define NR_NAME_MAX 253u /* bytes of a key */
#define NR_TEXT_MAX 65536u /* bytes of a value */

struct nr_value {
	char *name;
	int64_t quantity; /* RP_NOT_SET: none */
	bool reset;
	int64_t *zones; /* n_zones; NULL: none */
	uint32_t n_zones;
	char *message; /* NULL: none */
	struct instance
		*by; /* the calculator that has given it, or put it on the Node; NULL: none */
};

struct nr_pair {
	char *key, *value;
	struct instance *by; /* as above */
};

/* A result, and a Node, too. All zeros: empty. */
struct nr_result {
	struct nr_value *values;
	struct nr_pair *labels, *annotations;
	unsigned n_values, n_labels, n_annotations;
};

void nr_result_fini(struct nr_result *r);
/* NULL: there is none of that name. */
const struct nr_value *nr_result_value(const struct nr_result *r, const char *name);
const char *nr_result_annotation(const struct nr_result *r, const char *key);
/* NULL: there is none of that key. */
struct nr_pair *nr_pair_find(struct nr_pair *pairs, unsigned n, const char *key);
/* -ENOMEM, -E2BIG: more than NR_ITEMS_MAX. */
int nr_result_set(struct nr_result *r, const struct rp_nr_item *item);
int nr_result_annotate(struct nr_result *r, const char *key, const char *value); /* NULL: deletes */
int nr_result_label(struct nr_result *r, const char *key, const char *value);
void nr_result_remove(struct nr_result *r, const char *name);

#define NR_CALCULATORS_MAX 32u /* as many as nr_asking.kept has bits */

/* A call of a calculator should not take longer: the loop waits for it. */
#define NR_BUDGET_MS 1000u

/* What a calculator's stages came to. */
struct nr_cost {
	uint64_t failures, slow; /* calls that failed, that took longer than NR_BUDGET_MS */
	uint64_t ns; /* of all calls */
	uint64_t slowest_ns; /* of the last one that was slow */
};

struct nr_asking {
	bool reset; /* lending is switched off */
	const char *message; /* why */
	const struct nr_result *before; /* what the last pass has made; NULL: nothing */
	/* By a calculator's number: where it fails, what it has given before stands. */
	uint32_t kept;
	struct nr_cost *costs; /* by number; NULL: nobody counts */
};

#endif
