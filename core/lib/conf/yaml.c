/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a YAML stream into trees, from libyaml's events. The text is first searched for characters
 * and constructs that do not belong into a configuration, so that messages about them have a place
 * and plain words. Aliases become copies of their anchors, counted like everything else. Merge
 * keys, complex keys and tags other than those of text, lists and maps are refused.
 */
#include "core/lib/conf/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <yaml.h>

#include "core/lib/util/str.h"

struct anchor {
	const char *name;
	struct rp_cfg_node *node;
};

/* A list or map under construction. */
struct frame {
	struct rp_cfg_node *node;
	const char *key; /* key of a map whose value is next */
	uint32_t line, column; /* place of the key */
};

struct reader {
	struct arena *arena;
	const struct conf_source *source;
	const struct conf_file *file;
	struct conf_docs *docs;
	struct conf_errors *errs;
	struct frame stack[CONF_DEPTH_MAX];
	unsigned depth;
	struct rp_cfg_node *root;
	struct anchor anchors[CONF_ANCHORS_MAX];
	unsigned n_anchors;
};

/* ---- places, from 1 -------------------------------------------------------------------------- */

/* Converts a line or column of the text, counted from 0. The added key of a `keyed` source is
 * reported as the first character of the user's text. */
static uint32_t place_of(const struct reader *r, size_t from_0)
{
	return (uint32_t)from_0 + (r->source->keyed && from_0 > 0 ? 0 : 1);
}

/* ---- characters ------------------------------------------------------------------------------ */

unsigned char_decode(const char *s, size_t n, uint32_t *ret)
{
	const uint8_t *u = (const uint8_t *)s;
	unsigned len = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (len > n || !utf8_valid(s, len))
		return 0;
	uint32_t c = len == 1 ? u[0] : u[0] & (0x7fu >> len);
	for (unsigned i = 1; i < len; i++)
		c = c << 6 | (u[i] & 0x3fu);
	*ret = c;
	return len;
}

bool char_breaks(uint32_t c)
{
	return c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool char_printable(uint32_t c)
{
	if (c < 0xa0)
		return c == '\t' || c == '\n' || c == '\r' || c == 0x85 || (c >= 0x20 && c < 0x7f);
	return c != 0xfeff && c != 0xfffe && c != 0xffff;
}

static int check_bytes(const struct reader *r)
{
	const char *s = r->source->text;
	size_t n = r->source->len;
	if (n > CONF_FILE_MAX)
		return problem_at(r->errs, r->file, 0, 0, "larger than %u bytes", CONF_FILE_MAX);
	if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
		return problem_at(r->errs, r->file, 1, 1,
				  "starts with a byte order mark; save it as UTF-8 without one");
	if (n >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0))
		return problem_at(r->errs, r->file, 1, 1, "is UTF-16; save it as UTF-8");
	size_t line = 0, column = 0;
	for (size_t i = 0; i < n;) {
		uint32_t c;
		unsigned len = char_decode(s + i, n - i, &c);
		if (!len)
			return problem_at(r->errs, r->file, place_of(r, line), place_of(r, column),
					  "byte 0x%02x is not valid UTF-8", (uint8_t)s[i]);
		if (!c)
			return problem_at(r->errs, r->file, place_of(r, line), place_of(r, column),
					  "a NUL byte; this is not a text file");
		if (!char_printable(c))
			return problem_at(r->errs, r->file, place_of(r, line), place_of(r, column),
					  "character U+%04X is not allowed", c);
		column++;
		if (char_breaks(c) && !(c == '\r' && i + 1 < n && s[i + 1] == '\n')) {
			line++;
			column = 0;
		}
		i += len;
	}
	return 0;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((uint8_t)*s < 0x20 || *s == 0x7f ||
		    ((uint8_t)*s == 0xc2 && (uint8_t)s[1] < 0xa0))
			return true;
	return false;
}

/* Returns true if the indentation of this line (from 0) contains a tab. */
static bool tab_indents(const struct conf_source *source, size_t line)
{
	const char *s = source->text, *end = s + source->len;
	while (line-- && s) {
		s = memchr(s, '\n', (size_t)(end - s));
		if (s)
			s++;
	}
	while (s && s < end && *s == ' ')
		s++;
	return s && s < end && *s == '\t';
}

/* ---- placing nodes --------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static int yaml_fail(const struct reader *r,
							   const yaml_mark_t *mark, const char *fmt,
							   ...)
{
	char text[CONF_PROBLEM_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return problem_at(r->errs, r->file, place_of(r, mark->line), place_of(r, mark->column),
			  "%s", text);
}

static struct frame *yaml_top(struct reader *r)
{
	return r->depth ? &r->stack[r->depth - 1] : NULL;
}

static bool key_is_next(struct reader *r)
{
	const struct frame *f = yaml_top(r);
	return f && f->node->kind == RP_NODE_MAP && !f->key;
}

/* Creates a node below the current one, not yet as its member. */
static int yaml_make(struct reader *r, uint32_t kind, const yaml_mark_t *mark,
		     struct rp_cfg_node **ret)
{
	if (r->docs->n_nodes >= CONF_NODES_MAX)
		return yaml_fail(r, mark, "more than %u values in the configuration",
				 CONF_NODES_MAX);
	struct rp_cfg_node *node = node_new(r->arena, kind, r->file);
	if (!node)
		return -ENOMEM;
	r->docs->n_nodes++;
	const struct frame *f = yaml_top(r);
	if (f) {
		node->parent = f->node;
		node->written = f->key;
		node->index = f->node->n;
	}
	node->line = f && f->key ? f->line : place_of(r, mark->line);
	node->column = f && f->key ? f->column : place_of(r, mark->column);
	*ret = node;
	return 0;
}

static int yaml_attach(struct reader *r, struct rp_cfg_node *node)
{
	struct frame *f = yaml_top(r);
	if (!f) {
		r->root = node;
		return 0;
	}
	const char *key = f->key;
	f->key = NULL;
	if (!key)
		return node_append(r->arena, f->node, NULL, node);
	const struct rp_cfg_node *twin = node_child(f->node, key);
	if (twin) {
		(void)problem_node(r->errs, node, NULL, "set twice, first at %s:%u:%u",
				   r->file->name, twin->line, twin->column);
		return 0;
	}
	if (f->node->n >= CONF_MEMBERS_MAX)
		return problem_node(r->errs, node, NULL, "more than %u keys in a map",
				    CONF_MEMBERS_MAX);
	return node_append(r->arena, f->node, key, node);
}

static int add_anchor(struct reader *r, const yaml_char_t *name, struct rp_cfg_node *node,
		      const yaml_mark_t *mark)
{
	if (!name)
		return 0;
	if (r->n_anchors == CONF_ANCHORS_MAX)
		return yaml_fail(r, mark, "more than %u anchors in a document", CONF_ANCHORS_MAX);
	char *copy = arena_strdup(r->arena, (const char *)name);
	if (!copy)
		return -ENOMEM;
	r->anchors[r->n_anchors++] = (struct anchor){copy, node};
	return 0;
}

/* ---- lines that lack a colon ----------------------------------------------------------------- */

/* Parses a line such as "policy static" or "policy:static": returns the length of its key, and
 * where the value begins; 0: another line. */
static size_t lost_colon(const char *line, size_t len, size_t *ret_value)
{
	size_t at = 0;
	while (at < len && line[at] == ' ')
		at++;
	size_t key = at;
	while (at < len && (isalnum((unsigned char)line[at]) || line[at] == '-'))
		at++;
	size_t end = at;
	if (end == key || line[key] == '-')
		return 0;
	if (at < len && line[at] == ':')
		at++;
	else
		while (at < len && line[at] == ' ')
			at++;
	if (at == end || at >= len || line[at] == ' ' || line[at] == '#' || line[at] == ':' ||
	    memmem(line + at, len - at, ": ", 2) || line[len - 1] == ':')
		return 0;
	*ret_value = at;
	return end;
}

/* Reports the last such line up to `last` (from 0), if only lines like it are between, because the
 * parser notices the error late. True: it was reported. */
static bool tell_lost_colon(const struct reader *r, size_t last)
{
	const char *s = r->source->text, *end = s + r->source->len, *found = NULL;
	size_t line = 0, found_line = 0, found_len = 0, key = 0, value = 0;
	for (; s < end && line <= last; line++) {
		const char *eol = memchr(s, '\n', (size_t)(end - s));
		size_t len = eol ? (size_t)(eol - s) : (size_t)(end - s), at;
		size_t k = lost_colon(s, len, &at);
		if (k && line + 2 > last) {
			found = s;
			found_line = line;
			found_len = len;
			key = k;
			value = at;
		}
		s += len + (eol != NULL);
	}
	if (!found || found_len > CONF_KEY_MAX)
		return false;
	size_t indent = strspn(found, " ");
	(void)problem_at(r->errs, r->file, place_of(r, found_line), place_of(r, indent),
			 "\"%.*s\" has no key: write a colon and a blank, \"%.*s: %.*s\"",
			 (int)(found_len - indent), found + indent, (int)(key - indent),
			 found + indent, (int)(found_len - value), found + value);
	return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int refuse_tag(const struct reader *r, const yaml_mark_t *mark, const char *tag)
{
	return yaml_fail(r, mark, "tags are not supported, found %.*s",
			 (int)utf8_cut(tag, CONF_FOUND_MAX), tag);
}

static bool tag_fits(const yaml_char_t *tag, const char *wanted)
{
	return !tag || str_eq((const char *)tag, wanted);
}

static int read_key(struct reader *r, const yaml_event_t *e)
{
	struct frame *f = yaml_top(r);
	const char *text = (const char *)e->data.scalar.value;
	bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (!text[0])
		return yaml_fail(r, &e->start_mark, "an empty key");
	if (strlen(text) > CONF_KEY_MAX)
		return yaml_fail(r, &e->start_mark, "a key longer than %u bytes", CONF_KEY_MAX);
	if (strlen(text) != e->data.scalar.length || has_control(text))
		return yaml_fail(r, &e->start_mark, "a control character in a key");
	if (plain && str_eq(text, "<<"))
		return yaml_fail(r, &e->start_mark,
				 "merge keys (<<) are not supported; repeat the keys");
	f->key = arena_strdup(r->arena, text);
	f->line = place_of(r, e->start_mark.line);
	f->column = place_of(r, e->start_mark.column);
	return f->key ? 0 : -ENOMEM;
}

static bool is_null(const char *s)
{
	return !s[0] || str_eq(s, "~") || str_eq(s, "null") || str_eq(s, "Null") ||
	       str_eq(s, "NULL");
}

static int read_scalar(struct reader *r, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value,
		   *tag = (const char *)e->data.scalar.tag;
	if (tag && !str_eq(tag, "!") && !str_eq(tag, YAML_STR_TAG))
		return refuse_tag(r, &e->start_mark, tag);
	if (key_is_next(r))
		return read_key(r, e);
	if (strlen(text) != e->data.scalar.length)
		return yaml_fail(r, &e->start_mark, "a NUL character in a value");
	bool quoted = tag || e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	bool null = !quoted && is_null(text);
	struct rp_cfg_node *node;
	int rc = yaml_make(r, null ? RP_NODE_NULL : RP_NODE_SCALAR, &e->start_mark, &node);
	if (rc < 0)
		return rc;
	node->quoted = quoted;
	if (!null) {
		node->text = arena_strdup(r->arena, text);
		if (!node->text)
			return -ENOMEM;
	}
	rc = add_anchor(r, e->data.scalar.anchor, node, &e->start_mark);
	return rc < 0 ? rc : yaml_attach(r, node);
}

static int read_start(struct reader *r, const yaml_event_t *e)
{
	bool map = e->type == YAML_MAPPING_START_EVENT;
	const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
	const yaml_char_t *anchor =
		map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
	if (key_is_next(r))
		return yaml_fail(r, &e->start_mark, "a key must be a word, found %s",
				 map ? "a map" : "a list");
	if (!tag_fits(tag, map ? YAML_MAP_TAG : YAML_SEQ_TAG))
		return refuse_tag(r, &e->start_mark, (const char *)tag);
	if (r->depth == CONF_DEPTH_MAX)
		return yaml_fail(r, &e->start_mark, "nested deeper than %u levels", CONF_DEPTH_MAX);
	struct rp_cfg_node *node;
	int rc = yaml_make(r, map ? RP_NODE_MAP : RP_NODE_LIST, &e->start_mark, &node);
	if (rc == 0)
		rc = add_anchor(r, anchor, node, &e->start_mark);
	if (rc == 0)
		rc = yaml_attach(r, node);
	if (rc == 0)
		r->stack[r->depth++] = (struct frame){.node = node};
	return rc;
}

/* Copies the value of a node (kind, text, children). The parent, index, line and column of `to` are
 * not changed. */
static int copy_into(struct reader *r, struct rp_cfg_node *to, const struct rp_cfg_node *from,
		     unsigned depth, const yaml_mark_t *mark)
{
	to->kind = from->kind;
	to->quoted = from->quoted;
	if (from->kind == RP_NODE_SCALAR)
		to->text = from->text;
	if (from->kind != RP_NODE_LIST && from->kind != RP_NODE_MAP)
		return 0;
	if (depth == CONF_DEPTH_MAX)
		return yaml_fail(r, mark, "nested deeper than %u levels", CONF_DEPTH_MAX);
	for (uint32_t i = 0; i < from->n; i++) {
		const struct conf_member *m = &from->members[i];
		struct rp_cfg_node *child;
		int rc = yaml_make(r, RP_NODE_NULL, mark, &child);
		if (rc < 0)
			return rc;
		child->line = m->node->line;
		child->column = m->node->column;
		child->parent = to;
		child->written = m->node->written;
		child->index = i;
		rc = copy_into(r, child, m->node, depth + 1, mark);
		if (rc == 0)
			rc = node_append(r->arena, to, m->key, child);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_alias(struct reader *r, const yaml_event_t *e)
{
	const char *name = (const char *)e->data.alias.anchor;
	if (key_is_next(r))
		return yaml_fail(r, &e->start_mark, "a key must be a word, found an alias");
	const struct rp_cfg_node *from = NULL;
	for (unsigned i = r->n_anchors; i-- > 0 && !from;)
		if (str_eq(r->anchors[i].name, name))
			from = r->anchors[i].node;
	if (!from)
		return yaml_fail(r, &e->start_mark, "this alias has no anchor &%.60s before it",
				 name);
	for (unsigned i = 0; i < r->depth; i++)
		if (r->stack[i].node == from)
			return yaml_fail(r, &e->start_mark, "alias *%.60s is within its own anchor",
					 name);
	struct rp_cfg_node *node;
	int rc = yaml_make(r, RP_NODE_NULL, &e->start_mark, &node);
	if (rc == 0)
		rc = copy_into(r, node, from, r->depth, &e->start_mark);
	return rc < 0 ? rc : yaml_attach(r, node);
}

static int end_document(struct reader *r)
{
	struct rp_cfg_node *root = r->root;
	r->root = NULL;
	r->n_anchors = 0;
	if (!root || root->kind == RP_NODE_NULL)
		return 0;
	char found[CONF_PLACE_MAX];
	if (root->kind == RP_NODE_SCALAR &&
	    tell_lost_colon(r, r->source->keyed ? root->line : root->line - 1))
		return -EINVAL;
	if (root->kind != RP_NODE_MAP)
		return problem_node(r->errs, root, NULL, "expected keys with values, found %s",
				    node_found(root, found, sizeof found));
	struct conf_doc *doc = arena_zero(r->arena, struct conf_doc);
	if (!doc)
		return -ENOMEM;
	doc->root = root;
	doc->pushed = r->source->pushed;
	*r->docs->end = doc;
	r->docs->end = &doc->next;
	return 0;
}

static int read_event(struct reader *r, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return read_scalar(r, e);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return read_start(r, e);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		r->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return read_alias(r, e);
	case YAML_DOCUMENT_END_EVENT:
		return end_document(r);
	default:
		return 0;
	}
}

static int syntax_error(const struct reader *r, const yaml_parser_t *yaml)
{
	if (yaml->error != YAML_MEMORY_ERROR && tell_lost_colon(r, yaml->problem_mark.line))
		return -EINVAL;
	if (yaml->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (tab_indents(r->source, yaml->problem_mark.line))
		return yaml_fail(r, &yaml->problem_mark, "a tab in the indentation; use spaces");
	if (yaml->context)
		return yaml_fail(r, &yaml->problem_mark,
				 "not valid YAML: %s, %s that begins at line %u", yaml->problem,
				 yaml->context, place_of(r, yaml->context_mark.line));
	return yaml_fail(r, &yaml->problem_mark, "not valid YAML: %s", yaml->problem);
}

static int read_stream(struct reader *r, yaml_parser_t *yaml)
{
	for (;;) {
		yaml_event_t event;
		if (!yaml_parser_parse(yaml, &event))
			return syntax_error(r, yaml);
		bool end = event.type == YAML_STREAM_END_EVENT;
		int rc = read_event(r, &event);
		yaml_event_delete(&event);
		if (rc < 0)
			return rc;
		if (end)
			return 0;
	}
}

int yaml_read(struct arena *arena, const struct conf_source *source, const struct conf_file *file,
	      struct conf_docs *docs, struct conf_errors *errs)
{
	struct reader r = {
		.arena = arena, .source = source, .file = file, .docs = docs, .errs = errs};
	int rc = check_bytes(&r);
	if (rc < 0)
		return rc;
	yaml_parser_t yaml;
	if (!yaml_parser_initialize(&yaml))
		return -ENOMEM;
	yaml_parser_set_encoding(&yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&yaml, (const unsigned char *)source->text, source->len);
	rc = read_stream(&r, &yaml);
	yaml_parser_delete(&yaml);
	return rc;
}
