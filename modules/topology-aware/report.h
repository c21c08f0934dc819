/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the policy: topology zones, metrics, and the notes that explain a placement. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/topology-aware/place.h"

int32_t ta_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t ta_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
/* Records why the pool was chosen, as notes for `nri-rpctl explain`. */
void report_choice(struct rp_instance *inst, const struct request *r, const struct scoring *s);
/* Records that no pool is sufficient, and which lacks least. */
void report_none(struct rp_instance *inst, const struct request *r, const struct score *nearest);
/* Records which CPUs the container got, as a note for `nri-rpctl explain`. */
void report_grant(struct rp_instance *inst, const struct request *r, const struct grant *g);
