/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METRICS_HEALTH_H
#define METRICS_HEALTH_H

#include "core/nri-rpd/metrics/metrics.h"

/* One line a failing checker into out ("name: what is wrong"); true when there is none. */
bool health_check(struct pipeline *p, struct buf *out);

#endif
