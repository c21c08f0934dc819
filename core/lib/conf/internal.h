/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of core/lib/conf. The steps of loading a text: yaml.c makes a
 * tree of each document, rewrite.c brings documents to the plain form and merges them, check.c
 * compares the result with the tables (schema.c), core.c reads the core's keys from it; load.c runs
 * these steps.
 */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/lib/util/arena.h"

#define CONF_ARENA_BLOCK (16u << 10)
#define CONF_ARENA_MAX (32u << 20)
#define CONF_ANCHORS_MAX 256u /* largest number of anchors of one document */
#define CONF_SCHEMA_KEYS_MAX 4096u /* largest number of keys in a module's schema */
#define CONF_SCHEMA_DEPTH_MAX 10u /* largest number of segments of a schema key's path */
#define CONF_CONTROLLERS_MAX 64u
#define CONF_FOUND_MAX 60u /* largest size of a quoted value in a message, in bytes */

/* ---- tree.c ---------------------------------------------------------------------------------- */

struct conf_file {
	const char *name;
	unsigned number; /* number of the document, in reading order */
	bool object; /* same as conf_source.object */
};

struct conf_member {
	const char *key; /* key in a map; NULL in a list */
	uint32_t hash; /* hash of the key */
	struct rp_cfg_node *node;
};

/*
 * parent, written and index are the position of the node in its document and do not change when it
 * is merged into another map. A path in a message is therefore the one in the user's file.
 */
struct rp_cfg_node {
	uint8_t kind;
	bool quoted; /* a scalar that can only be text */
	uint32_t line, column;
	uint32_t index;
	uint32_t n, cap;
	const struct conf_file *file;
	const struct rp_cfg_node *parent;
	const char *written; /* key in the document; NULL in a list and at the top */
	union {
		const char *text;
		struct conf_member *members;
	};
};

struct rp_cfg_node *node_new(struct arena *arena, uint32_t kind, const struct conf_file *file);
int node_append(struct arena *arena, struct rp_cfg_node *parent, const char *key,
		struct rp_cfg_node *child);
struct conf_member *node_member(const struct rp_cfg_node *map, const char *key);
struct rp_cfg_node *node_child(
	const struct rp_cfg_node *map,
	const char *key); /* NULL if map is NULL, is no map, or has no such key */
void node_rename(struct conf_member *member, const char *key);
void node_remove(struct rp_cfg_node *map, const struct conf_member *member);
/* Returns the member of a map, or NULL if it is absent or null. */
struct rp_cfg_node *node_set(const struct rp_cfg_node *map, const char *key);
static inline bool node_is(rp_cfg node, uint32_t kind)
{
	return node && node->kind == kind;
}
/* Writes `"many"`, `a list` …, the description of a node in a message. */
const char *node_found(rp_cfg node, char *buf, size_t size);

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Adds a problem at a place of a file (line 0: the file as a whole; file NULL: no place). Return
 * -EINVAL. */
int problem_at(struct conf_errors *errs, const struct conf_file *file, unsigned line,
	       unsigned column, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void warning_at(struct conf_errors *errs, const struct conf_file *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds a problem at a node, with its path; `below` is appended to the path unless NULL. */
int problem_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void warning_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- yaml.c ---------------------------------------------------------------------------------- */

struct conf_doc {
	struct rp_cfg_node *root; /* root of the merged tree, a map */
	bool pushed;
	/* module whose spec the custom resource has; NULL: no custom resource */
	const char *module;
	struct conf_doc *next;
};

struct conf_docs {
	struct conf_doc *first, **end;
	unsigned n_nodes;
};

/* Decodes the character at s, of which n bytes are left (at least one). Returns its length, or 0 if
 * it is not UTF-8. */
unsigned char_decode(const char *s, size_t n, uint32_t *ret);
bool char_breaks(uint32_t c); /* true if the character ends a line */
bool char_printable(uint32_t c); /* true if YAML allows it unescaped */

/* Appends the documents of one source. Returns 0, perhaps with problems; -EINVAL with problems if
 * the source could not be read to its end; or -ENOMEM. */
int yaml_read(struct arena *arena, const struct conf_source *source, const struct conf_file *file,
	      struct conf_docs *docs, struct conf_errors *errs);

/* ---- value.c --------------------------------------------------------------------------------- */

/* Returns true if the scalar fits the type, range and choices of a key; otherwise reports a
 * problem. */
bool value_check(rp_cfg node, const struct rp_key *key, struct conf_errors *errs);
/* Writes the values that a key accepts, such as "an integer of at least 0". Returns buf. */
const char *value_expected(const struct rp_key *key, char *buf, size_t size);
/* Returns true if a text fits the type, range and choices of a key. Reports no problem and ignores
 * quotes. */
bool value_fits(const char *text, const struct rp_key *key);
/* Returns true if two scalars have the same value under the type. */
bool value_equal(const char *a, const char *b, uint32_t type);

/* ---- schema.c -------------------------------------------------------------------------------- */

/* A table as a tree: one node a key, `any` for "*", `elem` for "[]". */
struct schema_node {
	struct rp_key key; /* path is the last segment; type is never 0 */
	/* the schema has a key for the node; otherwise the node is implied by its children */
	bool declared;
	struct schema_node *first, *next; /* named children, in the order of the table */
	struct schema_node *any, *elem;
};

struct schema_tree {
	struct schema_node root; /* a MAP */
	bool fold;
	const char *cr_kind;
};

int schema_build(struct arena *arena, const struct rp_schema *schema, struct schema_tree **ret,
		 struct err *err);
/* Returns the schema node of a member: the node of that name, else `any`. With `fold`, names match
 * in any case. */
const struct schema_node *schema_child(const struct schema_node *map, const char *key, bool fold);
/* Returns true if the table allows everything below: ANY, and maps and lists without rows for their
 * members. */
static inline bool schema_open(const struct schema_node *s)
{
	return !s || s->key.type == RP_T_ANY || (!s->first && !s->any && !s->elem);
}
/* Returns row i of a table whose rows may be longer or shorter than this version's; missing members
 * are 0. */
struct rp_key schema_row(const struct rp_schema *schema, uint32_t i);

/* ---- load.c ---------------------------------------------------------------------------------- */

struct conf_module {
	const char *name;
	enum conf_found found;
	const struct schema_tree *schema; /* for CONF_SCHEMA; NULL also if the table is invalid */
	struct conf_module *next;
};

struct conf {
	struct arena *arena;
	struct rp_cfg_node *root;
	const struct schema_tree *schema; /* table of the core */
	struct conf_module *modules; /* modules that were looked up, in that order */
	struct conf_core core;
};

struct conf_loader {
	struct conf *conf;
	struct arena *arena;
	const struct conf_schemas *schemas;
	struct conf_errors *errs;
};

/* Works like conf_parse() with another limit of memory, for tests. */
int conf_parse_within(size_t arena_limit, const struct conf_source *sources, unsigned n_sources,
		      const struct conf_schemas *schemas, struct conf **ret,
		      struct conf_errors *errs);

bool module_name_valid(const char *name);
/* Returns a module's table, which is looked up once. NULL: out of memory. The name has to be
 * valid. */
const struct conf_module *loader_module(struct conf_loader *l, const char *name);
/* Returns a module that was looked up before; NULL: it was not. */
const struct conf_module *known_module(const struct conf *conf, const char *name);
const struct schema_tree *conf_schema_of(const struct conf *conf, const char *module);

/* ---- rewrite.c ------------------------------------------------------------------------------- */

/* Merges documents into conf->root. 0, perhaps with problems; -EINVAL with a problem that prevents
 * further steps; -ENOMEM. */
int rewrite_merge(struct conf_loader *l, struct conf_docs *docs);

/* ---- orm.c ----------------------------------------------------------------------------------- */

/* Takes the keys that belong to `runtime` out of root's `orm`, as a separate map; *ret is NULL if
 * there are none. 0, perhaps with problems; -ENOMEM. */
int orm_rewrite(struct conf_loader *l, struct rp_cfg_node *root, struct rp_cfg_node **ret);

/* ---- check.c --------------------------------------------------------------------------------- */

/* Renames keys to the schema's spelling if the schema ignores case. Two spellings of one key are a
 * problem. */
void check_spelling(struct conf_errors *errs, struct rp_cfg_node *section,
		    const struct schema_tree *schema);
/* Checks the merged tree against all tables. */
void check_all(const struct conf_loader *l);
/* Checks modules in use that have no section, and sections that are enabled for modules that are
 * not in use. */
int check_used(struct conf_loader *l);

/* ---- core.c ---------------------------------------------------------------------------------- */

/* Returns true for a key of the core. */
bool core_key(const char *key);
/* Fills conf->core from the tree, and reports problems that a schema cannot express. 0 or
 * -ENOMEM. */
int core_fill(struct conf_loader *l);
/* Reads nodeResources.prefixes (prefixes.c). */
void prefixes_fill(struct conf_loader *l, struct prefixes *ret);
/* Reads `annotations` (annotations.c). */
int annotations_fill(struct conf_loader *l, struct conf_annotations *ret);
/* Reads `modules.path`, which is needed before the tree is merged. Of several documents with that
 * key, the last one decides. */
int core_module_path(struct arena *arena, const struct rp_cfg_node *root, struct conf_strings *ret);
/* Returns the default of a core key in the table; only for keys that have one. */
const char *core_default(const char *path);

/* ---- show.c ---------------------------------------------------------------------------------- */

/* Returns true for a list that contains no maps and is shown on one line. */
bool show_is_flat(rp_cfg list);
void show_flow(struct buf *out, rp_cfg node);
