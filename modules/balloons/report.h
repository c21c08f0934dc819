/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the policy: zones, metrics, saved state, extended resources, explanations. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place.h"

extern const struct rp_zones balloons_zones;
extern const struct rp_metrics balloons_metrics;
extern const struct rp_state balloons_state;
extern const struct rp_extended balloons_extended;
void report_placed(struct rp_instance *inst, const struct rp_ctr_info *info,
		   const struct choice *c);
