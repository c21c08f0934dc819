/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of containers' usage (nri_rp_container_*). */
#pragma once

#include "core/nri-rpd/metrics/collect.h"

void collect_containers(struct expo *e, struct pipeline *p);
