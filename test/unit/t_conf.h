/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests of conf: modules with tables, loading from text, comparing problems. */
#ifndef TEST_UNIT_T_CONF_H
#define TEST_UNIT_T_CONF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A key of each type. */
static const struct rp_key types_rows[] = {
	{.path = "bool", .type = RP_T_BOOL, .fallback = "true", .doc = "A truth."},
	{.path = "int", .type = RP_T_INT, .fallback = "-3"},
	{.path = "count", .type = RP_T_INT, .max = INT64_MAX, .flags = RP_KEY_RESTART},
	{.path = "debt", .type = RP_T_INT, .min = INT64_MIN, .max = -1},
	{.path = "percent", .type = RP_T_INT, .max = 100},
	{.path = "number", .type = RP_T_NUMBER, .fallback = "0.5"},
	{.path = "string", .type = RP_T_STRING},
	{.path = "name", .type = RP_T_STRING, .flags = RP_KEY_NON_EMPTY},
	{.path = "enum", .type = RP_T_ENUM, .choices = "red|green|blue", .fallback = "red"},
	{.path = "level", .type = RP_T_ENUM, .choices = "|core|numa"},
	{.path = "cpu", .type = RP_T_CPU, .fallback = "750m"},
	{.path = "bytes", .type = RP_T_BYTES, .fallback = "1Gi"},
	{.path = "duration", .type = RP_T_DURATION, .fallback = "30s"},
	{.path = "amount", .type = RP_T_AMOUNT},
	{.path = "cpulist", .type = RP_T_CPULIST, .fallback = "0-3"},
	{.path = "cpus", .type = RP_T_CPULIST, .flags = RP_KEY_NON_EMPTY, .fallback = "all"},
	{.path = "freq", .type = RP_T_FREQ, .fallback = "turbo"},
	{.path = "any", .type = RP_T_ANY, .fallback = "as bool"},
	{.path = "map", .type = RP_T_MAP, .flags = RP_KEY_NON_EMPTY, .doc = "Free."},
	{.path = "list", .type = RP_T_LIST, .flags = RP_KEY_NON_EMPTY, .fallback = "[a, b]"},
	{.path = "ints", .type = RP_T_LIST},
	{.path = "ints[]", .type = RP_T_INT, .min = 1, .max = 9},
	{.path = "grid[][]", .type = RP_T_NUMBER},
	{.path = "items", .type = RP_T_LIST},
	{.path = "items[]", .type = RP_T_MAP},
	{.path = "items[].name", .type = RP_T_STRING, .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY},
	{.path = "items[].max", .type = RP_T_INT, .max = INT64_MAX, .fallback = "0"},
	{.path = "options", .type = RP_T_MAP},
	{.path = "options.*", .type = RP_T_ENUM, .choices = "true|false|auto"},
	{.path = "options.size", .type = RP_T_INT},
	{.path = "parts.*.classes.*.share", .type = RP_T_STRING},
	{.path = "deep.under.key", .type = RP_T_BOOL, .flags = RP_KEY_REQUIRED},
};

static const struct rp_key balloons_rows[] = {
	{.path = "reservedResources", .type = RP_T_MAP, .flags = RP_KEY_REQUIRED},
	{.path = "reservedResources.cpu", .type = RP_T_AMOUNT, .flags = RP_KEY_REQUIRED},
	{.path = "pinCPU", .type = RP_T_BOOL, .fallback = "true"},
	{.path = "balloonTypes", .type = RP_T_LIST},
	{.path = "balloonTypes[].name", .type = RP_T_STRING, .flags = RP_KEY_REQUIRED},
	{.path = "balloonTypes[].maxCPUs", .type = RP_T_INT, .max = INT64_MAX},
};

/* A policy that has some of `control` itself. */
static const struct rp_key own_rows[] = {
	{.path = "x", .type = RP_T_INT},
	{.path = "control.cpu.classes", .type = RP_T_MAP},
	{.path = "control.cpu.classes.*.minFreq", .type = RP_T_FREQ},
	{.path = "log", .type = RP_T_STRING},
};

static const struct rp_key fold_rows[] = {
	{.path = "reservedResources", .type = RP_T_MAP},
	{.path = "reservedResources.cpu", .type = RP_T_AMOUNT},
	{.path = "pools", .type = RP_T_LIST},
	{.path = "pools[].maxPods", .type = RP_T_INT},
	{.path = "names", .type = RP_T_MAP},
	{.path = "names.*", .type = RP_T_STRING},
	{.path = "free", .type = RP_T_ANY},
};

static const struct rp_key rdt_rows[] = {
	{.path = "enable", .type = RP_T_BOOL, .fallback = "false"},
	{.path = "log", .type = RP_T_STRING},
};

static const struct rp_key broken_rows[] = {{.path = "x", .type = 99}};

#define SCHEMA(rows_, ...)                                                                         \
	{                                                                                          \
		.size = sizeof(struct rp_schema), .keys = (rows_), .n_keys = COUNT(rows_),         \
		.key_size = sizeof(struct rp_key), __VA_ARGS__                                     \
	}

static const struct rp_schema types_schema = SCHEMA(types_rows);
static const struct rp_schema balloons_schema = SCHEMA(balloons_rows, .cr_kind = "BalloonsPolicy");
static const struct rp_schema topology_schema =
	SCHEMA(balloons_rows, .cr_kind = "TopologyAwarePolicy");
static const struct rp_schema own_schema = SCHEMA(own_rows, .cr_kind = "OwnPolicy");
static const struct rp_schema fold_schema = SCHEMA(fold_rows, .flags = RP_SCHEMA_FOLD_CASE);
static const struct rp_schema rdt_schema = SCHEMA(rdt_rows);
static const struct rp_schema broken_schema = SCHEMA(broken_rows);

static const struct {
	const char *name;
	const struct rp_schema *schema;
} test_modules[] = {
	{"types", &types_schema},
	{"balloons", &balloons_schema},
	{"topology-aware", &topology_schema},
	{"fold", &fold_schema},
	{"own", &own_schema},
	{"rdt", &rdt_schema},
	{"broken", &broken_schema},
	{"cpu", NULL},
	{"blkio", NULL},
	{"none", NULL},
	{"bare", NULL},
};

/* Collects the paths passed to `begin` as one text. */
static inline void test_begin(void *ctx, const char *const *path, unsigned n_path)
{
	char *told = ctx;
	for (unsigned i = 0; told && i < n_path; i++) {
		strcat(told, i ? ":" : "");
		strcat(told, path[i]);
	}
}

static inline enum conf_found test_find(void *ctx, const char *module,
					const struct rp_schema **ret_schema)
{
	for (size_t i = 0; i < COUNT(test_modules); i++) {
		if (!str_eq(test_modules[i].name, module))
			continue;
		*ret_schema = test_modules[i].schema;
		return test_modules[i].schema ? CONF_SCHEMA : CONF_NO_SCHEMA;
	}
	return CONF_NO_MODULE;
}

static inline const char *test_of_kind(void *ctx, const char *kind)
{
	if (str_eq(kind, "BadName"))
		return "../evil";
	for (size_t i = 0; i < COUNT(test_modules); i++) {
		const struct rp_schema *s = test_modules[i].schema;
		if (s && s->cr_kind && str_eq(s->cr_kind, kind))
			return test_modules[i].name;
	}
	return NULL;
}

static const struct conf_schemas test_schemas = {NULL, test_begin, test_find, test_of_kind, NULL};

/* The outcome of a load. One at a time is alive: loaded() frees the one before. */
struct loaded {
	struct conf *conf;
	struct conf_errors errs;
	int rc;
	struct buf text;
};

static struct loaded last = {.text = BUF_INIT};

static inline void forget(void)
{
	last.conf = conf_free(last.conf);
	buf_fini(&last.text);
	last.text = (struct buf)BUF_INIT;
}

static inline struct conf_source source_of(const char *name, const char *text)
{
	return (struct conf_source){.name = name, .text = text, .len = strlen(text)};
}

static inline struct conf *parse_sources(const struct conf_source *sources, unsigned n,
					 const struct conf_schemas *schemas)
{
	forget();
	conf_errors_init(&last.errs);
	last.rc = conf_parse(sources, n, schemas, &last.conf, &last.errs);
	if (last.rc < 0)
		assert_null(last.conf);
	else
		assert_int_equal(last.errs.n_errors, 0);
	return last.conf;
}

static inline struct conf *parse(const char *text)
{
	struct conf_source source = source_of("rp.conf", text);
	return parse_sources(&source, 1, &test_schemas);
}

static inline const char *problems(void)
{
	buf_reset(&last.text);
	conf_errors_print(&last.errs, &last.text);
	return buf_text(&last.text);
}

/* Loads without a word. */
static inline struct conf *good(const char *text)
{
	(void)parse(text);
	assert_string_equal(problems(), "");
	assert_int_equal(last.rc, 0);
	assert_non_null(last.conf);
	return last.conf;
}

/* Checks that the text is refused with exactly these lines. */
static inline void bad(const char *text, const char *lines)
{
	(void)parse(text);
	assert_string_equal(problems(), lines);
	assert_int_equal(last.rc, -EINVAL);
}

/* Loads, with these lines of warnings. */
static inline struct conf *warned(const char *text, const char *lines)
{
	(void)parse(text);
	assert_string_equal(problems(), lines);
	assert_int_equal(last.rc, 0);
	return last.conf;
}

static inline const char *shown(unsigned flags)
{
	buf_reset(&last.text);
	assert_int_equal(conf_show(last.conf, flags, &last.text), 0);
	return buf_text(&last.text);
}

static inline int forget_last(void **state)
{
	forget();
	return 0;
}

/* ---- loaded values ---- */

#define HEAD "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"

static inline const char *text_at(const char *path)
{
	return conf_text(conf_get(conf_root(last.conf), path), "(none)");
}

static inline const struct conf_core *core(void)
{
	return conf_core(last.conf);
}

static inline void check_strings(struct conf_strings strings, const char *wanted)
{
	char all[512] = "";
	for (unsigned i = 0; i < strings.n; i++) {
		strcat(all, i ? " " : "");
		strcat(all, strings.items[i]);
	}
	assert_string_equal(all, wanted);
}

#endif
