/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of cpuclass. A job belongs to the worker from submit to done; `back` belongs to it always. */
#ifndef NRI_RP_LIB_CPUCLASS_IMPL_H
#define NRI_RP_LIB_CPUCLASS_IMPL_H

#include "modules/lib/cpuclass.h"
#include "modules/lib/pct_impl.h"

#define CPUCLASS_MESSAGE_MAX 256u
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
	WHAT_PLATFORM, /* of Speed Select */
	WHAT_CLOS,
	N_WHATS
};

struct cpuclass_cpu {
	uint32_t cpu, class;
	bool turbo; /* the word turbo means turbo */
	int32_t clos; /* PCT_NO_CLOS: it stays where it is */
	struct rp_sst_at at;
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
	struct pct_setup *setup; /* NULL: the platform stays as it is */
	const struct rp_host_speedselect *speedselect;
	void *ctx;
	/* Results. */
	uint64_t writes, failures, differing;
	bool setup_failed, setup_again;
	char messages[N_WHATS]
		     [CPUCLASS_MESSAGE_MAX]; /* the first thing that went wrong, of each kind */
};

struct cpuclass_back *cpuclass_back_new(const struct modhost *h);
void cpuclass_back_free(struct cpuclass_back *b);
int32_t cpuclass_run(void *arg); /* [worker] */
/* [worker] Keeps the first sentence of each kind: "PATH: VERB VALUE: RESULT". */
void cpuclass_complain(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
		       const char *verb, const char *value, const char *result);
/* Failures that another attempt does not mend. */
bool cpuclass_is_final(int32_t r);
/* [worker] kHz of a frequency that may be a word; 0: not known. */
int64_t cpuclass_resolve(const struct cpuclass_job *job, const struct cpuclass_cpu *cpu,
			 int64_t wanted);

/* pct_write.c [worker]: the platform, if the job is about it; one CPU: 0, -EBUSY, -EINVAL as for the other settings. */
void pct_run(struct cpuclass_job *job);
int32_t pct_associate(struct cpuclass_job *job, const struct cpuclass_cpu *cpu);

#endif
