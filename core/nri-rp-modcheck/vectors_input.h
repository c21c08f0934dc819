/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of calculators from vectors. */
#pragma once

#include "core/nri-rp-modcheck/vectors.h"

/* Inputs of calculators, filled from strategy, node, pods and metrics. */
struct vector_input {
	struct nr_input in;
	struct rp_nr_pod *pods;
	struct rp_nr_app *apps;
	struct rp_nr_zone *zones;
	struct rp_idset *bound; /* CPU sets of the pods */
	struct kv labels[1], annotations[1];
};
/* Returns RP_PRIO_… of a pod or an application, by its priorityClass, its priority, or its qos. */
uint32_t vector_class(rp_cfg pod);
int vector_input_fill(const struct vector *v, struct vector_input *ret, struct err *err);
void vector_input_fini(struct vector_input *in);
