/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of core/lib/conf share. The way of a text: yaml.c makes a tree of each document,
 * rewrite.c brings documents to the plain form and merges them, check.c compares the result with
 * the tables (schema.c), core.c reads the core's keys out of it, load.c drives all that.
 */
#ifndef CONF_INTERNAL_H
#define CONF_INTERNAL_H

#include "core/lib/conf/conf.h"
#include "core/lib/util/arena.h"

#define CONF_ARENA_BLOCK (16u << 10)
#define CONF_ARENA_MAX (32u << 20)
#define CONF_ANCHORS_MAX 256u /* of one document */
#define CONF_SCHEMA_KEYS_MAX 4096u /* rows of one table */
#define CONF_SCHEMA_DEPTH_MAX 10u /* segments of one row's path */
#define CONF_CONTROLLERS_MAX 64u
#define CONF_FOUND_MAX 60u /* bytes of a value that a message quotes */

/* ---- tree.c ---------------------------------------------------------------------------------- */

struct conf_file {
	const char *name;
	unsigned number; /* in reading order */
	bool object; /* as conf_source.object */
};

struct conf_member {
	const char *key; /* of a map; NULL in a list */
	uint32_t hash; /* of key */
	struct rp_cfg_node *node;
};

/*
 * parent, written and index say where the node stands in its document, and stay as they are when it
 * is merged into another map: a path in a message is the one that people find in the file.
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
struct rp_cfg_node *node_child(const struct rp_cfg_node *map,
			       const char *key); /* NULL also when map is none or NULL */
void node_rename(struct conf_member *member, const char *key);
void node_remove(struct rp_cfg_node *map, const struct conf_member *member);
/* The child, or NULL when it is null. */
struct rp_cfg_node *node_set(const struct rp_cfg_node *map, const char *key);
static inline bool node_is(rp_cfg node, uint32_t kind)
{
	return node && node->kind == kind;
}
/* `"many"`, `a list` …: what a message says was found. */
const char *node_found(rp_cfg node, char *buf, size_t size);

/* ---- errors.c -------------------------------------------------------------------------------- */

/* At a place of a file (line 0: the file as a whole; file NULL: nowhere). Return -EINVAL. */
int problem_at(struct conf_errors *errs, const struct conf_file *file, unsigned line,
	       unsigned column, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void warning_at(struct conf_errors *errs, const struct conf_file *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* At a node, with its path; `below` is appended to the path when not NULL. */
int problem_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void warning_node(struct conf_errors *errs, rp_cfg node, const char *below, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- yaml.c ---------------------------------------------------------------------------------- */

struct conf_doc {
	struct rp_cfg_node *root; /* a map */
	bool pushed;
	const char *module; /* of a custom resource: whose spec it holds */
	struct conf_doc *next;
};

struct conf_docs {
	struct conf_doc *first, **end;
	unsigned n_nodes;
};

/* The character at s, of which n bytes are left (at least one); its length, or 0 when it is not
 * UTF-8. */
unsigned char_decode(const char *s, size_t n, uint32_t *ret);
bool char_breaks(uint32_t c); /* ends a line */
bool char_printable(uint32_t c); /* YAML allows it unescaped */

/* Appends the documents of one source. 0, maybe with problems; -EINVAL with problems when the rest
 * of the source is lost; -ENOMEM. */
int yaml_read(struct arena *arena, const struct conf_source *source, const struct conf_file *file,
	      struct conf_docs *docs, struct conf_errors *errs);

/* ---- value.c --------------------------------------------------------------------------------- */

/* Does the scalar fit the row's type, range and choices? Reports it when not. */
bool value_check(rp_cfg node, const struct rp_key *key, struct conf_errors *errs);
/* "an integer of at least 0": what is expected. Returns buf. */
const char *value_expected(const struct rp_key *key, char *buf, size_t size);
/* The same of a text, without words; quotes do not matter. */
bool value_fits(const char *text, const struct rp_key *key);
/* The values the scalars give under the type are the same. */
bool value_equal(const char *a, const char *b, uint32_t type);

/* ---- schema.c -------------------------------------------------------------------------------- */

/* A table as a tree: one node a key, `any` for "*", `elem` for "[]". */
struct schema_node {
	struct rp_key key; /* path is the last segment; type is never 0 */
	bool declared; /* it has a row; else its children imply it */
	struct schema_node *first, *next; /* named children in the order of the table */
	struct schema_node *any, *elem;
};

struct schema_tree {
	struct schema_node root; /* a MAP */
	bool fold;
	const char *cr_kind;
};

int schema_build(struct arena *arena, const struct rp_schema *schema, struct schema_tree **ret,
		 struct err *err);
/* The node of a member: the named one, else `any`. With fold, names match in any case. */
const struct schema_node *schema_child(const struct schema_node *map, const char *key, bool fold);
/* Is everything below free? ANY, and maps and lists about whose members the table says nothing. */
static inline bool schema_open(const struct schema_node *s)
{
	return !s || s->key.type == RP_T_ANY || (!s->first && !s->any && !s->elem);
}
/* Row i of a table whose rows may be longer or shorter than ours, members that are not there being
 * 0. */
struct rp_key schema_row(const struct rp_schema *schema, uint32_t i);

/* ---- load.c ---------------------------------------------------------------------------------- */

struct conf_module {
	const char *name;
	enum conf_found found;
	const struct schema_tree *schema; /* of CONF_SCHEMA, NULL when the table is broken, too */
	struct conf_module *next;
};

struct conf {
	struct arena *arena;
	struct rp_cfg_node *root;
	const struct schema_tree *schema; /* of the core */
	struct conf_module *modules; /* those whose names came up, in that order */
	struct conf_core core;
};

struct conf_loader {
	struct conf *conf;
	struct arena *arena;
	const struct conf_schemas *schemas;
	struct conf_errors *errs;
};

/* conf_parse with another limit of memory: for tests. */
int conf_parse_within(size_t arena_limit, const struct conf_source *sources, unsigned n_sources,
		      const struct conf_schemas *schemas, struct conf **ret,
		      struct conf_errors *errs);

bool module_name_valid(const char *name);
/* What is known of a module, asked for once. NULL when out of memory. The name has to be valid. */
const struct conf_module *loader_module(struct conf_loader *l, const char *name);
/* The same for one that was asked for before; NULL: it was not. */
const struct conf_module *known_module(const struct conf *conf, const char *name);
const struct schema_tree *conf_schema_of(const struct conf *conf, const char *module);

/* ---- rewrite.c ------------------------------------------------------------------------------- */

/* Documents into conf->root. 0, maybe with problems; -EINVAL with one that leaves nothing to go on
 * with; -ENOMEM. */
int rewrite_merge(struct conf_loader *l, struct conf_docs *docs);

/* ---- orm.c ----------------------------------------------------------------------------------- */

/* Takes out of root's `orm` what belongs to `runtime`, as a map of its own; *ret is NULL when there
 * is nothing. 0, maybe with problems; -ENOMEM. */
int orm_rewrite(struct conf_loader *l, struct rp_cfg_node *root, struct rp_cfg_node **ret);

/* ---- check.c --------------------------------------------------------------------------------- */

/* Renames keys to the table's spelling where it folds case; two spellings of one key are a
 * problem. */
void check_spelling(struct conf_errors *errs, struct rp_cfg_node *section,
		    const struct schema_tree *schema);
/* Everything the tables say about the merged tree. */
void check_all(const struct conf_loader *l);
/* The same for modules in use that have no section, and sections that are switched on for modules
 * that are not in use. */
int check_used(struct conf_loader *l);

/* ---- core.c ---------------------------------------------------------------------------------- */

/* Is it a key of the core? */
bool core_key(const char *key);
/* Fills conf->core from the tree, reporting what a table cannot say. 0 or -ENOMEM. */
int core_fill(struct conf_loader *l);
/* nodeResources.prefixes (prefixes.c). */
void prefixes_fill(struct conf_loader *l, struct prefixes *ret);
/* `annotations` (annotations.c). */
int annotations_fill(struct conf_loader *l, struct conf_annotations *ret);
/* `modules.path`, which is needed before the tree is merged: the last document that has it
 * counts. */
int core_module_path(struct arena *arena, const struct rp_cfg_node *root, struct conf_strings *ret);
/* The default of a core key as the table gives it; of keys only that have one. */
const char *core_default(const char *path);

/* ---- show.c ---------------------------------------------------------------------------------- */

/* A list without maps in it, on one line. */
bool show_is_flat(rp_cfg list);
void show_flow(struct buf *out, rp_cfg node);

#endif
