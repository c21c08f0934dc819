/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the measured usage of containers and memory nodes (metrics.collectInterval). */
#pragma once

#include "core/nri-rpd/control/internal.h"

/* Writes the last readings of a container, with its memory by node if `by_node`; null: not
 * measured. */
void put_usage(struct json *j, struct pipeline *p, const struct ctr *ctr, bool by_node);
/* Returns the CPU time per second that a container used between its last two readings, in
 * milli-CPUs. 0: none, or not measured. */
int64_t usage_cpu_milli(const struct ctr *ctr);
/* Writes the used memory of a node, without its file pages, if usage is collected. */
void put_node_used(struct json *j, struct pipeline *p, uint32_t node);
