/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of inputs and writing of results for nri-rp.decision/1. */
#pragma once

#include <nri-rp/decision.h>

#include <nri-rp/lib/host.h>

/* Returns an input of type RP_T_…, or the fallback if the question does not have it. */
int64_t decide_in(const struct modhost *h, const struct rp_question *q, const char *path,
		  uint32_t type, int64_t fallback);
const char *decide_in_text(const struct modhost *h, const struct rp_question *q, const char *path,
			   const char *fallback);
/* Stores a list of CPUs; empty if the question does not have it or it is malformed. */
void decide_in_cpus(const struct modhost *h, const struct rp_question *q, const char *path,
		    struct rp_idset *ret);
/* Writes a number as a result. */
void decide_out(const struct rp_answer *a, const char *name, int64_t value);
