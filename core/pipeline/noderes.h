/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's resources to lend: measured on a timer, calculated by the calculators of rp.conf, put on a Node that stands here for the one
 * that an API server has. Nothing of it is on the way of a request.
 */
#ifndef PIPELINE_NODERES_H
#define PIPELINE_NODERES_H

#include "core/noderes/result.h"
#include "core/noderes/strategy.h"

struct pipeline;
struct noderes;

struct noderes_view {
	bool enabled; /* by the strategy */
	const struct strategy *strategy;
	const struct rp_nr_measured *measured;
	const int64_t *capacity, *allocatable; /* by RP_NR_… */
	const struct nr_result *result; /* of the last pass, with messages */
	const struct nr_result *node; /* as it would be written */
	uint64_t passes, writes; /* a write: the Node has changed enough */
	uint64_t age_ms; /* of the last pass */
	const char *error; /* of measuring; "" */
};

/* 0 or -ENOMEM. */
int noderes_init(struct pipeline *p);
void noderes_fini(struct pipeline *p);
/* -EINVAL with the place: strategy or node entries are not valid. Nothing has changed. */
int noderes_check(const struct conf *conf, struct err *err);
/* Another configuration is in force. */
void noderes_configure(struct pipeline *p);
/* Calculators are about to end. */
void noderes_stop(struct pipeline *p);
/* False: there are no calculators. */
bool pipeline_noderes(const struct pipeline *p, struct noderes_view *ret);
/* Why a calculator's stage failed in the last pass; "": it did not. By its number among pipeline_controller(). */
const char *pipeline_noderes_error(const struct pipeline *p, unsigned controller);

#endif
