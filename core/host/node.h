/* SPDX-License-Identifier: Apache-2.0 */
/* The node as the cluster has it: a copy of the Node object, as far as anything here needs it. Lists are by key, each key once. */
#ifndef HOST_NODE_H
#define HOST_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cache/kvs.h"

struct node_taint {
	const char *key, *value, *effect;
};

/* CPU in milli, everything else in units. */
struct node_amount {
	const char *name;
	int64_t amount;
};

struct node_object {
	const char *name, *uid;
	const struct kv *labels, *annotations;
	const struct node_taint *taints; /* by key and effect */
	const struct node_amount *capacity, *allocatable;
	uint32_t n_labels, n_annotations, n_taints, n_capacity, n_allocatable;
	bool unschedulable;
};

#endif
