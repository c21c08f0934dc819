/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the daemon itself (nri_rp_*, process_*). */
#pragma once

#include "core/nri-rpd/metrics/collect.h"

void collect_host(struct expo *e, struct pipeline *p);
void collect_process(struct expo *e);
