/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/lib/conf/fragment.h"
#include "core/lib/util/str.h"
#include "test/unit/fake_impl.h"
#include "core/lib/util/number.h"

/* ---- parsing flow style ---------------------------------------------------------------------- */

struct reader {
	struct fake_host *f;
	const char *text, *p;
};

static struct rp_cfg_node *read_node(struct reader *r, const char *path);

static void skip_blanks(struct reader *r)
{
	while (isspace((unsigned char)*r->p))
		r->p++;
}

static int next_is(struct reader *r, char c)
{
	skip_blanks(r);
	if (*r->p != c)
		return 0;
	r->p++;
	return 1;
}

static void expect(struct reader *r, char c)
{
	if (!next_is(r, c))
		fake_die("configuration \"%s\": expected '%c' at \"%s\"", r->text, c, r->p);
}

static char *read_word(struct reader *r, const char *end)
{
	skip_blanks(r);
	const char *from = r->p;
	size_t n;
	if (*from == '"') {
		n = strcspn(++from, "\"");
		if (!from[n])
			fake_die("configuration \"%s\": open quote", r->text);
		r->p = from + n + 1;
	} else {
		n = strcspn(from, end);
		r->p = from + n;
		while (n && isspace((unsigned char)from[n - 1]))
			n--;
	}
	char *word = fake_alloc(n + 1);
	memcpy(word, from, n);
	return word;
}

static void add_item(struct rp_cfg_node *n, char *key, struct rp_cfg_node *item)
{
	n->items = fake_grow(n->items, n->n + 1, sizeof(struct rp_cfg_node *));
	n->keys = fake_grow(n->keys, n->n + 1, sizeof(char *));
	n->items[n->n] = item;
	n->keys[n->n++] = key;
}

static void read_members(struct reader *r, struct rp_cfg_node *n)
{
	char end = n->kind == RP_NODE_MAP ? '}' : ']';
	while (!next_is(r, end)) {
		struct fake_out path = {0};
		char *key = NULL;
		if (n->kind == RP_NODE_MAP) {
			key = read_word(r, ":");
			expect(r, ':');
			fake_print(&path, "%s%s%s", n->path, n->path[0] ? "." : "", key);
		} else {
			fake_print(&path, "%s[%u]", n->path, n->n);
		}
		add_item(n, key, read_node(r, fake_out_text(&path)));
		fake_out_fini(&path);
		if (!next_is(r, ',')) {
			expect(r, end);
			return;
		}
	}
}

static struct rp_cfg_node *read_node(struct reader *r, const char *path)
{
	struct rp_cfg_node *n = fake_alloc(sizeof *n);
	n->path = fake_strdup(path);
	n->next = r->f->cfg_nodes;
	r->f->cfg_nodes = n;
	if (next_is(r, '{')) {
		n->kind = RP_NODE_MAP;
		read_members(r, n);
	} else if (next_is(r, '[')) {
		n->kind = RP_NODE_LIST;
		read_members(r, n);
	} else {
		n->kind = RP_NODE_SCALAR;
		n->text = read_word(r, ",]}");
	}
	return n;
}

rp_cfg fake_cfg(struct fake_host *f, const char *text)
{
	struct reader r = {f, text, text};
	struct rp_cfg_node *n = read_node(&r, "");
	skip_blanks(&r);
	if (*r.p)
		fake_die("configuration \"%s\": \"%s\" is too much", text, r.p);
	return n;
}

/* ---- the service ----------------------------------------------------------------------------- */

static uint32_t cfg_kind(void *ctx, rp_cfg node)
{
	return node ? node->kind : RP_NODE_NULL;
}

static rp_cfg cfg_get(void *ctx, rp_cfg node, const char *path)
{
	while (node && *path) {
		size_t len = strcspn(path, ".");
		rp_cfg found = NULL;
		for (uint32_t i = 0; node->kind == RP_NODE_MAP && i < node->n; i++)
			if (strncasecmp(node->keys[i], path, len) == 0 && !node->keys[i][len])
				found = node->items[i];
		node = found;
		path += len + (path[len] == '.');
	}
	return node;
}

static uint32_t cfg_count(void *ctx, rp_cfg node)
{
	return node ? node->n : 0;
}

static rp_cfg cfg_item(void *ctx, rp_cfg node, uint32_t i)
{
	return node && i < node->n ? node->items[i] : NULL;
}

static const char *cfg_key(void *ctx, rp_cfg node, uint32_t i)
{
	return node && i < node->n && node->keys[i] ? node->keys[i] : "";
}

static const char *cfg_text(void *ctx, rp_cfg node, const char *fallback)
{
	return node && node->kind == RP_NODE_SCALAR ? node->text : fallback;
}

static int to_freq(const char *text, int64_t *ret)
{
	static const char *const words[] = {"min", "base", "turbo"};
	static const int64_t values[] = {RP_FREQ_MIN, RP_FREQ_BASE, RP_FREQ_TURBO};
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasecmp(text, words[i]) == 0)
			return *ret = values[i], 0;
	return str_to_khz(text, ret);
}

static int64_t cfg_value(void *ctx, rp_cfg node, uint32_t type, int64_t fallback)
{
	const char *text = cfg_text(ctx, node, NULL);
	int64_t v = fallback;
	bool b;
	int r = -RP_EINVAL;
	if (!text)
		return fallback;
	switch (type) {
	case RP_T_BOOL:
		r = str_to_bool(text, &b);
		v = r ? fallback : b;
		break;
	case RP_T_INT:
		r = str_to_i64(text, &v);
		break;
	case RP_T_CPU:
		r = str_to_milli(text, &v);
		break;
	case RP_T_BYTES:
		r = str_to_bytes(text, &v);
		break;
	case RP_T_DURATION:
		r = str_to_ms(text, &v);
		break;
	case RP_T_FREQ:
		r = to_freq(text, &v);
		break;
	default:
		fake_die("value() of type %u", type);
	}
	return r < 0 ? fallback : v;
}

static double cfg_number(void *ctx, rp_cfg node, double fallback)
{
	const char *text = cfg_text(ctx, node, NULL);
	double v;
	return text && str_to_double(text, &v) == 0 ? v : fallback;
}

static int32_t cfg_fail_at(void *ctx, rp_cfg node, int32_t code, const char *text)
{
	struct fake_host *f = ctx;
	fake_out_clear(&f->error);
	fake_print(&f->error, "%s%s%s", node ? node->path : "", node && node->path[0] ? ": " : "",
		   text);
	return code;
}

static const char *cfg_where(void *ctx, rp_cfg node)
{
	return node ? node->path : "";
}

/* Copies a parsed tree. */
static struct rp_cfg_node *copy_node(struct fake_host *f, rp_cfg from, const char *path)
{
	struct rp_cfg_node *n = fake_alloc(sizeof *n);
	n->path = fake_strdup(path);
	n->next = f->cfg_nodes;
	f->cfg_nodes = n;
	n->kind = conf_kind(from);
	n->text = fake_strdup(conf_text(from, NULL));
	for (uint32_t i = 0; i < conf_count(from); i++) {
		struct fake_out below = {0};
		const char *key = conf_key(from, i);
		if (n->kind == RP_NODE_MAP)
			fake_print(&below, "%s%s%s", path, path[0] ? "." : "", key);
		else
			fake_print(&below, "%s[%u]", path, i);
		add_item(n, n->kind == RP_NODE_MAP ? fake_strdup(key) : NULL,
			 copy_node(f, conf_item(from, i), fake_out_text(&below)));
		fake_out_fini(&below);
	}
	return n;
}

static rp_cfg cfg_parse(void *ctx, const char *what, const char *text, int32_t *ret_code)
{
	struct fake_host *f = ctx;
	struct fragment *fragment;
	struct err err = ERR_INIT;
	rp_cfg root, copy = NULL;
	int32_t r = fake_call(f);
	if (!r)
		r = fragment_parse(text, &fragment, &root, &err);
	if (ret_code)
		*ret_code = r;
	if (r) {
		fake_out_clear(&f->error);
		fake_print(&f->error, "%s: %s", what, err.text);
		return NULL;
	}
	if (root)
		copy = copy_node(f, root, "");
	fragment_free(fragment);
	return copy;
}

const struct rp_host_config fake_config_service = {
	.size = sizeof(struct rp_host_config),
	.kind = cfg_kind,
	.get = cfg_get,
	.count = cfg_count,
	.item = cfg_item,
	.key = cfg_key,
	.text = cfg_text,
	.value = cfg_value,
	.number = cfg_number,
	.fail_at = cfg_fail_at,
	.where = cfg_where,
	.parse = cfg_parse,
};
