/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics that modules report, with their names and labels checked. */
#pragma once

#include "core/nri-rpd/metrics/collect.h"

void collect_modules(struct expo *e, struct pipeline *p);

/* Returns true if the globs of instrumentation.metrics (GROUP, NAME or GROUP/NAME) select the
 * metric. */
bool collect_wanted(const struct conf_core *core, const char *group, const char *name);
