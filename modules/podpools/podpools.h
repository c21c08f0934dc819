/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The podpools policy: fixed pools of CPUs that hold so many pods each. All containers of a pod run
 * in one pool, which the pod names by annotation; pods are counted, and not what they ask for.
 * Nobody is ever refused, and nobody moves because of others.
 *
 * Which pool a pod is in is kept with its containers; `pods` is an index over that.
 *
 *	config.c  section and machine → pools     podpools.c  where pods go, and its life
 *	report.c  zones, metrics
 */
#ifndef PODPOOLS_H
#define PODPOOLS_H

#include <stdbool.h>

#include "modules/lib/hash.h"

#include "modules/lib/life.h"
#include "modules/lib/pools.h"

#define POOLS_MAX 1024u /* instances of all definitions; each CPU is in one at most */

enum fill_order { FILL_BALANCED, FILL_PACKED, FILL_FIRST_FREE };
extern const char *const fill_names[];

struct pool {
	char name[POOLS_NAME_MAX + 1];
	uint32_t instance;
	enum fill_order fill;
	int64_t max_pods; /* 0: any number; negative: none */
	struct rp_idset whole; /* its CPUs … */
	struct rp_idset cpus; /* … those that are online, or others when none is */
	uint32_t n_pods;
};

#define POOL_RESERVED 0u
#define POOL_DEFAULT 1u

struct rp_plan {
	struct pools bounds;
	struct pool *pools; /* the instances of a definition follow each other */
	uint32_t n_pools;
};

extern const struct rp_schema podpools_schema;
/* past: what was reserved before (bounds.h). With past->hotplug pools for which there are too few
 * CPUs have fewer, or none. */
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* CPUs have come or gone: pools are as they were, as far as they are online. */
void plan_look(const struct modhost *h, struct rp_plan *p);

/* A pod with containers. */
struct pod {
	rp_pod pod;
	uint32_t pool, n_ctrs;
	UT_hash_handle hh;
};

struct rp_instance {
	LIFE;
	struct pod *pods;
	uint64_t placed, overflowed;
};

void pool_name(const struct pool *p, char *buf, size_t size);

extern const struct rp_zones podpools_zones;
extern const struct rp_metrics podpools_metrics;

#endif
