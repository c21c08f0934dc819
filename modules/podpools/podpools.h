/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The podpools policy: fixed CPU pools with a maximum number of pods each. All containers of a
 * pod run in one pool, which an annotation of the pod names. Only the number of pods is limited,
 * not their CPU requests. A pod for which there is no room goes to the pool default, and no pod
 * moves because of others.
 *
 * The pool of a pod is saved with its containers; `pods` is an index of that.
 *
 *	config.c  section and topology → pools    podpools.c  choice of the pool, callbacks
 *	report.c  zones, metrics
 */
#pragma once

#include <stdbool.h>

#include "modules/lib/private/table.h"

#include <nri-rp/lib/life.h>
#include "modules/lib/private/pools.h"

/* largest number of pools of all definitions; a CPU is in at most one pool */
#define POOLS_MAX 1024u

enum fill_order { FILL_BALANCED, FILL_PACKED, FILL_FIRST_FREE };
extern const char *const fill_names[];

struct pool {
	char name[POOLS_NAME_MAX + 1];
	uint32_t instance;
	enum fill_order fill;
	/* largest number of pods in the pool; 0: no limit; negative: none are allowed */
	int64_t max_pods;
	struct rp_idset whole; /* configured CPUs of the pool */
	struct rp_idset cpus; /* online CPUs of `whole`, or other ones if none is online */
	uint32_t n_pods;
};

#define POOL_RESERVED 0u
#define POOL_DEFAULT 1u

struct rp_plan {
	struct pools bounds;
	struct pool *pools; /* instances of one definition are consecutive */
	uint32_t n_pools;
};

extern const struct rp_schema podpools_schema;
/* Updates the CPUs of all pools after CPUs went offline or online. */
void plan_look(const struct modhost *h, struct rp_plan *p);

/* A pod with at least one container in a pool. */
struct pod {
	uint32_t pool, n_ctrs;
};

struct rp_instance {
	LIFE;
	struct table pods; /* struct pod, by pod */
	uint64_t placed, overflowed;
};

/* ops.fill and ops.plan_fini (life.h). With past->hotplug, missing CPUs are no error: pools get
 * fewer CPUs, or none. */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);

void pool_name(const struct pool *p, char *buf, size_t size);

int32_t podpools_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t podpools_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
