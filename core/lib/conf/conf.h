/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads rp.conf: text in, one checked tree out.
 *
 * Sources are read in order: rp.conf, then the files *.conf in rp.conf.d in byte order, then those
 * that the node agent pushed. A source is a YAML stream. Each document is either plain (core keys,
 * and one section a module) or a whole custom resource (`kind` and `spec`), which is rewritten to
 * the plain form. Documents are merged in order: maps member by member, everything else replaces; a
 * null removes a key. The result is checked against the tables of the core and of the modules, and
 * every problem is reported with its place. Loading has no effect except the new `struct conf`.
 *
 * A configuration is allocated in a separate arena, which conf_free frees. Strings in the tree are
 * UTF-8 without NUL.
 */
#pragma once

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

/* Limits. A source that exceeds one of them is refused with an error. */
#define CONF_FILE_MAX (1u << 20) /* largest size of one source, in bytes */
#define CONF_TOTAL_MAX (4u << 20) /* largest size of all sources together, in bytes */
#define CONF_FILES_MAX 64u /* largest number of files: rp.conf and its drop-ins */
#define CONF_NAMESPACES_MAX 8u /* largest number of entries of agent.namespaces */
#define CONF_PUSHED_MAX 48u /* largest number of sources that the node agent pushed */
#define CONF_SOURCES_MAX (CONF_FILES_MAX + CONF_PUSHED_MAX)
#define CONF_DEPTH_MAX 32u /* deepest nesting of lists and maps */
/* largest number of values of all sources, after the expansion of aliases */
#define CONF_NODES_MAX 20000u
#define CONF_MEMBERS_MAX 4096u /* largest number of members of one map */
#define CONF_SECTIONS_MAX 256u /* largest number of keys at the top level */
#define CONF_KEY_MAX 256u /* largest size of a key, in bytes */
#define CONF_ERRORS_MAX 64u /* largest number of problems that are stored; the rest is counted */
#define CONF_PROBLEM_TEXT_MAX 512u /* largest size of one problem's text, in bytes */

struct conf;

/* ---- problems -------------------------------------------------------------------------------- */

struct conf_problem {
	bool warning; /* the configuration is usable nevertheless */
	unsigned line, column; /* position of the problem, from 1; 0: unknown */
	unsigned source; /* position of the source in reading order */
	unsigned seq;
	/* text on one line, with its place:
	 * `rp.conf:12:5: balloons.pinCPU: expected true or false, found "maybe"` */
	char text[CONF_PROBLEM_TEXT_MAX];
};

/* Problems of a configuration, about 34 KiB. Needs no freeing. */
struct conf_errors {
	struct conf_problem items[CONF_ERRORS_MAX];
	unsigned n_items;
	unsigned n_errors, n_warnings; /* numbers of all problems, stored or not */
};

void conf_errors_init(struct conf_errors *errs);
/* Sorts by source, line and column; problems without a place are first. conf_load leaves them
 * sorted. */
void conf_errors_sort(struct conf_errors *errs);
#define CONF_WARNING "warning: "
/* Prints one line per problem, with warnings marked, and the number of problems that were not
 * stored. */
void conf_errors_print(const struct conf_errors *errs, struct buf *out);
/* Writes the first error and the number of further ones to err, as needed for the reply to a
 * reload. Returns code. */
int conf_errors_to_err(const struct conf_errors *errs, int code, struct err *err);

/* ---- interface to modules -------------------------------------------------------------------- */

enum conf_found {
	CONF_NO_MODULE, /* not installed: the section is accepted unchecked, with a warning */
	CONF_NO_SCHEMA, /* installed without a table: the section is accepted unchecked */
	CONF_SCHEMA,
};

/*
 * Source of tables. `begin` is called once before the other functions with the directories of
 * `modules.path` as the sources state it; it may be NULL. Returned data has to live until conf_load
 * returns, because the configuration keeps copies.
 */
struct conf_schemas {
	void *ctx;
	void (*begin)(void *ctx, const char *const *path, unsigned n_path);
	enum conf_found (*find)(void *ctx, const char *module, const struct rp_schema **ret_schema);
	/* Returns the policy module whose section is the spec of custom resources of this kind, or
	 * NULL. */
	const char *(*of_kind)(void *ctx, const char *kind);
	/* Passes the installed modules to fn, for suggestions; may be NULL. */
	void (*each)(void *ctx, void (*fn)(const char *module, void *arg), void *arg);
};

/* Checks that a module's schema is well-formed, for module checkers; loading reports errors as
 * well. -EINVAL with err. */
int conf_schema_check(const struct rp_schema *schema, struct err *err);
/* Returns the table of all keys outside of modules' sections. */
const struct rp_schema *conf_core_schema(void);

/* ---- loading --------------------------------------------------------------------------------- */

/*
 * Reads `path` and the drop-ins of the directory `<path>.d`. Places name files relative to `path`.
 * `schemas` may be NULL: no modules. Returns 0 with *ret (errs may contain warnings), -EINVAL for
 * an invalid configuration, another -errno if it is not readable; errs then contains at least one
 * error.
 */
int conf_load(const char *path, const struct conf_schemas *schemas, struct conf **ret,
	      struct conf_errors *errs);

struct conf_source {
	const char *name; /* name of the source for messages: a file's path, or "agent" */
	const char *text;
	size_t len;
	/* From the node agent: its sections replace whole sections of earlier sources, as far as
	 * `agent.accept` allows. */
	bool pushed;
	/* A key was added on a line before the user's text, which was indented by a blank. Places
	 * refer to the user's text. */
	bool keyed;
	/* The source was converted from an object. Places in messages are then paths in the object,
	 * because its author cannot see line numbers. */
	bool object;
};

/* Parses sources that are not files. */
int conf_parse(const struct conf_source *sources, unsigned n_sources,
	       const struct conf_schemas *schemas, struct conf **ret, struct conf_errors *errs);

struct conf_files {
	struct conf_source *sources; /* owned, with their names and texts */
	unsigned n_sources;
};
/*
 * The two halves of conf_load. If a file is not readable, the first half returns the readable files
 * and the error code. The second half, called with that code, only adds the problems of these
 * files.
 */
/* Appends copies of the sources. 0 or -ENOMEM. */
int conf_files_append(struct conf_files *files, const struct conf_source *sources, unsigned n);
int conf_read_files(const char *path, struct conf_files *ret, struct conf_errors *errs);
int conf_parse_files(const struct conf_files *files, int code, const struct conf_schemas *schemas,
		     struct conf **ret, struct conf_errors *errs);
void conf_files_fini(struct conf_files *files);

struct conf *conf_free(struct conf *conf); /* accepts NULL; returns NULL */

/* ---- keys of the core, typed, with defaults -------------------------------------------------- */

enum conf_watch { CONF_WATCH_AUTO, CONF_WATCH_ON, CONF_WATCH_OFF };
enum conf_mode { CONF_RELAXED, CONF_OPTIONAL, CONF_REQUIRED, CONF_DISABLED };

struct conf_controller {
	const char *name; /* name of the module */
	uint32_t kind; /* RP_KIND_CONTROLLER, or RP_KIND_CALCULATOR for one of `calculators` */
	enum conf_mode mode;
	rp_cfg node; /* node of its list entry */
};

/* Calculators that come with nri-rp, in the order in which they build on each other. "*" in
 * `calculators` means all of them. */
#define CONF_CALCULATORS 6u
extern const char *const conf_calculators[CONF_CALCULATORS];

/* A resource that pods request by one name, and the resource that it is counted as. */
struct conf_rename {
	const char *asked, *counts_as;
};

struct conf_strings {
	const char *const *items;
	unsigned n;
};

/* Directories of modules if neither modules.path nor an option is set. The first one is the
 * directory into which this build is installed. */
extern const struct conf_strings conf_module_dirs;
/* Keys that custom resources have beside those of the policy, such as control. */
extern const struct conf_strings conf_common_parts;
bool conf_has_string(const struct conf_strings *list, const char *text);

enum conf_on_policy_error { CONF_REJECT, CONF_UNMANAGED };
enum conf_on_timeout { CONF_REFUSE, CONF_ALLOW };
enum conf_request_source { CONF_REQUESTS_AUTO, CONF_REQUESTS_FEED, CONF_REQUESTS_RUNTIME };

#define ANNOTATION_DOMAIN "resource-policy.nri.io"
#define ANNOTATION_ALIAS_DOMAIN "cri-resource-manager.intel.com"

/* An annotation that is effective in some namespaces only. */
struct conf_annotation {
	/* name of the annotation, without the project's domains, "/pod" and "/container.NAME" */
	const char *name;
	struct conf_strings namespaces; /* globs of namespaces */
};

/* Rules for annotations of pods. */
struct conf_annotations {
	/* Annotations that take from other containers and are not in `list` are effective in
	 * taker_namespaces only. */
	bool takers_named;
	struct conf_strings taker_namespaces; /* globs of namespaces */
	const struct conf_annotation *list;
	unsigned n;
	struct prefixes prefixes;
};

struct conf_core {
	const char *policy;
	rp_cfg policy_node; /* value of `policy` in the configuration; NULL: the default applies */
	const struct conf_controller *controllers;
	unsigned n_controllers;
	struct conf_strings module_path;
	struct {
		const char *socket, *name;
		const char *fallback; /* second NRI socket, used if the first one fails; "": none */
		uint64_t fallback_after_ms;
		unsigned index; /* index of the plugin in NRI, 0 … 99 */
	} runtime;
	const char *device_nodes; /* "auto", "none", or a list of memory nodes */
	const char *cache_dir;
	bool export_data;
	const char *control_socket;
	struct {
		/* "host:port", "unix:PATH"; "": no server. instrumentation.httpEndpoint if
		 * metrics.listen is not set */
		const char *listen;
		bool prometheus; /* serve the metrics at /metrics */
		bool map; /* serve /map, if only this machine can reach it */
		struct conf_strings enabled, polled; /* globs of metric groups */
		uint64_t collect_ms; /* time between two readings of containers' usage; 0: never */
		/* limits in percent, by bit of RP_PRESSURE_…; 0: no limit */
		uint32_t pressure[4];
	} metrics;
	struct {
		enum log_level level;
		/* sources of debug messages, in the format of log_set_debug */
		struct conf_strings debug;
		bool source;
	} log;
	enum conf_on_policy_error on_policy_error;
	bool reset_on_switch;
	uint64_t rebalance_ms; /* interval of attempts to improve placements; 0: never */
	uint32_t rebalance_moves; /* maximum of moves at a time; 0: no limit */
	struct {
		/* every configuration is accepted, because agent.accept is not set */
		bool accept_all;
		struct conf_strings accept;
		bool cluster; /* the agent may push configurations, as far as accept allows */
		bool topology; /* the agent publishes the zones */
		bool node_condition; /* the agent keeps a condition of the Node */
		bool taint_when_away; /* taints the Node while containers are not placed */
		bool pod_resource_api;
		bool resource_slices; /* list devices of claims, too */
		const char *pod_source; /* "auto", "kubelet", "apiserver" */
		bool pods; /* the agent reports pods: cluster, or pod_source is the kubelet */
		struct conf_strings
			namespaces; /* namespaces of custom resources, besides the agent's own */
		const char *socket, *user;
	} agent;
	bool dra; /* the agent is a DRA driver for the policy's devices */
	struct {
		enum conf_request_source source;
		uint64_t timeout_ms;
		enum conf_on_timeout on_timeout;
		const struct conf_rename *names; /* renamed resources */
		uint32_t n_names;
	} admit;
	struct conf_annotations annotations;
	enum conf_watch watch_files;
	bool strict; /* treat unknown keys as errors, not as warnings */
};

const struct conf_core *conf_core(const struct conf *conf);
/* Returns the number of a core key or its default; RP_T_…. */
int64_t conf_core_value(const struct conf *conf, const char *path, uint32_t type);

/* ---- the tree -------------------------------------------------------------------------------- */

rp_cfg conf_root(const struct conf *conf);
/* Returns a module's section; NULL: absent or null. */
rp_cfg conf_section(const struct conf *conf, const char *module);

/* Implements the getters of nri-rp.host.config/1, without the context; see there. */
uint32_t conf_kind(rp_cfg node);
/* Returns the node of a path. At each map the rest of the path is first tried as one key, so that
 * keys with dots can be reached. */
rp_cfg conf_get(rp_cfg node, const char *path);
uint32_t conf_count(rp_cfg node);
rp_cfg conf_item(rp_cfg node, uint32_t i);
const char *conf_key(rp_cfg node, uint32_t i);
const char *conf_text(rp_cfg node, const char *fallback);
/* Writes the value on one line, cut to the size: [a, b], {a: 1}; "(not set)" for NULL. Returns
 * buf. */
const char *conf_flow(rp_cfg node, char *buf, size_t size);
/* Returns the value of a scalar. Returns `fallback` also for a scalar of another type, which is
 * only possible without a row of a table. AMOUNT: milli of a quantity. */
int64_t conf_value(rp_cfg node, uint32_t type, int64_t fallback);
double conf_number(rp_cfg node, double fallback);
/* Returns true for a scalar that can only be text, "true" rather than true. */
bool conf_quoted(rp_cfg node);
uint32_t conf_line(rp_cfg node); /* Returns the line of a node, from 1; 0 for NULL. */

#define CONF_PLACE_MAX 512u /* enough for most places; longer ones are cut */
/* Writes "rp.conf:12:5"; "" for NULL. Returns buf. */
const char *conf_where(rp_cfg node, char *buf, size_t size);
/* Writes "balloons.balloonTypes[2].maxCPUs", as in the file, except that the module's name replaces
 * the `spec` of a custom resource that is not an object of the agent's. */
const char *conf_path(rp_cfg node, char *buf, size_t size);
/* Writes place and path, the beginning of a message about the node:
 * "rp.conf:12:5: balloons.balloonTypes[2].maxCPUs". Returns buf. */
const char *conf_place(rp_cfg node, char *buf, size_t size);

/* ---- output for people and tools ------------------------------------------------------------- */

#define CONF_SHOW_ORIGIN 0x1u /* "# rp.conf:12" after each key */
#define CONF_SHOW_DEFAULTS 0x2u /* also keys that are not set, marked "# default" */

/* Writes the configuration as YAML that loads to the same configuration. 0 or -ENOMEM. */
int conf_show(const struct conf *conf, unsigned flags, struct buf *out);

enum conf_format { CONF_TEXT, CONF_MDOC };
/* Writes a table's keys with type, default and meaning, for a terminal or as the list of a manual
 * page. 0, -EINVAL or -ENOMEM. */
int conf_schema_help(const struct rp_schema *schema, enum conf_format format, struct buf *out);

struct conf_named_schema {
	const char *module;
	const struct rp_schema *schema;
};

/* ---- differences ----------------------------------------------------------------------------- */

struct conf_change {
	const char *path; /* path in the merged tree; a list whose length changed is one change */
	rp_cfg before, after; /* values in the two configurations; NULL: the key is not set */
	bool restart; /* the change takes effect only after a restart of nri-rpd */
};

/*
 * Calls fn for each key whose value differs, in the order of the tables, then of the tree. Setting
 * a key to its default is no change. A non-zero result of fn ends the iteration and is returned.
 */
int conf_diff(const struct conf *before, const struct conf *after,
	      int (*fn)(const struct conf_change *change, void *arg), void *arg);
