/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adjustments (`adjustments` of rp.conf): containers that are taken for larger or smaller ones than
 * their pods say, or that have other classes than the policy or an annotation gives them. They are
 * laid over what a container asks for wherever that becomes what it is placed by; what the runtime
 * was asked for stays known, and comes back with the last adjustment. A configuration whose
 * adjustments contradict each other on a container that runs is refused.
 */
#ifndef PIPELINE_ADJUST_H
#define PIPELINE_ADJUST_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "proto/trial.pb-c.h"

#define ADJUSTMENTS_MAX 256u
#define ADJUST_CONFLICTS_MAX 128u

struct adjustments;

/* -EINVAL with the place, -ENOMEM. They point into the configuration. */
int adjustments_read(struct pipeline *p, const struct conf *conf, struct adjustments **ret,
		     struct err *err);
struct adjustments *adjustments_free(struct adjustments *a); /* NULL is fine; returns NULL */
/* By those in force (p->adjustments): what the container is to be placed by. */
void adjusted_needs(const struct pipeline *p, const struct ctr *ctr, struct needs *ret);
/* For people: the name of the adjustment of a container; NULL: there is none. */
const char *pipeline_adjustment(const struct pipeline *p, const struct ctr *ctr);
unsigned pipeline_n_adjustments(const struct pipeline *p); /* in force */
/* Is there a controller that writes limits of the top tier? */
bool pipeline_writes_toptier(const struct pipeline *p);
/* -EINVAL: two are for one container that runs, or one is for a container without requests. All of
 * these, up to ADJUST_CONFLICTS_MAX, into the report, if there is one; the first one into err. */
int adjust_check(const struct pipeline *p, Trial__Report *report, struct err *err);
/* Stages what is otherwise for all containers. Of two adjustments the first one counts. */
int adjust_stage_all(struct pipeline *p, struct err *err);
/* The same for one that is being created or resized; its trail tells. */
void adjust_stage(struct pipeline *p, struct ctr *ctr, struct decision *d);

#endif
