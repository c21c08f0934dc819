/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rp.conf: text in, one checked tree out.
 *
 * Sources are read in order: rp.conf, then the files *.conf in rp.conf.d in byte order, then what
 * the node agent pushed. A source is a YAML stream; each document of it is either plain (core keys,
 * and one section a module) or a whole custom resource (`kind` and `spec`), which is rewritten to
 * the plain form. Documents merge in order: maps member by member, everything else replaces; a null
 * takes a key back. The result is checked against the core's table and those of the modules, and
 * every problem is reported with its place. Loading has no effect on anything but the new `struct
 * conf`.
 *
 * Everything of a configuration lives in its own arena until conf_free. Strings in the tree are
 * UTF-8 without NUL.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nri-rp/config.h>

#include "core/lib/conf/prefixes.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/log.h"

#define CONF_DEFAULT_PATH "/etc/nri-rp/rp.conf"
#define CONF_DEFAULT_STATE_DIR "/var/lib/nri-rp"
#define CONF_DEFAULT_RUN_DIR "/run/nri-rp"
#define CONF_BRIDGE_SOCKET CONF_DEFAULT_RUN_DIR "/bridge.sock"

/* Limits. Beyond them a source is refused with a clear error. */
#define CONF_FILE_MAX (1u << 20) /* bytes of one source */
#define CONF_TOTAL_MAX (4u << 20) /* bytes of all sources */
#define CONF_FILES_MAX 64u /* rp.conf and its drop-ins */
#define CONF_PUSHED_MAX 48u /* what the node agent pushed */
#define CONF_SOURCES_MAX (CONF_FILES_MAX + CONF_PUSHED_MAX)
#define CONF_DEPTH_MAX 32u /* nesting */
#define CONF_NODES_MAX 20000u /* of all sources, after the expansion of aliases */
#define CONF_MEMBERS_MAX 4096u /* of one map */
#define CONF_SECTIONS_MAX 256u /* keys at the top level */
#define CONF_KEY_MAX 256u /* bytes of a key */
#define CONF_ERRORS_MAX 64u /* problems that are kept; the rest is counted */
#define CONF_PROBLEM_TEXT_MAX 512u /* bytes of one problem's text */

struct conf;

/* ---- problems -------------------------------------------------------------------------------- */

struct conf_problem {
	bool warning; /* the configuration can be used all the same */
	unsigned line, column; /* from 1; 0: no place */
	unsigned source; /* position of the source in reading order */
	unsigned seq;
	/* One line, place included: `rp.conf:12:5: balloons.pinCPU: expected true or false, found
	 * "maybe"` */
	char text[CONF_PROBLEM_TEXT_MAX];
};

/* Some 34 KiB, nothing to free. */
struct conf_errors {
	struct conf_problem items[CONF_ERRORS_MAX];
	unsigned n_items;
	unsigned n_errors, n_warnings; /* all, kept or not */
};

void conf_errors_init(struct conf_errors *errs);
/* By source, line and column; what has no place comes first. conf_load leaves them sorted. */
void conf_errors_sort(struct conf_errors *errs);
#define CONF_WARNING "warning: "
/* One line a problem, warnings marked by that, and how many more there are. */
void conf_errors_print(const struct conf_errors *errs, struct buf *out);
/* The first error in err (with the number of further ones): what a reload's reply has room for.
 * Returns code. */
int conf_errors_to_err(const struct conf_errors *errs, int code, struct err *err);

/* ---- the modules' side ----------------------------------------------------------------------- */

enum conf_found {
	CONF_NO_MODULE, /* not installed: its section is taken unchecked, with a warning */
	CONF_NO_SCHEMA, /* installed, but has no table: its section is taken unchecked */
	CONF_SCHEMA,
};

/*
 * Where tables come from. `begin` is called once before the others with the directories of
 * `modules.path` as the sources give it; it may be NULL. What they return has to live until
 * conf_load returns, no longer: the configuration keeps copies.
 */
struct conf_schemas {
	void *ctx;
	void (*begin)(void *ctx, const char *const *path, unsigned n_path);
	enum conf_found (*find)(void *ctx, const char *module, const struct rp_schema **ret_schema);
	/* The policy module whose section is the spec of custom resources of this kind, or NULL. */
	const char *(*of_kind)(void *ctx, const char *kind);
	/* The installed modules, for suggestions; may be NULL. */
	void (*each)(void *ctx, void (*fn)(const char *module, void *arg), void *arg);
};

/* Is this table well-formed? Loading says so too; this is for module checkers. -EINVAL with err. */
int conf_schema_check(const struct rp_schema *schema, struct err *err);
/* The table of everything that is not a module's section. */
const struct rp_schema *conf_core_schema(void);

/* ---- loading --------------------------------------------------------------------------------- */

/*
 * Reads `path` and the drop-ins of the directory `<path>.d`. Places name files as `path` does.
 * `schemas` may be NULL: no modules. 0 with *ret (errs may hold warnings), -EINVAL when something
 * in it is wrong, another -errno when it cannot be read; errs then holds at least one error.
 */
int conf_load(const char *path, const struct conf_schemas *schemas, struct conf **ret,
	      struct conf_errors *errs);

struct conf_source {
	const char *name; /* for places: a file's path, "agent" */
	const char *text;
	size_t len;
	/* From the node agent: its sections replace whole sections of the sources before, as far as
	 * `agent.accept` allows. */
	bool pushed;
	/* A key was put on a line before what somebody wrote, and all of that moved by a blank:
	 * places are those of what was written. */
	bool keyed;
	/* Made of an object: its lines mean nothing to anybody, its places are those of the
	 * object. */
	bool object;
};

/* What does not lie in files. */
int conf_parse(const struct conf_source *sources, unsigned n_sources,
	       const struct conf_schemas *schemas, struct conf **ret, struct conf_errors *errs);

struct conf_files {
	struct conf_source *sources; /* owned, as are their names and texts */
	unsigned n_sources;
};
/*
 * conf_load in two halves. When a file cannot be read, the first half has those that can be and the
 * code, and the second one, with that code, only tells what is wrong with these as well.
 */
/* A text in place of files; `name` is for messages. 0 or -ENOMEM. */
int conf_files_of_text(const char *name, const char *text, struct conf_files *ret);
int conf_read_files(const char *path, struct conf_files *ret, struct conf_errors *errs);
int conf_parse_files(const struct conf_files *files, int code, const struct conf_schemas *schemas,
		     struct conf **ret, struct conf_errors *errs);
void conf_files_fini(struct conf_files *files);

struct conf *conf_free(struct conf *conf); /* returns NULL; NULL is fine */

/* ---- the core's keys, typed, defaults filled in ---------------------------------------------- */

enum conf_watch { CONF_WATCH_AUTO, CONF_WATCH_ON, CONF_WATCH_OFF };
enum conf_mode { CONF_RELAXED, CONF_OPTIONAL, CONF_REQUIRED, CONF_DISABLED };

struct conf_controller {
	const char *name; /* the module */
	uint32_t kind; /* RP_KIND_CONTROLLER, or RP_KIND_CALCULATOR for one of `calculators` */
	enum conf_mode mode;
	rp_cfg node; /* where it is listed */
};

/* The calculators that come with nri-rp, in the order in which they build on each other: what "*"
 * in `calculators` stands for. */
#define CONF_CALCULATORS 6u
extern const char *const conf_calculators[CONF_CALCULATORS];

/* A resource that pods ask for by one name, and what it counts as. */
struct conf_rename {
	const char *asked, *counts_as;
};

struct conf_strings {
	const char *const *items;
	unsigned n;
};

/* Where modules are when neither modules.path nor an option says so: where this build installs them
 * first. */
extern const struct conf_strings conf_module_dirs;

enum conf_on_policy_error { CONF_REJECT, CONF_UNMANAGED };
enum conf_on_timeout { CONF_REFUSE, CONF_ALLOW };
enum conf_request_source { CONF_REQUESTS_AUTO, CONF_REQUESTS_FEED, CONF_REQUESTS_RUNTIME };

#define ANNOTATION_DOMAIN "resource-policy.nri.io"
#define ANNOTATION_ALIAS_DOMAIN "cri-resource-manager.intel.com"

/* An annotation that counts in some namespaces alone. */
struct conf_annotation {
	const char *name; /* without these domains, "/pod" and "/container.NAME" */
	struct conf_strings namespaces; /* globs */
};

/* What is heard of pods. */
struct conf_annotations {
	/* taking annotations that `list` lacks count in taker_namespaces only */
	bool takers_named;
	struct conf_strings taker_namespaces; /* globs */
	const struct conf_annotation *list;
	unsigned n;
	struct prefixes prefixes;
};

struct conf_core {
	const char *policy;
	rp_cfg policy_node; /* NULL: the default */
	const struct conf_controller *controllers;
	unsigned n_controllers;
	struct conf_strings module_path;
	struct {
		const char *socket, *name;
		const char *fallback; /* "": none */
		uint64_t fallback_after_ms;
		unsigned index; /* 0 … 99 */
	} runtime;
	const char *cache_dir;
	bool export_data;
	const char *control_socket;
	struct {
		/* "host:port", "unix:PATH"; "": no server. instrumentation.httpEndpoint when
		 * metrics.listen is not set */
		const char *listen;
		bool prometheus; /* serve /metrics */
		bool map; /* serve /map, where only this machine reaches it */
		struct conf_strings enabled, polled; /* globs of metric groups */
		uint64_t collect_ms; /* between two readings of what containers use; 0: never */
		/* percent from which on it is one, by bit of RP_PRESSURE_…; 0: never */
		uint32_t pressure[4];
	} metrics;
	struct {
		enum log_level level;
		struct conf_strings debug; /* sources, as log_set_debug takes them */
		bool source;
	} log;
	enum conf_on_policy_error on_policy_error;
	bool reset_on_switch;
	uint64_t rebalance_ms; /* 0: never */
	uint32_t rebalance_moves; /* at a time, at most; 0: any number */
	struct {
		bool accept_all; /* there is no agent.accept */
		struct conf_strings accept;
		bool cluster; /* it may push configurations, as far as accept allows */
		bool topology; /* and it publishes the zones */
		bool pod_resource_api;
		const char *socket, *user;
	} agent;
	struct {
		enum conf_request_source source;
		uint64_t timeout_ms;
		enum conf_on_timeout on_timeout;
		const struct conf_rename *names; /* of resources */
		uint32_t n_names;
	} admit;
	struct conf_annotations annotations;
	enum conf_watch watch_files;
	bool strict; /* unknown keys are errors, not warnings */
};

const struct conf_core *conf_core(const struct conf *conf);
/* The number that a key of the core has or, where it is not there, its default; RP_T_…. */
int64_t conf_core_value(const struct conf *conf, const char *path, uint32_t type);

/* ---- the tree -------------------------------------------------------------------------------- */

rp_cfg conf_root(const struct conf *conf);
/* A module's section; NULL when there is none (or it is null). */
rp_cfg conf_section(const struct conf *conf, const char *module);

/* The getters of nri-rp.host.config/1, without the context; see there. */
uint32_t conf_kind(rp_cfg node);
/* At each map the rest of the path is first tried as one key, so that keys with dots can be
 * reached. */
rp_cfg conf_get(rp_cfg node, const char *path);
uint32_t conf_count(rp_cfg node);
rp_cfg conf_item(rp_cfg node, uint32_t i);
const char *conf_key(rp_cfg node, uint32_t i);
const char *conf_text(rp_cfg node, const char *fallback);
/* The value on a line, cut to the size: [a, b], {a: 1}; "(not set)" for NULL. Returns buf. */
const char *conf_flow(rp_cfg node, char *buf, size_t size);
/* `fallback` also when the scalar is no such value, which only happens where no table row checked
 * it. AMOUNT: milli of a quantity. */
int64_t conf_value(rp_cfg node, uint32_t type, int64_t fallback);
double conf_number(rp_cfg node, double fallback);
/* Is it a scalar that can only be text, "true" rather than true? */
bool conf_quoted(rp_cfg node);
uint32_t conf_line(rp_cfg node); /* from 1; 0 for NULL */

#define CONF_PLACE_MAX 512u /* holds any place, cut if need be */
/* "rp.conf:12:5"; "" for NULL. Returns buf. */
const char *conf_where(rp_cfg node, char *buf, size_t size);
/* "balloons.balloonTypes[2].maxCPUs", as it is written in the file, but for a custom resource's
 * `spec`, which is the module's name, unless it is an object of the agent's. */
const char *conf_path(rp_cfg node, char *buf, size_t size);
/* Both, what goes before a message about the node: "rp.conf:12:5:
 * balloons.balloonTypes[2].maxCPUs". */
const char *conf_place(rp_cfg node, char *buf, size_t size);

/* ---- for people and tools -------------------------------------------------------------------- */

#define CONF_SHOW_ORIGIN 0x1u /* "# rp.conf:12" after each key */
#define CONF_SHOW_DEFAULTS 0x2u /* also keys that are not set, marked "# default" */

/* The configuration in force as YAML that loads to the same. 0 or -ENOMEM. */
int conf_show(const struct conf *conf, unsigned flags, struct buf *out);

enum conf_format { CONF_TEXT, CONF_MDOC };
/* A table's keys with type, default and meaning: for a terminal, or as the list of a manual page.
 * 0, -EINVAL or -ENOMEM. */
int conf_schema_help(const struct rp_schema *schema, enum conf_format format, struct buf *out);

struct conf_named_schema {
	const char *module;
	const struct rp_schema *schema;
};

/* ---- differences ----------------------------------------------------------------------------- */

struct conf_change {
	const char *
		path; /* of the key in the merged tree; a list whose length changed is one change */
	rp_cfg before, after; /* NULL: not set */
	bool restart; /* takes effect after a restart of nri-rpd only */
};

/*
 * Calls fn for each key whose value differs, in the order of the tables, then of the tree; setting
 * a key to what it was by default is no change. A non-zero result of fn ends it and is returned.
 */
int conf_diff(const struct conf *before, const struct conf *after,
	      int (*fn)(const struct conf_change *change, void *arg), void *arg);

#endif
