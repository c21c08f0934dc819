/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.decision/1 [since 1.3], optional: decisions of a module for given figures, without a
 * container, a machine or a clock. A module that controls by measurements puts each rule into a
 * function of its inputs and offers the function here. The rule that runs can so be tested with
 * tables of inputs and results (nri-rp-modcheck --vectors).
 */
#ifndef NRI_RP_DECISION_H
#define NRI_RP_DECISION_H

#include <nri-rp/config.h>
#include <nri-rp/module.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RP_DECISION_1 "nri-rp.decision/1"

/* The inputs of a decision: nodes for the getters of nri-rp.host.config/1. */
struct rp_question {
	uint32_t size;
	uint32_t pad;
	const char *kind; /* the decision, a member of rp_decision.kinds */
	void *ctx;
	/* Returns the input of a name ("cpus", "strategy.window"). NULL: not given. */
	rp_cfg (*input)(void *ctx, const char *path);
};

/* Receives the results of a decision. */
struct rp_answer {
	uint32_t size;
	uint32_t pad;
	void *ctx;
	/* Adds one result; name and text are copied. The text is a number in decimal digits, a
	 * word, or numbers separated by commas. A result without a value is not added. */
	void (*result)(void *ctx, const char *name, const char *text);
};

/* The service of the module. */
struct rp_decision {
	uint32_t size;
	uint32_t pad;
	const char *const *kinds; /* names of the decisions; ends with NULL; constant */
	/* Makes a decision and writes its results to `answer`. Changes nothing, neither in the
	 * instance nor outside of it. May be called before any configuration. */
	int32_t (*decide)(struct rp_instance *inst, const struct rp_question *question,
			  const struct rp_answer *answer);
};

#ifdef __cplusplus
}
#endif
#endif
