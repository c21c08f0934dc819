/* SPDX-License-Identifier: Apache-2.0 */
/* The tree: nodes, members, places, and the getters that do not depend on types. */
#include "core/lib/conf/internal.h"

#include <stdio.h>

#include "core/lib/util/str.h"
#include "core/lib/util/getter.h"

struct rp_cfg_node *node_new(struct arena *arena, uint32_t kind, const struct conf_file *file)
{
	struct rp_cfg_node *node = arena_zero(arena, struct rp_cfg_node);
	if (!node)
		return NULL;
	node->kind = (uint8_t)kind;
	node->file = file;
	return node;
}

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

int node_append(struct arena *arena, struct rp_cfg_node *parent, const char *key,
		struct rp_cfg_node *child)
{
	if (parent->n == parent->cap) {
		uint32_t cap = parent->cap ? parent->cap * 2 : 4;
		struct conf_member *grown = arena_array(arena, cap, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		if (parent->n)
			memcpy(grown, parent->members, parent->n * sizeof *grown);
		parent->members = grown;
		parent->cap = cap;
	}
	parent->members[parent->n++] = (struct conf_member){key, key ? hash_text(key) : 0, child};
	return 0;
}

static struct conf_member *member_of(const struct rp_cfg_node *map, const char *key)
{
	uint32_t hash = hash_text(key);
	for (uint32_t i = 0; i < map->n; i++) {
		struct conf_member *m = &map->members[i];
		if (m->hash == hash && str_eq(m->key, key))
			return m;
	}
	return NULL;
}

struct conf_member *node_member(const struct rp_cfg_node *map, const char *key)
{
	return node_is(map, RP_NODE_MAP) ? member_of(map, key) : NULL;
}

struct rp_cfg_node *node_child(const struct rp_cfg_node *map, const char *key)
{
	const struct conf_member *m = node_member(map, key);
	return m ? m->node : NULL;
}

struct rp_cfg_node *node_set(const struct rp_cfg_node *map, const char *key)
{
	struct rp_cfg_node *node = node_child(map, key);
	return node_is(node, RP_NODE_NULL) ? NULL : node;
}

void node_remove(struct rp_cfg_node *map, const struct conf_member *member)
{
	uint32_t i = (uint32_t)(member - map->members);
	memmove(&map->members[i], &map->members[i + 1], (map->n - i - 1) * sizeof *map->members);
	map->n--;
}

void node_rename(struct conf_member *member, const char *key)
{
	member->key = key;
	member->hash = hash_text(key);
}

/* ---- getters --------------------------------------------------------------------------------- */

DEFINE_GETTER_OF(conf_kind, uint32_t, rp_cfg node, node ? node->kind : RP_NODE_NULL)

#define SEGMENT_MAX 256

rp_cfg conf_get(rp_cfg node, const char *path)
{
	while (node_is(node, RP_NODE_MAP)) {
		rp_cfg child = node_child(node, path);
		const char *dot = strchr(path, '.');
		if (child || !dot)
			return child;
		char segment[SEGMENT_MAX];
		size_t len = (size_t)(dot - path);
		if (len >= sizeof segment)
			return NULL;
		memcpy(segment, path, len);
		segment[len] = '\0';
		node = node_child(node, segment);
		path = dot + 1;
	}
	return NULL;
}

uint32_t conf_count(rp_cfg node)
{
	return node_is(node, RP_NODE_LIST) || node_is(node, RP_NODE_MAP) ? node->n : 0;
}

rp_cfg conf_item(rp_cfg node, uint32_t i)
{
	return i < conf_count(node) ? node->members[i].node : NULL;
}

const char *conf_key(rp_cfg node, uint32_t i)
{
	return node_is(node, RP_NODE_MAP) && i < node->n ? node->members[i].key : "";
}

const char *conf_text(rp_cfg node, const char *fallback)
{
	return node_is(node, RP_NODE_SCALAR) ? node->text : fallback;
}

DEFINE_GETTER_OF(conf_quoted, bool, rp_cfg node, node && node->quoted)
DEFINE_GETTER_OF(conf_line, uint32_t, rp_cfg node, node ? node->line : 0)

/* ---- places ---------------------------------------------------------------------------------- */

struct text {
	char *buf;
	size_t size, len; /* len stays below size */
};

static struct text text_of(char *buf, size_t size)
{
	if (size)
		buf[0] = '\0';
	return (struct text){buf, size, 0};
}

#define PIECE_MAX (2 * CONF_PLACE_MAX) /* largest text that one text_add adds, in bytes */

__attribute__((format(printf, 2, 3))) static void text_add(struct text *t, const char *fmt, ...)
{
	if (t->len + 1 >= t->size)
		return;
	/* The buffer has four bytes more than are used, so that utf8_cut sees the whole character
	 * at the cut. */
	char piece[PIECE_MAX + 5];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(piece, sizeof piece, fmt, ap);
	va_end(ap);
	size_t room = t->size - t->len - 1;
	size_t len = n < 0 ? 0 : utf8_cut(piece, room < PIECE_MAX ? room : PIECE_MAX);
	memcpy(t->buf + t->len, piece, len);
	t->len += len;
	t->buf[t->len] = '\0';
}

static void add_where(struct text *t, rp_cfg node)
{
	if (!node || !node->file)
		return;
	text_add(t, "%s", node->file->name);
	if (node->line && !node->file->object)
		text_add(t, ":%u:%u", node->line, node->column);
}

static void add_path(struct text *t, rp_cfg node)
{
	rp_cfg chain[CONF_DEPTH_MAX + 2];
	unsigned n = 0;
	for (rp_cfg at = node; at && n < sizeof chain / sizeof chain[0]; at = at->parent)
		chain[n++] = at;
	bool first = true;
	while (n--) {
		if (chain[n]->written)
			text_add(t, "%s%s", first ? "" : ".", chain[n]->written);
		else if (chain[n]->parent)
			text_add(t, "[%u]", chain[n]->index);
		else
			continue;
		first = false;
	}
}

const char *conf_where(rp_cfg node, char *buf, size_t size)
{
	struct text t = text_of(buf, size);
	add_where(&t, node);
	return buf;
}

const char *conf_path(rp_cfg node, char *buf, size_t size)
{
	struct text t = text_of(buf, size);
	add_path(&t, node);
	return buf;
}

const char *conf_place(rp_cfg node, char *buf, size_t size)
{
	struct text t = text_of(buf, size);
	add_where(&t, node);
	char path[CONF_PLACE_MAX];
	conf_path(node, path, sizeof path);
	if (path[0])
		text_add(&t, "%s%s", t.len ? ": " : "", path);
	return buf;
}

/* Adds a text in quotes, on one line, shortened. */
static void add_quoted(struct text *t, const char *s)
{
	size_t len = utf8_cut(s, CONF_FOUND_MAX);
	text_add(t, "\"");
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\n')
			text_add(t, "\\n");
		else if (s[i] == '\t')
			text_add(t, "\\t");
		else if (s[i] == '"' || s[i] == '\\')
			text_add(t, "\\%c", s[i]);
		else if ((uint8_t)s[i] < 0x20 || s[i] == 0x7f)
			text_add(t, "\\x%02x", (uint8_t)s[i]);
		else
			text_add(t, "%c", s[i]);
	}
	text_add(t, "%s\"", s[len] ? "…" : "");
}

const char *node_found(rp_cfg node, char *buf, size_t size)
{
	struct text t = text_of(buf, size);
	switch (conf_kind(node)) {
	case RP_NODE_SCALAR:
		add_quoted(&t, node->text);
		break;
	case RP_NODE_LIST:
		text_add(&t, "a list");
		break;
	case RP_NODE_MAP:
		text_add(&t, "a map");
		break;
	default:
		text_add(&t, "nothing");
	}
	return buf;
}
