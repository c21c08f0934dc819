/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.decision/1 [since 1.3], optional: what a module would decide of given figures, without a
 * container, a machine or a clock. A module that steers by what is measured puts the rule itself in
 * functions of their inputs, and offers them here as well: so it can be looked at with tables of
 * inputs and results (nri-rp-modcheck --vectors), and it is the rule that runs.
 */
#ifndef NRI_RP_DECISION_H
#define NRI_RP_DECISION_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_DECISION_1 "nri-rp.decision/1"

/* Inputs are nodes that the getters of nri-rp.host.config/1 read. */
struct rp_question {
	uint32_t size;
	uint32_t pad;
	const char *kind; /* one of rp_decision.kinds */
	void *ctx;
	/* By name, "cpus", or "strategy.window"; NULL: it is not given. */
	rp_cfg (*input)(void *ctx, const char *path);
};

struct rp_answer {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* One result, copied: a number in decimal digits, a word, numbers with commas between them.
	 * What has no value is not told. */
	void (*result)(void *ctx, const char *name, const char *text);
};

struct rp_decision {
	uint32_t size;
	uint32_t pad;
	const char *const *kinds; /* of decisions; ends with NULL, constant */
	/* Changes nothing, neither of the instance nor outside. It may come before any
	 * configuration. */
	int32_t (*decide)(struct rp_instance *inst, const struct rp_question *question,
			  const struct rp_answer *answer);
};

#ifdef __cplusplus
}
#endif
#endif
