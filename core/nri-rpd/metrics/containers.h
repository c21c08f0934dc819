/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of containers' usage (nri_rp_container_*). */
#ifndef METRICS_CONTAINERS_H
#define METRICS_CONTAINERS_H

#include "core/nri-rpd/metrics/collect.h"

void collect_containers(struct expo *e, struct pipeline *p);

#endif
