/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a configuration as YAML: active values, their origins, and defaults. */
#include "core/lib/conf/internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/lib/util/str.h"

struct show {
	const struct conf *conf;
	struct buf *out;
	unsigned flags;
};

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./%+=@:-"
#define PLAIN_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/"

/* ---- scalars --------------------------------------------------------------------------------- */

/* Returns true if the scalar needs no quotes, including in a list on one line. */
static bool can_be_plain(const char *s)
{
	size_t len = strlen(s);
	if (!len || strspn(s, PLAIN) != len || s[len - 1] == ':')
		return false;
	return strchr(PLAIN_FIRST, s[0]) || (strchr("-+.", s[0]) && s[1] >= '0' && s[1] <= '9');
}

static void add_char(struct buf *out, const char *s, unsigned len, uint32_t c)
{
	if (c == '"' || c == '\\')
		(void)buf_printf(out, "\\%c", (char)c);
	else if (c == '\n')
		(void)buf_add_str(out, "\\n");
	else if (c == '\t')
		(void)buf_add_str(out, "\\t");
	else if (c < 0x20 || c == 0x7f)
		(void)buf_printf(out, "\\x%02" PRIx32, c);
	else if (char_breaks(c) || !char_printable(c))
		(void)buf_printf(out, "\\u%04" PRIx32, c);
	else
		(void)buf_add(out, s, len);
}

static void add_quoted(struct buf *out, const char *s)
{
	(void)buf_add_str(out, "\"");
	for (size_t left = strlen(s); left;) {
		uint32_t c = 0;
		unsigned len = char_decode(s, left, &c);
		add_char(out, s, len, c);
		s += len;
		left -= len;
	}
	(void)buf_add_str(out, "\"");
}

static void add_text(struct buf *out, const char *s, bool quoted)
{
	if (!quoted && can_be_plain(s))
		(void)buf_add_str(out, s);
	else
		add_quoted(out, s);
}

bool show_is_flat(rp_cfg list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		rp_cfg item = list->members[i].node;
		if (node_is(item, RP_NODE_MAP) ||
		    (node_is(item, RP_NODE_LIST) && !show_is_flat(item)))
			return false;
	}
	return true;
}

void show_flow(struct buf *out, rp_cfg node)
{
	if (node_is(node, RP_NODE_NULL)) {
		(void)buf_add_str(out, "null");
		return;
	}
	if (node_is(node, RP_NODE_SCALAR)) {
		add_text(out, node->text, node->quoted);
		return;
	}
	bool map = node_is(node, RP_NODE_MAP);
	(void)buf_add_str(out, map ? "{" : "[");
	for (uint32_t i = 0; i < node->n; i++) {
		(void)buf_add_str(out, i ? ", " : "");
		if (map) {
			add_text(out, node->members[i].key, false);
			(void)buf_add_str(out, ": ");
		}
		show_flow(out, node->members[i].node);
	}
	(void)buf_add_str(out, map ? "}" : "]");
}

const char *conf_flow(rp_cfg node, char *buf, size_t size)
{
	struct buf text = BUF_INIT;
	if (node_is(node, RP_NODE_SCALAR))
		(void)buf_add_str(&text, *node->text ? node->text : "\"\"");
	else if (node)
		show_flow(&text, node);
	else
		(void)buf_add_str(&text, "(not set)");
	bool whole = buf_len(&text) < size;
	size_t len = whole ? buf_len(&text) : utf8_cut(buf_text(&text), size - sizeof "…");
	(void)snprintf(buf, size, "%.*s%s", (int)len, buf_text(&text), whole ? "" : "…");
	buf_fini(&text);
	return buf;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void show_indent(const struct show *s, unsigned by)
{
	(void)buf_printf(s->out, "%*s", (int)by, "");
}

static void end_line(const struct show *s, rp_cfg node)
{
	if ((s->flags & CONF_SHOW_ORIGIN) && node && node->file) {
		(void)buf_add_str(s->out, "  # ");
		for (const char *p = node->file->name; *p; p++)
			(void)buf_add(s->out, (uint8_t)*p < 0x20 ? "?" : p, 1);
		(void)buf_printf(s->out, ":%" PRIu32, node->line);
	}
	(void)buf_add_str(s->out, "\n");
}

static void show_members(const struct show *s, rp_cfg map, const struct schema_node *schema,
			 unsigned by, bool inlined);

/* ---- defaults -------------------------------------------------------------------------------- */

static bool has_defaults(const struct schema_node *schema)
{
	if (schema->key.fallback)
		return true;
	for (const struct schema_node *c = schema->first; c; c = c->next)
		if (has_defaults(c))
			return true;
	return false;
}

static void show_default(const struct show *s, const struct schema_node *schema, unsigned by)
{
	const struct rp_key *key = &schema->key;
	if (!has_defaults(schema))
		return;
	show_indent(s, by);
	if (!key->fallback) {
		add_text(s->out, key->path, false);
		(void)buf_add_str(s->out, ":  # default\n");
		for (const struct schema_node *c = schema->first; c; c = c->next)
			show_default(s, c, by + 2);
		return;
	}
	bool collection = key->type == RP_T_LIST || key->type == RP_T_MAP || key->type == RP_T_ANY;
	bool usable = collection ? strchr("[{", key->fallback[0]) != NULL
				 : value_fits(key->fallback, key);
	/* Defaults that are explanations ("as pinCPU") are commented out. */
	(void)buf_add_str(s->out, usable ? "" : "# ");
	add_text(s->out, key->path, false);
	(void)buf_add_str(s->out, ": ");
	if (collection || !usable)
		(void)buf_add_str(s->out, key->fallback);
	else
		add_text(s->out, key->fallback, false);
	(void)buf_add_str(s->out, "  # default\n");
}

static bool wants_defaults(const struct show *s, const struct schema_node *schema)
{
	return (s->flags & CONF_SHOW_DEFAULTS) && schema && schema->key.type == RP_T_MAP;
}

/* Returns true for a null whose key the table names. Elsewhere the presence of a key may have a
 * meaning. */
static bool is_left_out(const struct conf_member *m, const struct schema_node *schema)
{
	if (!node_is(m->node, RP_NODE_NULL) || schema_open(schema))
		return false;
	const struct schema_node *child = schema_child(schema, m->key, false);
	return child && child != schema->any;
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Returns true if show_members will write at least one line. */
static bool has_lines(const struct show *s, rp_cfg map, const struct schema_node *schema)
{
	for (uint32_t i = 0; i < map->n; i++)
		if (!is_left_out(&map->members[i], schema))
			return true;
	for (const struct schema_node *c = wants_defaults(s, schema) ? schema->first : NULL; c;
	     c = c->next)
		if (!node_set(map, c->key.path) && has_defaults(c))
			return true;
	return false;
}

static void show_list(const struct show *s, rp_cfg list, const struct schema_node *schema,
		      unsigned by)
{
	const struct schema_node *elem = schema ? schema->elem : NULL;
	for (uint32_t i = 0; i < list->n; i++) {
		rp_cfg item = list->members[i].node;
		show_indent(s, by);
		(void)buf_add_str(s->out, "-");
		if (node_is(item, RP_NODE_MAP) && has_lines(s, item, elem)) {
			(void)buf_add_str(s->out, " ");
			show_members(s, item, elem, by + 2, true);
		} else if (node_is(item, RP_NODE_MAP)) {
			(void)buf_add_str(s->out, " {}");
			end_line(s, item);
		} else if (node_is(item, RP_NODE_LIST) && !show_is_flat(item)) {
			end_line(s, item);
			show_list(s, item, elem, by + 2);
		} else {
			(void)buf_add_str(s->out, " ");
			show_flow(s->out, item);
			end_line(s, item);
		}
	}
}

/* Writes "key: value" and the members below; the indentation has been written already. */
static void show_member(const struct show *s, const char *key, rp_cfg node,
			const struct schema_node *schema, unsigned by)
{
	add_text(s->out, key, false);
	(void)buf_add_str(s->out, ":");
	if (node_is(node, RP_NODE_MAP)) {
		bool lines = has_lines(s, node, schema);
		(void)buf_add_str(s->out, lines ? "" : " {}");
		end_line(s, node);
		if (lines)
			show_members(s, node, schema, by + 2, false);
		return;
	}
	if (node_is(node, RP_NODE_LIST) && !show_is_flat(node)) {
		end_line(s, node);
		show_list(s, node, schema, by);
		return;
	}
	(void)buf_add_str(s->out, " ");
	show_flow(s->out, node);
	end_line(s, node);
}

static void show_members(const struct show *s, rp_cfg map, const struct schema_node *schema,
			 unsigned by, bool inlined)
{
	bool open = schema_open(schema);
	for (uint32_t i = 0; i < map->n; i++) {
		const struct conf_member *m = &map->members[i];
		if (is_left_out(m, schema))
			continue;
		show_indent(s, inlined ? 0 : by);
		inlined = false;
		show_member(s, m->key, m->node, open ? NULL : schema_child(schema, m->key, false),
			    by);
	}
	for (const struct schema_node *c = wants_defaults(s, schema) ? schema->first : NULL; c;
	     c = c->next) {
		if (node_set(map, c->key.path) || !has_defaults(c))
			continue;
		show_default(s, c, inlined ? 0 : by);
		inlined = false;
	}
}

/* ---- the whole configuration ----------------------------------------------------------------- */

static void show_core(const struct show *s)
{
	const struct schema_node *core = &s->conf->schema->root;
	for (const struct schema_node *c = core->first; c; c = c->next) {
		rp_cfg node = node_set(s->conf->root, c->key.path);
		if (node)
			show_member(s, c->key.path, node, c, 0);
		else if (s->flags & CONF_SHOW_DEFAULTS)
			show_default(s, c, 0);
	}
}

/* Writes the defaults of a module in use without a section. */
static void show_missing(const struct show *s, const char *module)
{
	const struct schema_tree *tree = conf_schema_of(s->conf, module);
	const struct rp_cfg_node empty = {.kind = RP_NODE_MAP};
	if (tree && !conf_section(s->conf, module) && has_lines(s, &empty, &tree->root))
		show_member(s, module, &empty, &tree->root, 0);
}

int conf_show(const struct conf *conf, unsigned flags, struct buf *out)
{
	struct show s = {.conf = conf, .out = out, .flags = flags};
	show_core(&s);
	for (uint32_t i = 0; i < conf->root->n; i++) {
		const struct conf_member *m = &conf->root->members[i];
		const struct schema_tree *tree = conf_schema_of(conf, m->key);
		if (!core_key(m->key) && !node_is(m->node, RP_NODE_NULL))
			show_member(&s, m->key, m->node, tree ? &tree->root : NULL, 0);
	}
	if (flags & CONF_SHOW_DEFAULTS) {
		show_missing(&s, conf->core.policy);
		for (unsigned i = 0; i < conf->core.n_controllers; i++)
			if (!str_eq(conf->core.controllers[i].name, conf->core.policy))
				show_missing(&s, conf->core.controllers[i].name);
	}
	return out->failed;
}
