/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as rp.conf. The first byte says what the rest is: one source, or two with a byte 0xff
 * between them, the second a drop-in or what the agent pushed. What is accepted is walked through,
 * shown, and has to load again from what was shown, to the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/lib/conf/conf.h"
#include "core/lib/util/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUT_MAX 65536

static const struct rp_key rich_rows[] = {
	{.path = "bool", .type = RP_T_BOOL, .fallback = "true"},
	{.path = "int", .type = RP_T_INT, .min = -5, .max = 5, .fallback = "0"},
	{.path = "number", .type = RP_T_NUMBER},
	{.path = "string", .type = RP_T_STRING, .flags = RP_KEY_NON_EMPTY},
	{.path = "enum", .type = RP_T_ENUM, .choices = "|a|b", .fallback = "a"},
	{.path = "cpu", .type = RP_T_CPU},
	{.path = "bytes", .type = RP_T_BYTES},
	{.path = "duration", .type = RP_T_DURATION, .fallback = "30s"},
	{.path = "amount", .type = RP_T_AMOUNT},
	{.path = "cpulist", .type = RP_T_CPULIST},
	{.path = "freq", .type = RP_T_FREQ},
	{.path = "any", .type = RP_T_ANY},
	{.path = "list[]", .type = RP_T_INT},
	{.path = "grid[][]", .type = RP_T_CPU},
	{.path = "items", .type = RP_T_LIST, .flags = RP_KEY_NON_EMPTY},
	{.path = "items[].name", .type = RP_T_STRING, .flags = RP_KEY_REQUIRED},
	{.path = "items[].max", .type = RP_T_INT, .max = INT64_MAX, .fallback = "0"},
	{.path = "map.*", .type = RP_T_BOOL},
	{.path = "parts.*.share", .type = RP_T_STRING},
};

static const struct rp_schema rich = {
	.size = sizeof rich,
	.keys = rich_rows,
	.n_keys = COUNT(rich_rows),
	.key_size = sizeof rich_rows[0],
	.cr_kind = "Rich",
};

static const struct rp_schema folded = {
	.size = sizeof folded,
	.flags = RP_SCHEMA_FOLD_CASE,
	.keys = rich_rows,
	.n_keys = COUNT(rich_rows),
	.key_size = sizeof rich_rows[0],
};

static enum conf_found find(void *ctx, const char *module, const struct rp_schema **ret_schema)
{
	*ret_schema = str_eq(module, "fold") ? &folded : &rich;
	if (str_eq(module, "rich") || str_eq(module, "fold"))
		return CONF_SCHEMA;
	return module[0] == 'x' ? CONF_NO_MODULE : CONF_NO_SCHEMA;
}

static const char *of_kind(void *ctx, const char *kind)
{
	return str_eq(kind, "Rich") ? "rich" : NULL;
}

static const struct conf_schemas schemas = {.find = find, .of_kind = of_kind};

static void need(bool true_thing)
{
	if (!true_thing)
		abort();
}

static void walk(rp_cfg node, unsigned depth)
{
	char place[CONF_PLACE_MAX];
	need(depth <= CONF_DEPTH_MAX + 1);
	need(strlen(conf_place(node, place, sizeof place)) < sizeof place);
	need(utf8_valid(place, strlen(place)));
	for (uint32_t type = RP_T_BOOL; type <= RP_T_FREQ; type++)
		(void)conf_value(node, type, 0);
	(void)conf_number(node, 0);
	const char *text = conf_text(node, "");
	need(utf8_valid(text, strlen(text)));
	for (uint32_t i = 0; i < conf_count(node); i++) {
		if (conf_kind(node) == RP_NODE_MAP)
			need(conf_get(node, conf_key(node, i)) == conf_item(node, i));
		walk(conf_item(node, i), depth + 1);
	}
}

static int any_change(const struct conf_change *change, void *arg)
{
	return 1;
}

static struct conf *load(const struct conf_source *sources, unsigned n)
{
	struct conf_errors *errs = malloc(sizeof *errs);
	need(errs != NULL);
	conf_errors_init(errs);
	struct conf *conf = NULL;
	int rc = conf_parse(sources, n, &schemas, &conf, errs);
	need((rc == 0) == (conf != NULL) && (rc == 0) == (errs->n_errors == 0));
	need(rc == 0 || errs->n_items > 0);
	for (unsigned i = 0; i < errs->n_items; i++)
		need(utf8_valid(errs->items[i].text, strlen(errs->items[i].text)));
	free(errs);
	return conf;
}

/* A pushed policy can change what a section in a file means, so that only files are held to it. */
static void check_shown(const struct conf *conf, bool pushed)
{
	for (unsigned flags = 0; flags <= (CONF_SHOW_ORIGIN | CONF_SHOW_DEFAULTS); flags++) {
		struct buf out = BUF_INIT;
		need(conf_show(conf, flags, &out) == 0);
		struct conf_source source = {.name = "shown", .text = buf_text(&out)};
		source.len = buf_len(&out);
		struct conf *again = pushed ? NULL : load(&source, 1);
		need(pushed || (again && conf_diff(conf, again, any_change, NULL) == 0));
		need(pushed || conf_diff(again, conf, any_change, NULL) == 0);
		(void)conf_free(again);
		buf_fini(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > INPUT_MAX)
		return 0;
	const char *text = (const char *)data + 1, *end = (const char *)data + size;
	const char *cut = data[0] & 1 ? memchr(text, 0xff, size - 1) : NULL;
	struct conf_source sources[2] = {
		{.name = "rp.conf", .text = text, .len = (size_t)((cut ? cut : end) - text)},
	};
	if (cut)
		sources[1] = (struct conf_source){.name = "rp.conf.d/x.conf",
						  .text = cut + 1,
						  .len = (size_t)(end - cut - 1),
						  .pushed = data[0] & 2};
	struct conf *conf = load(sources, cut ? 2 : 1);
	if (conf) {
		walk(conf_root(conf), 0);
		check_shown(conf, sources[1].pushed);
	}
	(void)conf_free(conf);
	return 0;
}
