/* SPDX-License-Identifier: Apache-2.0 */
/* Random requests on a rig. The same seed gives the same requests, as long as the policy answers
 * the same. */
#ifndef MODCHECK_CHURN_H
#define MODCHECK_CHURN_H

#include "core/nri-rp-modcheck/rig.h"

#define CHURN_LIVE_MAX 64u

struct churn {
	struct rig *rig;
	uint64_t random;
	struct ctr *live[CHURN_LIVE_MAX];
	unsigned n_live;
	unsigned seq; /* containers made so far */
	unsigned n_placed; /* those that were given CPUs */
	struct rp_idset all, online;
	unsigned restart_every; /* requests; 0: never */
	bool still; /* no hotplug, no reloads: containers only */
	unsigned huge; /* one container in so many asks for more than there is; 0: none */
	/* Called after a container was placed. */
	int (*placed)(struct churn *c, struct ctr *ctr, struct err *err);
};

void churn_init(struct churn *c, struct rig *r, uint64_t seed);
uint64_t churn_random(struct churn *c, uint64_t below);
/* What the next container is to be like. */
void churn_wish(struct churn *c, struct wish *ret);
int churn_run(struct churn *c, unsigned requests, struct err *err);
/* Nobody is degraded: whoever is may be placed anew at any occasion, and others then move. */
bool churn_all_well(const struct churn *c);
/* All CPUs online, all containers gone. */
int churn_empty(struct churn *c, struct err *err);
/* Fixed requests, placed and removed again; what each was given is written to out. */
int churn_probe(struct rig *r, struct buf *out, struct err *err);

#endif
