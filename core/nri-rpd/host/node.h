/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node in the cluster: a copy of those parts of the Node object that the daemon needs, with
 * lists sorted by key, each key once. Also the labels, taints and resources that modules want the
 * node to have (the data behind nri-rp.host.node/1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/kvs.h"

struct node_taint {
	const char *key, *value, *effect;
};

/* Amount of a resource: CPU in milli-CPU, all other resources in units. */
struct node_amount {
	const char *name;
	int64_t amount;
};

struct node_object {
	const char *name, *uid;
	const struct kv *labels, *annotations;
	const struct node_taint *taints; /* taints, sorted by key and effect */
	const struct node_amount *capacity, *allocatable;
	uint32_t n_labels, n_annotations, n_taints, n_capacity, n_allocatable;
	bool unschedulable;
};

/* ---- wishes of modules ---- */

enum wish_kind { WISH_LABEL, WISH_ANNOTATION, WISH_TAINT, WISH_RESOURCE };

struct instance;
struct node_wish {
	enum wish_kind kind;
	const struct instance *owner;
	const char *key;
	const char *effect; /* effect of a taint; "" for other kinds */
	char *value; /* value of a label, annotation or taint; NULL for a resource */
	int64_t amount; /* amount of a resource */
	struct node_wish *prev, *next;
};
