/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of CPUs and memory nodes and their allocation to containers. */
#pragma once

#include "core/nri-rpd/metrics/collect.h"

void collect_system(struct expo *e, struct pipeline *p);
