/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp-modcheck: proves a module without a cluster. The module runs against the daemon's own host
 * side (core/nri-rpd/host, core/nri-rpd/cache) on made-up machines; each case is a forked child
 * (core/nri-rpd/host/trial.h), so that a crash or a hang is a result like others.
 *
 *   machines    trees with the files below sys/ and proc/
 *   config      the smallest configuration that the module's table allows, or the user's
 *   rig         a node: one instance, a cache, a machine; requests as the daemon makes them, and
 *               what has to hold after each
 *   churn       random requests on a rig, the same for the same seed
 *   shim        the host's services with a twist: faults, absent services, longer structs, watched
 *               rules
 *   cases_…     the cases, tables of struct check_case
 *   watch       sanitizers and valgrind
 *   report      TAP and JSON
 */
#ifndef MODCHECK_CHECK_H
#define MODCHECK_CHECK_H

#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/set.h>

#include "core/nri-rpd/cache/kvs.h"
#include "core/lib/conf/conf.h"
#include "core/lib/conf/fragment.h"
#include "core/nri-rpd/host/loader.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define CHECK_MACHINES_MAX 64u
#define CHECK_DIR_MAX 512u /* bytes of the path of our folder */
#define CHECK_SEEDS 3u /* runs of a random case */
#define CHECK_OWN_MAX 1024u /* pairs of annotations */
#define CHECK_CONFIG_MAX (1u << 20) /* bytes of a --config file */

struct options {
	char dir[PATH_MAX], name[RP_NAME_MAX]; /* the module: its folder and name */
	char path[PATH_MAX];
	const char *machines, *config, *annotations;
	const char *vectors; /* a table to run instead of cases; NULL: none */
	uint64_t slow_ms; /* a call that takes longer is a failure; 0: never */
	uint64_t seed;
	bool reproduce; /* `seed` alone, with every request noted */
	bool json, list, strict_time, has_cases;
	bool sanitize, valgrind;
	regex_t cases;
};

struct check_machine {
	char name[64];
	char root[CHECK_DIR_MAX + 72];
	const struct machine_shape *shape; /* NULL: a copy of a folder of --machines */
	char source[PATH_MAX];
	char *online; /* the list of its CPUs */
	uint32_t n_cpus;
	bool made;
};

struct machines {
	char dir[CHECK_DIR_MAX]; /* ours, removed at the end */
	struct check_machine items[CHECK_MACHINES_MAX];
	unsigned n;
};

/* What was going on when a case's process ended: in memory that it shares with the one that
 * reports. */
struct scene {
	char doing[192]; /* "on a host without nri-rp.host.work/1"; "": nothing in particular */
	char broken[256]; /* the first rule of the border that was broken; "": none */
	char slowest[224]; /* the module's function that took the longest, with what was doing … */
	uint64_t slowest_ns, n_calls, total_ns; /* … and how long it did, of all its calls */
};

/* A case as it runs, in its own process. */
struct check {
	const struct options *o;
	struct check_machine *machine;
	uint64_t seed;
	uint32_t role; /* RP_KIND_…: what the module is used as */
	struct crumb *crumb;
	struct scene *scene;
	struct buf *out; /* lines for people, shown as diagnostics */
	struct loader *loader; /* NULL for cases about the file alone */
	struct module *module;
	const struct rp_schema *schema; /* NULL: it has none */
	struct conf *conf;
	/* annotations that the module is known to look for: of --annotations, or learned */
	struct kv *own;
	unsigned n_own;
	bool hung; /* a job of the module's has not come to an end: its code has to stay */
};

#define CASE_MACHINES 0x1u /* once for each machine */
#define CASE_SEEDS 0x2u /* once for each seed */
#define CASE_LARGEST 0x4u /* on the largest machine */
#define CASE_FILE 0x8u /* about the file alone: nothing is loaded before */
#define CASE_NO_CONFIG 0x10u /* needs no configuration */
#define CASE_SLOW 0x20u /* may take 30 s instead of 10 s */
#define CASE_SMALL 0x40u /* on one machine of a middle size */
#define CASE_CLOCK                                                                                 \
	0x100u /* about time alone: whatever else goes wrong, other cases are about that */
#define CASE_GATE 0x80u /* when it fails nothing after it makes sense; runs whatever --cases says */

/* fn gives 0 (passed), CHECK_SKIPPED (check_skip said why), or a negative errno with the reason in
 * err. */
#define CHECK_SKIPPED 1
struct check_case {
	const char *name; /* "group/case" */
	uint32_t kinds; /* of modules that it is for; 0: all */
	uint32_t flags; /* CASE_… */
	int (*fn)(struct check *c, struct err *err);
	const char *about; /* what has to be so */
};

struct check_group {
	const struct check_case *cases;
	unsigned n;
};
extern const struct check_group static_cases, abi_cases, life_cases, place_cases, unmanaged_cases,
	value_cases, annotation_cases, work_cases, fault_cases, report_cases, controller_cases,
	creation_cases, calculator_cases;

void check_note(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What a crash or a hang from here on is to be blamed on, beside the function that it is in. "":
 * nothing. */
void check_doing(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Notes why, returns CHECK_SKIPPED. */
int check_skip(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- machines.c ---- */

int machines_init(struct machines *m, const char *folder, struct err *err);
void machines_fini(struct machines *m);
/* Writes its tree if that is not there yet, and puts all its CPUs online. */
int machine_make(struct check_machine *m, struct err *err);
int machine_set_online(const struct check_machine *m, struct rp_ids cpus, struct err *err);
/* Writes a file of the machine, and makes a directory with those above it. */
int machine_put(const struct check_machine *m, const char *path, const char *text, struct err *err);
int machine_put_dir(const struct check_machine *m, const char *path, struct err *err);
/* The one with the most CPUs, and the one in the middle. */
struct check_machine *machines_largest(struct machines *m);
struct check_machine *machines_middle(struct machines *m);

/* ---- config.c ---- */

/* The module's section, checked against its table: that of --config, or the required keys alone. */
int config_load(const struct check *c, struct conf **ret, struct err *err);
/* The section's text with something more in it, as lines "key: value". */
int config_load_with(const struct check *c, const char *more, struct conf **ret, struct err *err);

/* The same with one key of the table set to a value, and what its path needs. */
int config_load_variant(const struct check *c, const char *path, const char *value,
			struct conf **ret, struct err *err);
/* Pairs of --annotations; their texts live as long as *ret_text. */
int config_annotations(const char *path, struct kv **ret, unsigned *ret_n,
		       struct fragment **ret_text, struct err *err);

/* ---- report.c ---- */

enum verdict { VERDICT_PASSED, VERDICT_FAILED, VERDICT_SKIPPED };

struct report {
	bool json;
	unsigned n, count[3];
	struct buf out;
	struct json *writer;
};

void report_begin(struct report *r, const struct options *o, unsigned planned);
void report_case(struct report *r, const char *name, enum verdict verdict, const char *reason,
		 const char *notes, uint64_t took_us);
/* Returns the exit status. */
int report_end(struct report *r);

#endif
