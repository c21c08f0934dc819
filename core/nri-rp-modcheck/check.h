/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp-modcheck: checks a module without a cluster. The module runs against the daemon's own host
 * pipeline (core/nri-rpd/pipeline) on made-up machines. Each case is a forked child
 * (core/nri-rpd/host/trial.h), so a crash or a hang is an ordinary failure.
 *
 *   check.c             types of all files; notes, activities and reasons of cases
 *   main.c              options, list of cases, runs each case in a child
 *   machines.c          machines as trees of files below sys/ and proc/
 *   fixture.c           files that controllers read and write on a node
 *   config.c            the smallest configuration that the module's table allows, or the user's
 *   rig.c               a node with one instance on the daemon's pipeline; invariants
 *   churn.c             random requests on a rig, repeatable by seed
 *   balance.c           finds leaks of memory, file descriptors and threads
 *   watch.c             runs under sanitizers or valgrind, and parses their findings
 *   report.c            results as TAP or JSON
 *
 *   shim.c              covers of the host's and module's functions: faults, absent services,
 *                       longer structs, checked rules
 *   shim_cache.c        covers of nri-rp.host.cache/1
 *   shim_machine.c      covers of the host's other services
 *   shim_module.c       covers of the module's functions
 *
 *   cases_abi.c         hosts of other ABI versions, missing services
 *   cases_annotations.c plausible and hostile annotations
 *   cases_calculator.c  calculators on random nodes
 *   cases_controller.c  controllers with and without files
 *   cases_creation.c    values that only a creation can set, hints, limited runtimes
 *   cases_faults.c      failing calls of the host
 *   cases_life.c        life of instances, leaks
 *   cases_place.c       placement: invariants, restarts, determinism, time
 *   cases_report.c      zones, allocatable CPUs, memory, metrics, state
 *   cases_static.c      the file: symbols, libraries, constructors
 *   cases_unmanaged.c   refused containers that run unmanaged
 *   cases_values.c      each configuration key at its bounds
 *   cases_work.c        jobs and timers of policies
 *
 *   vectors.c           tables of inputs and results, instead of cases
 *   vectors_calc.c      vectors of calculators
 *   vectors_decision.c  vectors of a module's own decisions
 *   vectors_host.c      vectors of the host's calculations
 *   vectors_input.c     inputs of calculators
 */
#pragma once

#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/set.h>

#include "core/nri-rpd/cache/kvs.h"
#include "core/lib/conf/conf.h"
#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/note.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define CHECK_MACHINES_MAX 64u
#define CHECK_DIR_MAX 512u /* largest path of the checker's temporary folder, in bytes */
#define CHECK_SEEDS 3u /* repetitions of a random case, each with its own seed */
#define CHECK_OWN_MAX 1024u /* limit of annotation pairs */
#define CHECK_CONFIG_MAX (1u << 20) /* largest --config file, in bytes */

struct options {
	char dir[PATH_MAX], name[RP_NAME_MAX]; /* folder and name of the module */
	char path[PATH_MAX];
	const char *machines, *config, *annotations;
	const char *vectors; /* table of vectors to run instead of cases; NULL: none */
	uint64_t slow_ms; /* calls that take longer are failures; 0: no limit */
	uint64_t seed;
	bool reproduce; /* run only `seed`, and log each request */
	bool json, list, strict_time, has_cases;
	bool sanitize, valgrind;
	regex_t cases;
};

struct check_machine {
	char name[64];
	char root[CHECK_DIR_MAX + 72];
	/* description of the simulated machine; NULL: copied from a folder of --machines */
	const struct machine_shape *shape;
	char source[PATH_MAX];
	char *online; /* list of online CPUs */
	uint32_t n_cpus;
	bool made;
};

struct machines {
	char dir[CHECK_DIR_MAX]; /* temporary folder, removed at the end */
	struct check_machine items[CHECK_MACHINES_MAX];
	unsigned n;
};

/* Activity and timings of a case, in memory shared with the parent, which reports them if the
 * case's process ends. */
struct scene {
	char doing[192]; /* for example "on a host without nri-rp.host.work/1"; "": unknown */
	char broken[256]; /* the first broken rule of the ABI; "": none */
	/* name of the slowest function of the module, and the text of `doing` during its call */
	char slowest[224];
	/* duration of the slowest call; number and total duration of all calls */
	uint64_t slowest_ns, n_calls, total_ns;
};

/* A running case, in its own process. */
struct check {
	const struct options *o;
	struct check_machine *machine;
	uint64_t seed;
	uint32_t role; /* RP_KIND_…: the kind of module that is checked */
	struct crumb *crumb;
	struct scene *scene;
	struct buf *out; /* lines for people, shown as diagnostics */
	struct loader *loader; /* loader of modules; NULL in cases about the file alone */
	struct module *module;
	/* schema of the module's configuration; NULL: the module has none */
	const struct rp_schema *schema;
	struct conf *conf;
	/* annotations that the module looks up: of --annotations, or learned */
	struct kv *own;
	unsigned n_own;
	struct rig *rig; /* open rig, if the flags of the case require one */
	struct churn *churn; /* churn on that rig */
	bool hung; /* a job of the module has not ended, so its code must stay loaded */
	uint32_t detail; /* variant that CASE_DETAIL() names */
	struct note_facts facts; /* facts about the file; only for cases about the file alone */
};

#define CASE_MACHINES 0x1u /* runs for each machine */
#define CASE_SEEDS 0x2u /* runs for each seed */
#define CASE_LARGEST 0x4u /* runs on the largest machine */
#define CASE_FILE 0x8u /* checks only the file: the module is not loaded first */
#define CASE_NO_CONFIG 0x10u /* needs no configuration */
#define CASE_SLOW 0x20u /* time limit of the case is 30 s instead of 10 s */
#define CASE_SMALL 0x40u /* runs on one machine of medium size */
#define CASE_CLOCK                                                                                 \
	0x100u /* checks only durations; failures of other kinds are left to other cases */
/* runs on an open rig (check.rig), with churn (check.churn); also created: the rig has an instance;
 * started: the instance is configured and synchronized */
#define CASE_OPEN 0x200u
#define CASE_CREATED 0x400u
#define CASE_STARTED 0x800u
#define CASE_LATE 0x1000u /* results of jobs are deferred (rig.late) */
/* variant, for cases that share their function */
#define CASE_DETAIL(n) ((uint32_t)(n) << 16)
#define CASE_GATE 0x80u /* if it fails, later cases are skipped; runs whatever --cases selects */

/* Result of a case, besides 0 (passed) and a negative errno with the reason in err: skipped, with
 * the reason from check_skip(). */
#define CHECK_SKIPPED 1
struct check_case {
	const char *name; /* name of the case, "group/case" */
	uint32_t kinds; /* kinds of modules it applies to; 0: all */
	uint32_t flags; /* conditions for running the case, CASE_… */
	int (*fn)(struct check *c, struct err *err);
	const char *about; /* the requirement, in words */
};

struct check_group {
	const struct check_case *cases;
	unsigned n;
};
extern const struct check_group static_cases, abi_cases, life_cases, place_cases, unmanaged_cases,
	value_cases, annotation_cases, work_cases, fault_cases, report_cases, controller_cases,
	creation_cases, calculator_cases;

/* Adds a line to the output of the case. */
void check_note(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the activity to name in reports of a crash or a hang, in addition to the function. "":
 * none. */
void check_doing(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Logs the reason and returns CHECK_SKIPPED. */
int check_skip(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
