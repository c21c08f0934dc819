/* SPDX-License-Identifier: Apache-2.0 */
/* Random requests on a rig. The same seed gives the same requests as long as the policy returns the
 * same results. */
#pragma once

#include "core/nri-rp-modcheck/rig.h"

#define CHURN_LIVE_MAX 64u

struct churn {
	struct rig *rig;
	uint64_t random;
	struct ctr *live[CHURN_LIVE_MAX];
	unsigned n_live;
	unsigned seq; /* containers created so far */
	unsigned n_placed; /* containers that got CPUs */
	struct rp_idset all, online;
	unsigned restart_every; /* restart after this many requests; 0: never */
	bool still; /* containers only: no hotplug, no reloads */
	/* every n-th container, at random, requests more than the machine has; 0: none */
	unsigned huge;
	/* Called after a container was placed. */
	int (*placed)(struct churn *c, struct ctr *ctr, struct err *err);
};

void churn_init(struct churn *c, struct rig *r, uint64_t seed);
/* Opens and starts a rig, and begins churn on it. */
int churn_begin(struct churn *c, struct rig *r, struct check *check, struct err *err);
uint64_t churn_random(struct churn *c, uint64_t below);
/* Chooses the properties of the next container. */
void churn_wish(struct churn *c, struct wish *ret);
int churn_run(struct churn *c, unsigned requests, struct err *err);
/* Returns true if no container is degraded. A degraded container may be placed again at any time,
 * which moves others. */
bool churn_all_well(const struct churn *c);
/* Puts all CPUs online and removes all containers. */
int churn_empty(struct churn *c, struct err *err);
/* Places and removes a fixed set of containers; writes what each got to `out`. */
int churn_probe(struct rig *r, struct buf *out, struct err *err);
/* Does the same on a new rig. */
int churn_probe_fresh(struct check *check, struct buf *out, struct err *err);
