/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpctl/import.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/lib/util/err.h"
#include "core/nri-rpctl/import_write.h"

void import_fini(struct import *im)
{
	for (unsigned i = 0; i < im->n_notes; i++)
		free(im->notes[i]);
	buf_fini(&im->text);
}

void import_printf(struct import *im, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)buf_add_str(&im->text, text);
}

void import_note(struct import *im, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20) /* keep the note on one line of a comment */
			*c = ' ';
	if (im->n_notes < IMPORT_NOTES_MAX && (im->notes[im->n_notes] = strdup(text)))
		im->n_notes++;
}

bool str_eq_nocase(const char *a, const char *b)
{
	return strcasecmp(a, b) == 0;
}

rp_cfg import_get(rp_cfg map, const char *key)
{
	for (uint32_t i = 0; conf_kind(map) == RP_NODE_MAP && i < conf_count(map); i++)
		if (str_eq_nocase(conf_key(map, i), key))
			return conf_item(map, i);
	return NULL;
}

const char *import_text(rp_cfg map, const char *key, const char *fallback)
{
	return conf_text(import_get(map, key), fallback);
}

void import_camel(const char *key, char *buf, size_t size)
{
	size_t n = 0;
	(void)snprintf(buf, size, "%s", key);
	while (isupper((unsigned char)buf[n]))
		n++;
	/* the last of several capitals begins the next word */
	size_t lower = n > 1 && islower((unsigned char)buf[n]) ? n - 1 : n;
	for (size_t i = 0; i < lower; i++)
		buf[i] = (char)tolower((unsigned char)buf[i]);
}

void import_class(const char *key, char *buf, size_t size)
{
	static const char *const old[][2] = {{"l2schema", "l2Allocation"},
					     {"l3schema", "l3Allocation"},
					     {"mbschema", "mbAllocation"}};
	for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
		if (str_eq_nocase(key, old[i][0]))
			key = old[i][1];
	(void)snprintf(buf, size, "%s", key);
}

/* ---- YAML ------------------------------------------------------------------------------------ */

static bool is_plain(const char *s)
{
	if (!*s || strchr("-.~", *s))
		return *s == '-' && s[1] >= '0' && s[1] <= '9' &&
		       strspn(s + 1, "0123456789.") == strlen(s + 1);
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._/+-", *s))
			return false;
	return true;
}

static void put_text(struct import *im, const char *s)
{
	if (is_plain(s)) {
		(void)buf_add_str(&im->text, s);
		return;
	}
	(void)buf_add_str(&im->text, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			(void)buf_printf(&im->text, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			(void)buf_printf(&im->text, "\\x%02x", (unsigned char)*s);
		else
			(void)buf_add(&im->text, s, 1);
	}
	(void)buf_add_str(&im->text, "\"");
}

/* Names of priorities, which older configurations give as numbers. */
static const char *const priorities[] = {"high", "normal", "low", "none"};

typedef void (*rename_fn)(const char *key, char *buf, size_t size);

static void put_value(struct import *im, rp_cfg node, unsigned indent, rename_fn rename,
		      bool in_list);

/* Name under which a key is written; empty: the member is omitted. */
struct member_name {
	char text[CONF_KEY_MAX + 1];
};

static struct member_name name_of(const char *key, rename_fn rename)
{
	struct member_name name;
	if (rename)
		rename(key, name.text, sizeof name.text);
	else
		(void)snprintf(name.text, sizeof name.text, "%s", key);
	return name;
}

static void put_member(struct import *im, const char *name, rp_cfg node, unsigned indent,
		       rename_fn rename)
{
	put_text(im, name);
	(void)buf_add_str(&im->text, ":");
	const char *text = conf_text(node, "");
	if (strcmp(name, "allocatorPriority") == 0 && *text >= '0' && *text <= '3' && !text[1]) {
		(void)buf_printf(&im->text, " %s\n", priorities[*text - '0']);
		return;
	}
	put_value(im, node, indent, rename, false);
}

static void put_list(struct import *im, rp_cfg node, unsigned indent, rename_fn rename)
{
	for (uint32_t i = 0; i < conf_count(node); i++) {
		(void)buf_printf(&im->text, "%*s-", (int)indent, "");
		put_value(im, conf_item(node, i), indent, rename, true);
	}
}

static void put_map(struct import *im, rp_cfg node, unsigned indent, rename_fn rename, bool in_list)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < conf_count(node); i++) {
		const struct member_name name = name_of(conf_key(node, i), rename);
		if (!*name.text)
			continue;
		if (in_list && !n++)
			(void)buf_add_str(&im->text, " ");
		else
			(void)buf_printf(&im->text, "%*s", (int)indent, "");
		put_member(im, name.text, conf_item(node, i), indent, rename);
	}
}

/* Writes a value after "key:" or "-", including the end of its last line. */
static void put_value(struct import *im, rp_cfg node, unsigned indent, rename_fn rename,
		      bool in_list)
{
	bool map = conf_kind(node) == RP_NODE_MAP, list = conf_kind(node) == RP_NODE_LIST;
	if ((map || list) && !conf_count(node)) {
		(void)buf_add_str(&im->text, map ? " {}\n" : " []\n");
		return;
	}
	if (!map && !list) {
		const char *text = conf_text(node, NULL);
		(void)buf_add_str(&im->text, " ");
		if (text)
			put_text(im, text);
		else
			(void)buf_add_str(&im->text, "null");
		(void)buf_add_str(&im->text, "\n");
		return;
	}
	if (!in_list || list)
		(void)buf_add_str(&im->text, "\n");
	if (map)
		put_map(im, node, indent + 2, rename, in_list);
	else
		put_list(im, node, indent + 2, rename);
}

void import_put(struct import *im, const char *key, rp_cfg node, unsigned indent, rename_fn rename)
{
	const struct member_name name = name_of(key, rename);
	if (!*name.text)
		return;
	(void)buf_printf(&im->text, "%*s", (int)indent, "");
	put_member(im, name.text, node, indent, rename);
}

void import_key(struct import *im, const char *key, unsigned indent)
{
	(void)buf_printf(&im->text, "%*s", (int)indent, "");
	put_text(im, key);
	(void)buf_add_str(&im->text, ":");
}

void import_value(struct import *im, const char *key, const char *text, unsigned indent)
{
	(void)buf_printf(&im->text, "%*s%s: ", (int)indent, "", key);
	put_text(im, text);
	(void)buf_add_str(&im->text, "\n");
}
