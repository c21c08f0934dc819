/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds trees from tables of keys. Tables come from modules of any age: rows may be shorter or
 * longer than this version's, and errors in a table are reported like any other invalid input.
 */
#include "core/lib/conf/internal.h"

#include <strings.h>

#include "core/lib/util/str.h"

#define TYPE_MAX RP_T_FREQ

/* Size of a row of the first release: up to this member. */
#define ROW_MIN (offsetof(struct rp_key, type) + sizeof(uint32_t))

static uint32_t row_size(const struct rp_schema *schema)
{
	return RP_HAS(schema, key_size) && schema->key_size ? schema->key_size
							    : (uint32_t)sizeof(struct rp_key);
}

struct rp_key schema_row(const struct rp_schema *schema, uint32_t i)
{
	struct rp_key row = {0};
	size_t size = row_size(schema);
	memcpy(&row, (const char *)schema->keys + i * size, size < sizeof row ? size : sizeof row);
	return row;
}

static bool is_parent(const struct schema_node *node)
{
	return node->first || node->any || node->elem;
}

static struct schema_node *node_of(struct arena *arena, const char *name, size_t len, uint32_t type)
{
	struct schema_node *node = arena_zero(arena, struct schema_node);
	if (!node)
		return NULL;
	node->key.type = type;
	node->key.path = arena_strndup(arena, name, len);
	return node->key.path ? node : NULL;
}

static struct schema_node *find_named(const struct schema_node *map, const char *name, size_t len)
{
	for (struct schema_node *c = map->first; c; c = c->next)
		if (strlen(c->key.path) == len && memcmp(c->key.path, name, len) == 0)
			return c;
	return NULL;
}

/* Finds or makes the child of a segment. A new node gets the kind that its children will need, a
 * map at first. */
static int child_of(struct arena *arena, struct schema_node *parent, const char *name, size_t len,
		    struct schema_node **ret)
{
	bool elem = len == 2 && memcmp(name, "[]", 2) == 0, any = len == 1 && *name == '*';
	struct schema_node **slot = elem ? &parent->elem : &parent->any;
	if (!elem && !any) {
		struct schema_node *named = find_named(parent, name, len);
		slot = &parent->first;
		while (!named && *slot)
			slot = &(*slot)->next;
		if (named) {
			*ret = named;
			return 0;
		}
	}
	if (!*slot)
		*slot = node_of(arena, name, len, RP_T_MAP);
	if (!*slot)
		return -ENOMEM;
	*ret = *slot;
	return 0;
}

/* Returns the length of the next segment of a path: a name, "*" or "[]"; 0: none. */
static size_t next_segment(const char *at)
{
	if (at[0] == '[')
		return at[1] == ']' ? 2 : 0;
	return strcspn(at, ".[");
}

static bool may_hold(const struct schema_node *parent, bool elem)
{
	if (parent->declared)
		return parent->key.type == (elem ? RP_T_LIST : RP_T_MAP);
	return elem ? !parent->first && !parent->any : !parent->elem;
}

/* Returns the position in a key path after a segment: the end, "[]", or the name after a dot. NULL:
 * syntax error. */
static const char *skip_dot(const char *at)
{
	if (!*at || *at == '[')
		return at;
	return *at == '.' && at[1] && at[1] != '[' ? at + 1 : NULL;
}

/* Follows a row's path and makes missing nodes. */
static int schema_reach(struct arena *arena, struct schema_tree *tree, const char *path,
			struct schema_node **ret, struct err *err)
{
	struct schema_node *node = &tree->root;
	unsigned depth = 0;
	for (const char *at = path; !at || *at;) {
		size_t len = at ? next_segment(at) : 0;
		if (!len)
			return err_set(err, -EINVAL, "key table: \"%s\" is not a path", path);
		if (++depth > CONF_SCHEMA_DEPTH_MAX)
			return err_set(err, -EINVAL, "key table: \"%s\" has more than %u segments",
				       path, CONF_SCHEMA_DEPTH_MAX);
		bool elem = *at == '[';
		if (!may_hold(node, elem))
			return err_set(err, -EINVAL, "key table: the parent of \"%s\" is not a %s",
				       path, elem ? "list" : "map");
		if (elem)
			node->key.type = RP_T_LIST;
		if (child_of(arena, node, at, len, &node) < 0)
			return err_errno(err, -ENOMEM, "key table");
		at = skip_dot(at + len);
	}
	*ret = node;
	return 0;
}

static int copy_text(struct arena *arena, const char **text)
{
	if (!*text)
		return 0;
	*text = arena_strdup(arena, *text);
	return *text ? 0 : -ENOMEM;
}

/* Returns true for text that is valid in messages, pages and JSON. */
static bool is_text(const char *s)
{
	return !s || utf8_valid(s, strlen(s));
}

static int add_row(struct arena *arena, struct schema_tree *tree, struct rp_key row,
		   struct err *err)
{
	if (!row.path || !row.path[0])
		return err_set(err, -EINVAL, "key table: a row without a path");
	if (!row.type || row.type > TYPE_MAX)
		return err_set(err, -EINVAL, "key table: \"%s\" has the unknown type %u", row.path,
			       row.type);
	if (row.type == RP_T_ENUM && !row.choices)
		return err_set(err, -EINVAL, "key table: \"%s\" has no choices", row.path);
	if (row.type == RP_T_INT && row.min > row.max)
		return err_set(err, -EINVAL, "key table: the range of \"%s\" is empty", row.path);
	if (!is_text(row.path) || !is_text(row.choices) || !is_text(row.fallback) ||
	    !is_text(row.doc) || !is_text(row.expected))
		return err_set(err, -EINVAL, "key table: \"%s\" has texts that are not UTF-8",
			       is_text(row.path) ? row.path : "?");
	struct schema_node *node = NULL;
	int rc = schema_reach(arena, tree, row.path, &node, err);
	if (rc < 0)
		return rc;
	if (is_parent(node) || node->declared)
		return err_set(err, -EINVAL, "key table: \"%s\" is listed %s", row.path,
			       is_parent(node) ? "after its children" : "twice");
	row.path = node->key.path;
	if (!row.doc)
		row.doc = "";
	node->key = row;
	node->declared = true;
	if (copy_text(arena, &node->key.choices) < 0 || copy_text(arena, &node->key.fallback) < 0 ||
	    copy_text(arena, &node->key.doc) < 0 || copy_text(arena, &node->key.expected) < 0)
		return err_errno(err, -ENOMEM, "key table");
	return 0;
}

int schema_build(struct arena *arena, const struct rp_schema *schema, struct schema_tree **ret,
		 struct err *err)
{
	if (!RP_HAS(schema, n_keys) || (schema->n_keys && !schema->keys))
		return err_set(err, -EINVAL, "key table: not filled in");
	if (schema->n_keys > CONF_SCHEMA_KEYS_MAX)
		return err_set(err, -EINVAL, "key table: more than %u rows", CONF_SCHEMA_KEYS_MAX);
	if (row_size(schema) < ROW_MIN)
		return err_set(err, -EINVAL, "key table: rows of %u bytes are too short",
			       row_size(schema));
	struct schema_tree *tree = arena_zero(arena, struct schema_tree);
	if (!tree)
		return err_errno(err, -ENOMEM, "key table");
	tree->root.key = (struct rp_key){.path = "", .type = RP_T_MAP, .doc = ""};
	tree->root.declared = true;
	tree->fold = schema->flags & RP_SCHEMA_FOLD_CASE;
	tree->cr_kind = RP_HAS(schema, cr_kind) ? schema->cr_kind : NULL;
	if (copy_text(arena, &tree->cr_kind) < 0)
		return err_errno(err, -ENOMEM, "key table");
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		int rc = add_row(arena, tree, schema_row(schema, i), err);
		if (rc < 0)
			return rc;
	}
	*ret = tree;
	return 0;
}

int conf_schema_check(const struct rp_schema *schema, struct err *err)
{
	_arena_ struct arena *arena = arena_new(CONF_ARENA_BLOCK, CONF_ARENA_MAX);
	if (!arena)
		return err_errno(err, -ENOMEM, "key table");
	struct schema_tree *tree;
	return schema_build(arena, schema, &tree, err);
}

const struct schema_node *schema_child(const struct schema_node *map, const char *key, bool fold)
{
	for (const struct schema_node *c = map->first; c; c = c->next)
		if (str_eq(c->key.path, key))
			return c;
	for (const struct schema_node *c = fold ? map->first : NULL; c; c = c->next)
		if (strcasecmp(c->key.path, key) == 0)
			return c;
	return map->any;
}
