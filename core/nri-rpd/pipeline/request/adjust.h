/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adjustments (`adjustments` of rp.conf): place containers with larger or smaller resources than
 * their pods request, or with other classes than the policy or an annotation assigns.
 *
 * An adjustment overrides the requested resources wherever needs are staged. The requested values
 * stay recorded and apply again when the last adjustment is removed. A configuration whose
 * adjustments contradict each other for a running container is refused.
 */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "proto/trial.pb-c.h"

#define ADJUSTMENTS_MAX 256u
#define ADJUST_CONFLICTS_MAX 128u

struct adjustments;

/* Reads the adjustments of a configuration and borrows its texts. Returns -EINVAL with the place in
 * err, or -ENOMEM. */
int adjustments_read(struct pipeline *p, const struct conf *conf, struct adjustments **ret,
		     struct err *err);
struct adjustments *adjustments_free(struct adjustments *a); /* accepts NULL; returns NULL */
/* Returns the resources that the container is placed by, under the active adjustments
 * (p->requests.adjustments). */
void adjusted_needs(const struct pipeline *p, const struct ctr *ctr, struct needs *ret);
/* Returns the name of a container's adjustment; NULL: none. */
const char *pipeline_adjustment(const struct pipeline *p, const struct ctr *ctr);
/* Returns the number of active adjustments. */
unsigned pipeline_n_adjustments(const struct pipeline *p);
/* Returns true if a running controller writes limits of the top memory tier. */
bool pipeline_writes_toptier(const struct pipeline *p);
/* Checks running containers: -EINVAL if two adjustments match one container, or one matches a
 * container without requests. Adds all conflicts, up to ADJUST_CONFLICTS_MAX, to the report (NULL:
 * none); err holds the first. */
int adjust_check(const struct pipeline *p, Trial__Report *report, struct err *err);
/* Stages all containers whose staged resources differ from their adjustments. The first matching
 * adjustment applies. */
int adjust_stage_all(struct pipeline *p, struct err *err);
/* Stages the resources of one container that is being created or resized, and notes them in its
 * trail. */
void adjust_stage(struct pipeline *p, struct ctr *ctr, struct decision *d);
