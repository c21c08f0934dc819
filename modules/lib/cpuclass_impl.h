/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of cpuclass. A job belongs to the worker from submit to done; `back` belongs to it always. */
#ifndef NRI_RP_LIB_CPUCLASS_IMPL_H
#define NRI_RP_LIB_CPUCLASS_IMPL_H

#include "modules/lib/cpuclass.h"

#define RULES_TEXTS (CPUCLASS_MAX * (CPUCLASS_CSTATES_MAX + 2u))

/* Definitions with texts of their own, for jobs that are still under way when a configuration has gone. */
struct rules {
	uint32_t refs, n_texts;
	struct cpuclass_defs defs;
	char *texts[RULES_TEXTS];
};

enum cpuclass_what {
	WHAT_MIN,
	WHAT_MAX,
	WHAT_GOVERNOR,
	WHAT_EPP,
	WHAT_CSTATE,
	WHAT_UNCORE,
	N_WHATS
};

struct cpuclass_cpu {
	uint32_t cpu, class;
	bool turbo; /* the word turbo means turbo */
	bool failed; /* result: something could not be written … */
	bool again; /* … and might be, later */
};

struct cpuclass_die {
	uint32_t package, die;
	uint64_t classes;
	bool again; /* result */
};

struct cpuclass_back;

struct cpuclass_job {
	struct cpuclass *owner;
	struct cpuclass_back *back;
	struct rules *rules;
	struct cpuclass_cpu *cpus;
	struct cpuclass_die *dies;
	uint32_t n_cpus, n_dies;
	/* Results. */
	uint64_t writes, failures, differing;
	char messages[N_WHATS][256]; /* the first thing that went wrong, of each kind */
};

struct cpuclass_back *cpuclass_back_new(const struct modhost *h);
void cpuclass_back_free(struct cpuclass_back *b);
int32_t cpuclass_run(void *arg); /* [worker] */

#endif
