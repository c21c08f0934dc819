/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the changes between two configurations. */
#include "core/lib/conf/internal.h"

#include <stdio.h>

#include "core/lib/util/str.h"

struct diff {
	int (*fn)(const struct conf_change *change, void *arg);
	void *arg;
	char path[CONF_PLACE_MAX];
	size_t len;
};

/* A key in both trees, with its row. */
struct pair {
	rp_cfg before, after; /* values in the two configurations; NULL: the key is not set */
	const struct schema_node *schema;
	bool restart;
	bool named; /* the table names the key; otherwise its presence is meaningful, too */
};

static int diff_pair(struct diff *d, const struct pair *p);

static int diff_report(struct diff *d, const struct pair *p)
{
	struct conf_change change = {
		.path = d->path, .before = p->before, .after = p->after, .restart = p->restart};
	return d->fn(&change, d->arg);
}

__attribute__((format(printf, 3, 4))) static int diff_below(struct diff *d, const struct pair *p,
							    const char *fmt, ...)
{
	size_t len = d->len;
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(d->path + len, sizeof d->path - len, fmt, ap);
	va_end(ap);
	d->len = strlen(d->path);
	int rc = diff_pair(d, p);
	d->len = len;
	d->path[len] = '\0';
	return rc;
}

static int diff_member(struct diff *d, const struct pair *maps, const char *key,
		       const struct schema_node *schema)
{
	struct pair p = {.before = node_child(maps->before, key),
			 .after = node_child(maps->after, key),
			 .schema = schema,
			 .restart = maps->restart,
			 .named = schema && !str_eq(schema->key.path, "*")};
	return diff_below(d, &p, d->len ? ".%s" : "%s", key);
}

/* Compares the members of a map that the schema does not name, except the members of `seen`. */
static int diff_others(struct diff *d, const struct pair *maps, rp_cfg map, rp_cfg seen)
{
	const struct schema_node *s = schema_open(maps->schema) ? NULL : maps->schema;
	for (uint32_t i = 0; i < conf_count(map); i++) {
		const char *key = map->members[i].key;
		const struct schema_node *child = s ? schema_child(s, key, false) : NULL;
		if ((child && child != s->any) || node_child(seen, key))
			continue;
		int rc = diff_member(d, maps, key, child);
		if (rc)
			return rc;
	}
	return 0;
}

static int diff_maps(struct diff *d, const struct pair *p)
{
	const struct schema_node *first = schema_open(p->schema) ? NULL : p->schema->first;
	for (const struct schema_node *c = first; c; c = c->next) {
		int rc = diff_member(d, p, c->key.path, c);
		if (rc)
			return rc;
	}
	int rc = diff_others(d, p, p->before, NULL);
	return rc ? rc : diff_others(d, p, p->after, p->before);
}

/* Returns the member of a list of maps with that name. */
static rp_cfg named_member(rp_cfg list, const char *name)
{
	for (uint32_t i = 0; *name && i < list->n; i++)
		if (str_eq(conf_text(node_child(list->members[i].node, "name"), ""), name))
			return list->members[i].node;
	return NULL;
}

static bool all_named(rp_cfg list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		rp_cfg item = list->members[i].node;
		const char *name =
			conf_text(node_is(item, RP_NODE_MAP) ? node_child(item, "name") : NULL, "");
		if (named_member(list, name) != item)
			return false;
	}
	return true;
}

/* Compares lists of named maps of which some were added or removed. */
static int diff_named(struct diff *d, const struct pair *p)
{
	const struct schema_node *elem = p->schema ? p->schema->elem : NULL;
	for (unsigned side = 0; side < 2; side++) {
		rp_cfg list = side ? p->after : p->before;
		for (uint32_t i = 0; i < list->n; i++) {
			const char *name = conf_text(node_child(list->members[i].node, "name"), "");
			struct pair item = {.before = named_member(p->before, name),
					    .after = named_member(p->after, name),
					    .schema = elem,
					    .restart = p->restart};
			int rc = side && item.before ? 0 : diff_below(d, &item, "[%s]", name);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int diff_lists(struct diff *d, const struct pair *p)
{
	if (p->before->n != p->after->n && all_named(p->before) && all_named(p->after))
		return diff_named(d, p);
	if (p->before->n != p->after->n)
		return diff_report(d, p);
	for (uint32_t i = 0; i < p->before->n; i++) {
		struct pair item = {.before = p->before->members[i].node,
				    .after = p->after->members[i].node,
				    .schema = p->schema ? p->schema->elem : NULL,
				    .restart = p->restart};
		int rc = diff_below(d, &item, "[%u]", (unsigned)i);
		if (rc)
			return rc;
	}
	return 0;
}

/* Returns true if a list or a scalar equals its default. */
static bool is_default(rp_cfg node, const struct schema_node *schema)
{
	const char *fallback = schema ? schema->key.fallback : NULL;
	if (!fallback)
		return false;
	if (node_is(node, RP_NODE_SCALAR))
		return value_equal(node->text, fallback, schema->key.type);
	if (!show_is_flat(node))
		return false;
	struct buf text = BUF_INIT;
	show_flow(&text, node);
	bool same = str_eq(buf_text(&text), fallback);
	buf_fini(&text);
	return same;
}

static bool could_be(rp_cfg node, uint32_t kind)
{
	return !node || node_is(node, kind);
}

static int diff_pair(struct diff *d, const struct pair *pair)
{
	struct pair p = *pair;
	if (p.named && node_is(p.before, RP_NODE_NULL))
		p.before = NULL;
	if (p.named && node_is(p.after, RP_NODE_NULL))
		p.after = NULL;
	if (conf_kind(p.before) == RP_NODE_NULL && conf_kind(p.after) == RP_NODE_NULL &&
	    !p.before == !p.after)
		return 0;
	if (p.schema && (p.schema->key.flags & RP_KEY_RESTART))
		p.restart = true;
	bool both = p.before && p.after;
	if (could_be(p.before, RP_NODE_MAP) && could_be(p.after, RP_NODE_MAP) && (both || p.named))
		return diff_maps(d, &p);
	if (!both) {
		rp_cfg set = p.before ? p.before : p.after;
		return is_default(set, p.schema) ? 0 : diff_report(d, &p);
	}
	if (node_is(p.before, RP_NODE_LIST) && node_is(p.after, RP_NODE_LIST))
		return diff_lists(d, &p);
	if (node_is(p.before, RP_NODE_SCALAR) && node_is(p.after, RP_NODE_SCALAR) &&
	    value_equal(p.before->text, p.after->text, p.schema ? p.schema->key.type : RP_T_ANY))
		return 0;
	return diff_report(d, &p);
}

static int diff_sections(struct diff *d, const struct conf *before, const struct conf *after,
			 rp_cfg of, rp_cfg seen)
{
	for (uint32_t i = 0; i < of->n; i++) {
		const char *key = of->members[i].key;
		if (core_key(key) || node_child(seen, key))
			continue;
		const struct schema_tree *tree = conf_schema_of(after, key);
		if (!tree)
			tree = conf_schema_of(before, key);
		struct pair section = {.before = node_set(before->root, key),
				       .after = node_set(after->root, key),
				       .schema = tree ? &tree->root : NULL,
				       .named = tree != NULL};
		int rc = diff_below(d, &section, "%s", key);
		if (rc)
			return rc;
	}
	return 0;
}

int conf_diff(const struct conf *before, const struct conf *after,
	      int (*fn)(const struct conf_change *change, void *arg), void *arg)
{
	struct diff d = {.fn = fn, .arg = arg};
	struct pair roots = {.before = before->root, .after = after->root};
	for (const struct schema_node *c = after->schema->root.first; c; c = c->next) {
		int rc = diff_member(&d, &roots, c->key.path, c);
		if (rc)
			return rc;
	}
	int rc = diff_sections(&d, before, after, before->root, NULL);
	return rc ? rc : diff_sections(&d, before, after, after->root, before->root);
}
