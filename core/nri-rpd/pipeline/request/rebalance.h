/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebalancing: requests the policy to move containers, by a timer, by an operator's command, or
 * when a container lacks resources. Limits the number of moves.
 */
#pragma once

#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* Records that a measured container began or ceased to lack resources (RP_PRESSURE_…), and notifies
 * the policy. */
void pipeline_pressure(struct pipeline *p, struct ctr *ctr, uint32_t pressure);

/* Asks controllers for measurements that only they can make. */
void pipeline_measure(struct pipeline *p);
/* Returns the counters of usage measurements. Never NULL. */
struct usage_stats *pipeline_usage_stats(struct pipeline *p);

/* Arms the timer with the interval of the active configuration, or disarms it. */
void pipeline_arm_rebalance(struct pipeline *p);
void rebalance_timer(void *arg);

/* Returns the number of containers that the running transaction moves or has moved. */
unsigned rebalance_count(const struct pipeline *p);

/* Asks the policy to move containers where moving pays, at most `budget` of them (0: any number).
 * -ENOTSUP: the policy does not rebalance. -E2BIG: the policy exceeded the budget, and no container
 * was moved. */
int pipeline_rebalance(struct pipeline *p, uint32_t budget, unsigned *ret_moves, struct err *err);
