/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REQUEST_REBALANCE_H
#define PIPELINE_REQUEST_REBALANCE_H

#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* A measured container has begun or ceased to lack something (RP_PRESSURE_…): people and the policy
 * are told. */
void pipeline_pressure(struct pipeline *p, struct ctr *ctr, uint32_t pressure);

/* Controllers are asked for the figures that only they have. */
void pipeline_measure(struct pipeline *p);
struct usage_stats *pipeline_usage_stats(struct pipeline *p);

/* As the configuration in force says. */
void pipeline_arm_rebalance(struct pipeline *p);
void rebalance_timer(void *arg);

/* Containers that the running transaction moves, or has moved. */
unsigned rebalance_count(const struct pipeline *p);

/* Asks the policy to move containers where that pays, `budget` at most (0: any number). -ENOTSUP:
 * it does not do so; -E2BIG: it wanted to move more, and none was moved. */
int pipeline_rebalance(struct pipeline *p, uint32_t budget, unsigned *ret_moves, struct err *err);

#endif
