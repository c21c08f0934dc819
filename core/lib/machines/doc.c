/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/machines/doc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/conf/documents.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define ARG_KEYS_MAX 48u
#define BLOCK_INDENT_MAX 40u

/* ---- YAML ------------------------------------------------------------------------------------ */

/* Converts a plain scalar. Octal-looking, signed and too large numbers stay text. */
static json_t *plain_scalar(const char *text)
{
	int64_t number;
	char again[ARG_NUMBER_MAX];
	if (str_eq(text, "true"))
		return json_true();
	if (str_eq(text, "false"))
		return json_false();
	if (str_to_i64(text, &number) == 0) {
		(void)snprintf(again, sizeof again, "%" PRId64, number);
		if (str_eq(text, again))
			return json_integer(number);
	}
	return json_string(text);
}

static int doc_remember(struct doc *doc, const json_t *node, unsigned line)
{
	if ((doc->n_places & (doc->n_places - 1)) == 0) {
		size_t room = doc->n_places ? doc->n_places * 2 : 1;
		struct doc_place *grown = reallocarray(doc->places, room, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		doc->places = grown;
	}
	doc->places[doc->n_places++] = (struct doc_place){node, line};
	return 0;
}

static json_t *doc_convert(struct doc *doc, rp_cfg node);

static int add_members(struct doc *doc, rp_cfg node, json_t *to)
{
	for (uint32_t i = 0; i < conf_count(node); i++) {
		json_t *value = doc_convert(doc, conf_item(node, i));
		int r = json_is_object(to) ? json_object_set_new(to, conf_key(node, i), value)
					   : json_array_append_new(to, value);
		if (r)
			return -ENOMEM;
	}
	return 0;
}

static json_t *doc_convert(struct doc *doc, rp_cfg node)
{
	uint32_t kind = conf_kind(node);
	json_t *ret;
	if (kind == RP_NODE_MAP)
		ret = json_object();
	else if (kind == RP_NODE_LIST)
		ret = json_array();
	else if (kind == RP_NODE_NULL)
		ret = json_null();
	else
		ret = conf_quoted(node) ? json_string(conf_text(node, ""))
					: plain_scalar(conf_text(node, ""));
	if (!ret || doc_remember(doc, ret, conf_line(node)) || add_members(doc, node, ret)) {
		json_decref(ret);
		return NULL;
	}
	return ret;
}

static int convert_all(struct doc *doc, const struct documents *from, struct err *err)
{
	int r = doc->name && doc->documents ? 0 : -ENOMEM;
	for (unsigned i = 0; i < from->n_roots && !r; i++)
		if (json_array_append_new(doc->documents, doc_convert(doc, from->roots[i])))
			r = -ENOMEM;
	return r ? err_errno(err, r, "%s", doc->name ? doc->name : "a document") : 0;
}

int doc_parse(const char *name, const char *text, size_t len, struct doc *ret, struct err *err)
{
	if (len > DOC_FILE_MAX)
		return err_set(err, -E2BIG, "%s has more than %u bytes", name, DOC_FILE_MAX);
	struct documents from;
	int r = documents_parse(name, text, len, &from, err);
	if (r)
		return r;
	struct doc doc = {.name = strdup(name), .documents = json_array()};
	r = convert_all(&doc, &from, err);
	documents_fini(&from);
	if (r)
		doc_fini(&doc);
	else
		*ret = doc;
	return r;
}

int doc_read(const char *path, struct doc *ret, struct err *err)
{
	struct fs_root root;
	_free_ char *text = NULL, *full = realpath(path, NULL);
	size_t len;
	if (!full)
		return err_errno(err, -errno, "cannot read %s", path);
	int r = fs_root_open(&root, "/", err);
	if (r)
		return r;
	r = fs_read_all(&root, full, DOC_FILE_MAX, &text, &len);
	fs_root_close(&root);
	if (r)
		return err_errno(err, r, "cannot read %s", path);
	return doc_parse(path, text, len, ret, err);
}

void doc_fini(struct doc *doc)
{
	json_decref(doc->documents);
	free(doc->places);
	free(doc->name);
	*doc = (struct doc){0};
}

const char *doc_where(const struct doc *doc, const json_t *node, char *buf, size_t size)
{
	for (size_t i = 0; i < doc->n_places; i++) {
		if (doc->places[i].node != node || json_is_boolean(node) || json_is_null(node))
			continue;
		(void)snprintf(buf, size, "%s:%u", doc->name, doc->places[i].line);
		return buf;
	}
	(void)snprintf(buf, size, "%s", doc->name);
	return buf;
}

/* Returns true for a decimal, which is text in this tree and has to be written without quotes to be
 * a number again. */
static bool looks_like_decimal(const char *s)
{
	double value;
	return str_to_double(s, &value) == 0 && !s[strspn(s, "0123456789.-")];
}

static void write_key(const char *key, struct buf *out)
{
	_json_ json_t *name = json_string(key);
	_free_ char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
	bool plain =
		*key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")];
	buf_printf(out, "%s: ", plain || !text ? key : text);
}

static int write_text(const json_t *node, struct buf *out)
{
	if (json_is_string(node) && looks_like_decimal(json_string_value(node)))
		return buf_add_str(out, json_string_value(node));
	_free_ char *text = json_dumps(node, JSON_ENCODE_ANY);
	return text ? buf_add_str(out, text) : -ENOMEM;
}

/* Writes flow style, which is JSON except for the decimals above. */
static void write_flow(const json_t *node, struct buf *out)
{
	const char *key, *comma = "";
	json_t *value;
	size_t i;
	if (json_is_object(node)) {
		buf_add_str(out, "{");
		json_object_foreach((json_t *)(uintptr_t)node, key, value)
		{
			buf_add_str(out, comma);
			write_key(key, out);
			write_flow(value, out);
			comma = ", ";
		}
		buf_add_str(out, "}");
	} else if (json_is_array(node)) {
		buf_add_str(out, "[");
		json_array_foreach(node, i, value)
		{
			buf_add_str(out, comma);
			write_flow(value, out);
			comma = ", ";
		}
		buf_add_str(out, "]");
	} else {
		write_text(node, out);
	}
}

/* Writes a line per key, as people do, because messages name lines. */
static void write_block(const json_t *map, unsigned indent, struct buf *out)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		buf_printf(out, "%*s", (int)indent, "");
		write_key(key, out);
		if (json_object_size(value) && indent < BLOCK_INDENT_MAX) {
			buf_add_str(out, "\n");
			write_block(value, indent + 2, out);
		} else {
			write_flow(value, out);
			buf_add_str(out, "\n");
		}
	}
}

int doc_write_yaml(const json_t *map, struct buf *out)
{
	write_block(map, 0, out);
	return out->failed;
}

/* ---- getters --------------------------------------------------------------------------------- */

static unsigned doc_split(char *words, const char *ret[ARG_KEYS_MAX])
{
	unsigned n = 0;
	char *save = NULL;
	for (char *w = strtok_r(words, " ", &save); w && n < ARG_KEYS_MAX;
	     w = strtok_r(NULL, " ", &save))
		ret[n++] = w;
	return n;
}

static int unknown_key(const char *key, const char *const *known, unsigned n, const char *what,
		       struct err *err)
{
	const char *close = str_closest(key, known, n);
	if (close)
		return err_set(err, -EINVAL, "%s: unknown key \"%s\", did you mean \"%s\"?", what,
			       key, close);
	return err_set(err, -EINVAL, "%s: unknown key \"%s\"", what, key);
}

int arg_check(struct args *a, const char *keys, const char *what)
{
	const char *known[ARG_KEYS_MAX], *key;
	json_t *value;
	if (a->r)
		return a->r;
	if (!json_is_object(a->map))
		return a->r = err_set(a->err, -EINVAL, "%s: expected a map", what);
	_free_ char *words = strdup(keys);
	if (!words)
		return a->r = err_errno(a->err, -ENOMEM, "%s", what);
	unsigned n = doc_split(words, known);
	json_object_foreach((json_t *)(uintptr_t)a->map, key, value)
	{
		unsigned i = 0;
		while (i < n && !str_eq(known[i], key))
			i++;
		if (i == n)
			return a->r = unknown_key(key, known, n, what, a->err);
	}
	return 0;
}

const char *arg_scalar(const json_t *node, char buf[ARG_NUMBER_MAX])
{
	if (json_is_string(node))
		return json_string_value(node);
	if (json_is_boolean(node))
		return json_is_true(node) ? "true" : "false";
	if (json_is_integer(node)) {
		(void)snprintf(buf, ARG_NUMBER_MAX, "%" JSON_INTEGER_FORMAT,
			       json_integer_value(node));
		return buf;
	}
	if (json_is_real(node)) {
		(void)snprintf(buf, ARG_NUMBER_MAX, "%.15g", json_real_value(node));
		return buf;
	}
	return NULL;
}

/* Finds a member; null is treated as missing. Returns false after an error. */
static bool doc_member(const struct args *a, const char *key, const json_t **ret)
{
	json_t *node = json_object_get(a->map, key);
	*ret = json_is_null(node) ? NULL : node;
	return !a->r;
}

static int doc_wrong(struct args *a, const char *key, const char *expected)
{
	return a->r = err_set(a->err, -EINVAL, "%s: expected %s", key, expected);
}

int arg_text(struct args *a, const char *key, const char *otherwise, const char **ret)
{
	const json_t *node;
	if (!doc_member(a, key, &node))
		return a->r;
	*ret = node ? json_string_value(node) : otherwise;
	return node && !json_is_string(node) ? doc_wrong(a, key, "text") : 0;
}

int arg_int(struct args *a, const char *key, int64_t otherwise, int64_t min, int64_t max,
	    int64_t *ret)
{
	const json_t *node;
	char buf[ARG_NUMBER_MAX];
	if (!doc_member(a, key, &node))
		return a->r;
	const char *text = arg_scalar(node, buf);
	*ret = otherwise;
	if (!node)
		return 0;
	if (!text || str_to_i64(text, ret))
		return doc_wrong(a, key, "an integer");
	if (*ret < min || *ret > max)
		a->r = err_set(a->err, -ERANGE, "%s: expected %" PRId64 " to %" PRId64, key, min,
			       max);
	return a->r;
}

int arg_bool(struct args *a, const char *key, bool otherwise, bool *ret)
{
	const json_t *node;
	if (!doc_member(a, key, &node))
		return a->r;
	*ret = node ? json_is_true(node) : otherwise;
	return node && !json_is_boolean(node) ? doc_wrong(a, key, "true or false") : 0;
}

int arg_amount(struct args *a, const char *key, enum arg_unit unit, int64_t otherwise, int64_t *ret)
{
	static const struct {
		int (*parse)(const char *s, int64_t *ret);
		const char *expected;
	} units[] = {
		[ARG_BYTES] = {str_to_bytes, "a size such as 512M or 2Gi"},
		[ARG_MILLI] = {str_to_milli, "a number of CPUs such as 2 or 750m"},
		[ARG_MS] = {str_to_ms, "a duration such as 2s or 500ms"},
		[ARG_KHZ] = {str_to_khz, "a frequency such as 2.4GHz"},
	};
	const json_t *node;
	char buf[ARG_NUMBER_MAX];
	if (!doc_member(a, key, &node))
		return a->r;
	const char *text = arg_scalar(node, buf);
	*ret = otherwise;
	if (node && (!text || units[unit].parse(text, ret) || *ret < 0))
		return doc_wrong(a, key, units[unit].expected);
	return 0;
}

int arg_map(struct args *a, const char *key, const json_t **ret)
{
	if (!doc_member(a, key, ret))
		return a->r;
	return *ret && !json_is_object(*ret) ? doc_wrong(a, key, "a map") : 0;
}

int arg_list(struct args *a, const char *key, const json_t **ret)
{
	if (!doc_member(a, key, ret))
		return a->r;
	return *ret && !json_is_array(*ret) ? doc_wrong(a, key, "a list") : 0;
}

struct args arg_sub(struct args *a, const char *key, const char *keys)
{
	struct args sub = {.err = a->err};
	sub.r = arg_map(a, key, &sub.map);
	if (sub.map)
		a->r = arg_check(&sub, keys, key);
	return sub;
}

void doc_put_text(json_t *map, const char *key, const char *value)
{
	/* External text may have any bytes, while JSON is UTF-8. */
	json_t *text = json_string(value);
	(void)json_object_set_new(map, key, text ? text : json_string("(not UTF-8)"));
}

void doc_put_int(json_t *map, const char *key, int64_t value)
{
	(void)json_object_set_new(map, key, json_integer(value));
}

void doc_put_bool(json_t *map, const char *key, bool value)
{
	(void)json_object_set_new(map, key, json_boolean(value));
}
