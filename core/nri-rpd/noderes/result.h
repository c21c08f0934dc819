/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result of a pass of calculators: items, labels and annotations, merged. Also the parts of a Node
 * that are compared and written: its extended resources, labels and annotations. Quantities are
 * thousandths, as in <nri-rp/calculator.h>.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/calculator.h>

#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

/* largest number of resources, labels or annotations of a result or Node */
#define NR_ITEMS_MAX 256u
#define NR_ZONES_MAX 64u
#define NR_NAME_MAX 253u /* largest size of a key, in bytes */
#define NR_TEXT_MAX 65536u /* largest size of a value, in bytes */

struct nr_value {
	char *name;
	int64_t quantity; /* amount of the resource; RP_NOT_SET: none */
	bool reset;
	int64_t *zones; /* n_zones; NULL: none */
	uint32_t n_zones;
	char *message; /* explanation of the value for people; NULL: none */
	struct instance *by; /* calculator that has set it; NULL: none */
};

struct nr_pair {
	char *key, *value;
	struct instance *by; /* calculator that has set it; NULL: none */
};

/* A result, or a Node; all zeros: empty. */
struct nr_result {
	struct nr_value *values;
	struct nr_pair *labels, *annotations;
	unsigned n_values, n_labels, n_annotations;
};

void nr_result_fini(struct nr_result *r);
/* Returns the value of that name; NULL: none. */
const struct nr_value *nr_result_value(const struct nr_result *r, const char *name);
const char *nr_result_annotation(const struct nr_result *r, const char *key);
/* Returns the pair of that key; NULL: none. */
struct nr_pair *nr_pair_find(struct nr_pair *pairs, unsigned n, const char *key);
/* Sets a value. -ENOMEM, -E2BIG: more than NR_ITEMS_MAX. */
int nr_result_set(struct nr_result *r, const struct rp_nr_item *item);
/* Sets an annotation; value NULL: deletes it. */
int nr_result_annotate(struct nr_result *r, const char *key, const char *value);
int nr_result_label(struct nr_result *r, const char *key, const char *value);
void nr_result_remove(struct nr_result *r, const char *name);

/* largest number of calculators: nr_asking.kept has a bit for each */
#define NR_CALCULATORS_MAX 32u

/* Time that a call of a calculator should not exceed, because the loop waits for it. */
#define NR_BUDGET_MS 1000u

/* Cost of a calculator's stages. */
struct nr_cost {
	uint64_t failures, slow; /* number of failed calls, and of calls longer than NR_BUDGET_MS */
	uint64_t ns; /* total time of all calls */
	uint64_t slowest_ns; /* time of the latest slow call */
};

struct nr_asking {
	bool reset; /* reset all resources: overcommitment is disabled */
	const char *message; /* reason of the reset */
	const struct nr_result *before; /* result of the last pass; NULL: none */
	/* Bit per calculator: set if the previous results are retained after an error. */
	uint32_t kept;
	struct nr_cost *costs; /* costs of the calculators, by position; NULL: not counted */
};
