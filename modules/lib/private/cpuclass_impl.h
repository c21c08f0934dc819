/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the two halves of cpuclass. A job belongs to the worker from submit to done;
 * `back` belongs to it always. */
#pragma once

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/pct_impl.h"

#define CPUCLASS_MESSAGE_MAX 256u
#define RULES_TEXTS (CPUCLASS_MAX * (CPUCLASS_CSTATES_MAX + 2u))

/* Definitions with copied texts, for jobs that outlive a configuration. */
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
	WHAT_PLATFORM, /* platform of Speed Select */
	WHAT_CLOS,
	/* not a failure: one cpufreq policy has CPUs of classes with different values */
	WHAT_SHARED,
	N_WHATS
};

struct cpuclass_cpu {
	uint32_t cpu, class;
	bool turbo; /* RP_FREQ_TURBO means turbo for this CPU */
	int32_t clos; /* PCT_NO_CLOS: unchanged */
	struct rp_sst_at at;
	bool failed; /* result: a write for this CPU has failed */
	bool again; /* result: the failed write may succeed later */
};

struct cpuclass_die {
	uint32_t package, die;
	uint64_t classes;
	bool again; /* result: as in struct cpuclass_cpu */
};

struct cpuclass_back;

struct cpuclass_job {
	struct cpuclass *owner;
	struct cpuclass_back *back;
	struct rules *rules;
	struct cpuclass_cpu *cpus;
	struct cpuclass_die *dies;
	uint32_t n_cpus, n_dies;
	struct pct_setup *setup; /* setup of Speed Select; NULL: the platform is unchanged */
	const struct rp_host_speedselect *speedselect;
	void *ctx;
	/* Results. */
	uint64_t writes, failures, differing;
	bool setup_failed, setup_again;
	char messages[N_WHATS]
		     /* first failure of each kind */
		     [CPUCLASS_MESSAGE_MAX];
};

/* ---- main thread ---- */

#define NOT_DONE UINT16_MAX

struct seat {
	uint32_t package, die; /* index of the die in c->dies */
	/* class of the CPU + 1, 0: none: wanted, and applied last with turbo and the CLOS */
	uint16_t wanted, done;
	bool online, allowed, failed, again;
	bool touched; /* the CPU has been in a class under this or an earlier configuration */
};
#define WITH_TURBO 0x8000u
#define CLOS_SHIFT 8u /* position of the CLOS: CLOS + 1, or 0 if it is unchanged */

struct die {
	uint32_t package, die;
	/* bit mask of the classes with CPUs on this die; all 64 bits may be used */
	uint64_t classes, done;
	bool known, again;
};

struct cpuclass {
	struct modhost h;
	struct rules *rules;
	struct cpuclass_back *back;
	struct seat *seats;
	uint32_t n_seats;
	struct die *dies;
	uint32_t n_dies;
	bool used; /* classes were defined once, so there may be values to restore */
	struct cpuclass_stats stats;
	uint32_t complained; /* WHAT_… that were logged already */
	/* State of the attempts by the timer. */
	uint64_t cookie; /* cookie of the timer for further attempts; 0: no further attempts */
	void (*done)(void *arg);
	void *arg;
	uint32_t n_tries; /* failed attempts in a row */
	/* n_failing: CPUs; n_again: CPUs, dies and platforms to be tried again */
	uint32_t n_failing, n_again;
	/* Speed Select. */
	struct pct *pct; /* Speed Select of the classes; NULL: the classes do not use it */
	struct pct_setup *undo; /* setup to be removed first; NULL: none */
	bool set_up; /* the platform is set up, or the worker is setting it up */
	bool stopped; /* no writes until the next configure */
	bool platform_done, platform_again, platform_failed;
	/* an attempt waits for the timer, so that changes in between cause none */
	bool platform_waits;
	char why[320];
};

/* Allocates a job. NULL: out of memory. */
struct cpuclass_job *cpuclass_new_job(struct cpuclass *c);
/* Adds to the job that all CPUs and dies leave their classes; CPUs keep their CLOS. */
void cpuclass_leave_all(struct cpuclass *c, struct cpuclass_job *job);
/* Submits the job to the worker and takes ownership of it. */
void cpuclass_submit(struct cpuclass *c, struct cpuclass_job *job);

/* Returns the setup to be removed because the next classes do not use it (cpuclass_platform.c).
 * NULL: none, or *ret_result is -RP_ENOMEM. */
struct pct_setup *cpuclass_what_to_undo(const struct cpuclass *c, const struct pct *next,
					int32_t *ret_result);
/* Replaces the Speed Select part and the setup to be removed; takes ownership of both. */
void cpuclass_take_pct(struct cpuclass *c, struct pct *pct, struct pct_setup *undo);
/* Returns true if a platform job is due now. */
bool cpuclass_platform_to_do(const struct cpuclass *c);
/* Adds to the job the removal of the previous setup, or the new setup. Both assign all CPUs to CLOS
 * 0. False: out of memory. */
bool cpuclass_add_platform(struct cpuclass *c, struct cpuclass_job *job);
/* Takes the setup back from a job that could not be submitted. */
void cpuclass_not_submitted(struct cpuclass *c, struct cpuclass_job *job);
/* Records the result of a platform job. False: the platform was configured again meanwhile, so the
 * result is obsolete. */
bool cpuclass_take_platform(struct cpuclass *c, struct cpuclass_job *job);

/* ---- worker ---- */

struct cpuclass_back *cpuclass_back_new(const struct modhost *h);
void cpuclass_back_free(struct cpuclass_back *b);
int32_t cpuclass_run(void *arg); /* [worker] */
/* [worker] Records the first failure of each kind: "PATH: VERB VALUE: RESULT". */
void cpuclass_complain(struct cpuclass_job *job, enum cpuclass_what what, const char *path,
		       const char *verb, const char *value, const char *result);
/* Returns true for failures that another attempt cannot mend. */
bool cpuclass_is_final(int32_t r);
/* [worker] Returns a frequency in kHz, which may be given as RP_FREQ_…; 0: unknown. */
int64_t cpuclass_resolve(const struct cpuclass_job *job, const struct cpuclass_cpu *cpu,
			 int64_t wanted);

/* [worker] pct_write.c: pct_run() sets up the platform if the job requires it. pct_associate()
 * moves one CPU to its CLOS and returns 0, -EBUSY or -EINVAL as for other settings. */
void pct_run(struct cpuclass_job *job);
int32_t pct_associate(struct cpuclass_job *job, const struct cpuclass_cpu *cpu);
