/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of cpuclass. A job belongs to the worker from submit to done; `back`
 * belongs to it always. */
#ifndef NRI_RP_LIB_CPUCLASS_IMPL_H
#define NRI_RP_LIB_CPUCLASS_IMPL_H

#include "modules/lib/cpuclass.h"
#include "modules/lib/pct_impl.h"

#define CPUCLASS_MESSAGE_MAX 256u
#define RULES_TEXTS (CPUCLASS_MAX * (CPUCLASS_CSTATES_MAX + 2u))

/* Definitions with texts of their own, for jobs that are still under way when a configuration has
 * gone. */
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
	WHAT_SHARED, /* no failure: classes that one policy of cpufreq cannot have at a time */
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

/* ---- on the main thread ---- */

#define NOT_DONE UINT16_MAX

struct seat {
	uint32_t package, die; /* index of the die in c->dies */
	uint16_t wanted,
		/* class + 1 (0: none); done also says whether with turbo, and in which CLOS */
		done;
	bool online, allowed, failed, again;
	bool touched; /* has been in a class under this or an earlier configuration */
};
#define WITH_TURBO 0x8000u
#define CLOS_SHIFT 8u /* CLOS + 1; 0: the CPU stays in which it is */

struct die {
	uint32_t package, die;
	uint64_t classes, done; /* those with CPUs here; bit 63 of a full set is a class as well */
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
	bool used; /* classes were defined once: from then on there may be something to take back */
	struct cpuclass_stats stats;
	uint32_t complained; /* WHAT_… that were logged already */
	/* Attempts by the clock. */
	uint64_t cookie; /* 0: none */
	void (*done)(void *arg);
	void *arg;
	uint32_t n_tries; /* that have failed in a row */
	uint32_t n_failing,
		n_again; /* CPUs; CPUs, dies and platforms that are worth another attempt */
	/* Speed Select. */
	struct pct *pct; /* NULL: classes have nothing to do with it */
	struct pct_setup *undo; /* to be taken back first; NULL: nothing */
	bool set_up; /* the platform was set up, or the worker is at it */
	bool stopped; /* until it is configured again */
	bool platform_done, platform_again, platform_failed;
	bool platform_waits; /* for the clock: each change would mean another attempt otherwise */
	char why[320];
};

/* NULL: out of memory. */
struct cpuclass_job *cpuclass_new_job(struct cpuclass *c);
void cpuclass_free_job(struct cpuclass_job *job);
/* All CPUs leave their classes, whatever CLOS they are in; and the dies. */
void cpuclass_leave_all(struct cpuclass *c, struct cpuclass_job *job);
/* Hands it to the worker, and frees it. */
void cpuclass_submit(struct cpuclass *c, struct cpuclass_job *job);

/* cpuclass_platform.c. What was set up is taken back when nobody wants it any more. NULL: nothing
 * is, or *ret_result is -RP_ENOMEM. */
struct pct_setup *cpuclass_what_to_undo(const struct cpuclass *c, const struct pct *next,
					int32_t *ret_result);
/* Both are the struct cpuclass's from now on. */
void cpuclass_take_pct(struct cpuclass *c, struct pct *pct, struct pct_setup *undo);
bool cpuclass_platform_to_do(const struct cpuclass *c);
/* The undoing of what went before, or the setting up of what is to be; both put all CPUs in CLOS 0.
 * False: out of memory. */
bool cpuclass_add_platform(struct cpuclass *c, struct cpuclass_job *job);
void cpuclass_not_submitted(struct cpuclass *c, struct cpuclass_job *job);
/* What became of it. False: it is set up anew meanwhile, so that this one does not count any
 * more. */
bool cpuclass_take_platform(struct cpuclass *c, struct cpuclass_job *job);

/* ---- the worker's part ---- */

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

/* pct_write.c [worker]: the platform, if the job is about it; one CPU: 0, -EBUSY, -EINVAL as for
 * the other settings. */
void pct_run(struct cpuclass_job *job);
int32_t pct_associate(struct cpuclass_job *job, const struct cpuclass_cpu *cpu);

#endif
