/* SPDX-License-Identifier: Apache-2.0 */
/* Status of the pipeline and its controllers, for the control socket and metrics. */
#pragma once

#include "core/nri-rpd/pipeline/observe/observe.h"

void pipeline_status(const struct pipeline *p, struct pipeline_status *ret);
/* Returns the number of containers that are not placed as requested. */
unsigned pipeline_n_degraded(const struct pipeline *p);
unsigned pipeline_n_controllers(const struct pipeline *p);
void pipeline_controller(const struct pipeline *p, unsigned i, struct controller_status *ret);
const struct pipeline_stats *pipeline_stats(const struct pipeline *p);
