/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and for editors. */
#include "core/conf/internal.h"

#include <stdio.h>

#include "core/util/json.h"
#include "core/util/str.h"

/* ---- help -------------------------------------------------------------------------------------------------------- */

/* Text for mdoc: no line of it is a request, backslashes are characters. */
static void add_mdoc(struct buf *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		(void)buf_add_str(out, "\\&");
	for (; *s; s++)
		(void)buf_add(out, *s == '\\' ? "\\e" : s, *s == '\\' ? 2 : 1);
}

static void add_plain(struct buf *out, const char *s)
{
	(void)buf_add_str(out, s);
}

static void describe(const struct rp_key *row, void (*add)(struct buf *out, const char *s),
		     const char *begin, struct buf *out)
{
	char expected[CONF_PROBLEM_TEXT_MAX];
	(void)buf_printf(out, "%sValue: ", begin);
	add(out, value_expected(row, expected, sizeof expected));
	(void)buf_add_str(out, ".\n");
	if (row->fallback) {
		(void)buf_printf(out, "%sDefault: ", begin);
		add(out, row->fallback[0] ? row->fallback : "\"\"");
		(void)buf_add_str(out, ".\n");
	}
	if (row->flags & RP_KEY_REQUIRED)
		(void)buf_printf(out, "%sRequired.\n", begin);
	if (row->flags & RP_KEY_RESTART)
		(void)buf_printf(out, "%sA change takes effect after a restart.\n", begin);
	if (!row->doc || !row->doc[0])
		return;
	(void)buf_add_str(out, begin);
	add(out, row->doc);
	(void)buf_add_str(out, "\n");
}

int conf_schema_help(const struct rp_schema *schema, enum conf_format format, struct buf *out)
{
	int rc = conf_schema_check(schema, NULL);
	if (rc < 0)
		return rc;
	bool mdoc = format == CONF_MDOC;
	for (uint32_t i = 0; i < schema->n_keys; i++) {
		struct rp_key row = schema_row(schema, i);
		(void)buf_add_str(out, mdoc ? ".It Ic " : "");
		(mdoc ? add_mdoc : add_plain)(out, row.path);
		(void)buf_add_str(out, "\n");
		describe(&row, mdoc ? add_mdoc : add_plain, mdoc ? "" : "    ", out);
	}
	return out->failed;
}

/* ---- JSON schema ------------------------------------------------------------------------------------------------- */

static void json_type(struct json *j, const char *one, const char *other)
{
	json_key(j, "type");
	if (!other) {
		json_str(j, one);
		return;
	}
	json_arr(j);
	json_str(j, one);
	json_str(j, other);
	json_end_arr(j);
}

static void json_choices(struct json *j, const char *choices)
{
	json_key(j, "enum");
	json_arr(j);
	for (const char *at = choices; at;) {
		const char *bar = strchr(at, '|');
		char word[CONF_PLACE_MAX];
		(void)snprintf(word, sizeof word, "%.*s", bar ? (int)(bar - at) : (int)strlen(at),
			       at);
		json_str(j, word);
		at = bar ? bar + 1 : NULL;
	}
	json_end_arr(j);
}

static void json_integer(struct json *j, const struct rp_key *key)
{
	json_type(j, "integer", NULL);
	if (!key->min && !key->max)
		return;
	if (key->min != INT64_MIN)
		json_kint(j, "minimum", key->min);
	if (key->max != INT64_MAX)
		json_kint(j, "maximum", key->max);
}

static void json_default(struct json *j, const struct rp_key *key)
{
	bool truth;
	int64_t number;
	double decimal;
	if (key->type == RP_T_BOOL && str_to_bool(key->fallback, &truth) == 0) {
		json_kbool(j, "default", truth);
	} else if (key->type == RP_T_INT && str_to_i64(key->fallback, &number) == 0) {
		json_kint(j, "default", number);
	} else if (key->type == RP_T_NUMBER && str_to_double(key->fallback, &decimal) == 0) {
		json_key(j, "default");
		json_num(j, decimal);
	} else if (key->type != RP_T_LIST && key->type != RP_T_MAP && key->type != RP_T_ANY) {
		json_kstr(j, "default", key->fallback);
	}
}

static void json_node(struct json *j, const struct schema_node *s, bool fold);

static void json_map(struct json *j, const struct schema_node *s, bool fold)
{
	json_type(j, "object", NULL);
	if (schema_open(s))
		return;
	json_key(j, "properties");
	json_obj(j);
	bool required = false;
	for (const struct schema_node *c = s->first; c; c = c->next) {
		json_key(j, c->key.path);
		json_node(j, c, fold);
		required |= c->key.flags & RP_KEY_REQUIRED;
	}
	json_end_obj(j);
	json_key(j, "additionalProperties");
	if (s->any)
		json_node(j, s->any, fold);
	else
		json_bool(j, fold);
	/* A name in another case satisfies the loader, but no editor. */
	if (!required || fold)
		return;
	json_key(j, "required");
	json_arr(j);
	for (const struct schema_node *c = s->first; c; c = c->next)
		if (c->key.flags & RP_KEY_REQUIRED)
			json_str(j, c->key.path);
	json_end_arr(j);
}

static void json_list(struct json *j, const struct schema_node *s, bool fold)
{
	json_type(j, "array", NULL);
	if (!s->elem)
		return;
	json_key(j, "items");
	json_node(j, s->elem, fold);
}

static void json_scalar(struct json *j, const struct rp_key *key)
{
	switch (key->type) {
	case RP_T_BOOL:
		json_type(j, "boolean", NULL);
		break;
	case RP_T_INT:
		json_integer(j, key);
		break;
	case RP_T_NUMBER:
		json_type(j, "number", NULL);
		break;
	case RP_T_ENUM:
		json_choices(j, key->choices);
		break;
	case RP_T_STRING:
	case RP_T_DURATION:
		json_type(j, "string", NULL);
		break;
	case RP_T_ANY:
		break;
	default:
		json_type(j, "string", "number");
	}
}

static void json_node(struct json *j, const struct schema_node *s, bool fold)
{
	const struct rp_key *key = &s->key;
	json_obj(j);
	if (key->type == RP_T_MAP)
		json_map(j, s, fold);
	else if (key->type == RP_T_LIST)
		json_list(j, s, fold);
	else
		json_scalar(j, key);
	if (key->flags & RP_KEY_NON_EMPTY)
		json_kint(j,
			  key->type == RP_T_LIST  ? "minItems"
			  : key->type == RP_T_MAP ? "minProperties"
						  : "minLength",
			  1);
	if (key->doc && key->doc[0])
		json_kstr(j, "description", key->doc);
	if (key->fallback)
		json_default(j, key);
	json_end_obj(j);
}

static int build_all(struct arena *arena, const struct conf_named_schema *modules,
		     unsigned n_modules, struct schema_tree ***ret)
{
	struct schema_tree **trees =
		arena_array(arena, n_modules + 1, sizeof(struct schema_tree *));
	int rc = trees ? schema_build(arena, conf_core_schema(), &trees[n_modules], NULL) : -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < n_modules; i++)
		rc = schema_build(arena, modules[i].schema, &trees[i], NULL);
	*ret = trees;
	return rc;
}

int conf_json_schema(const struct conf_named_schema *modules, unsigned n_modules, struct buf *out)
{
	_arena_ struct arena *arena = arena_new(CONF_ARENA_BLOCK, CONF_ARENA_MAX);
	struct schema_tree **trees;
	int rc = arena ? build_all(arena, modules, n_modules, &trees) : -ENOMEM;
	if (rc < 0)
		return rc;
	struct json j;
	json_init(&j, out);
	json_obj(&j);
	json_kstr(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_kstr(&j, "title", "rp.conf");
	json_type(&j, "object", NULL);
	json_key(&j, "properties");
	json_obj(&j);
	for (const struct schema_node *c = trees[n_modules]->root.first; c; c = c->next) {
		json_key(&j, c->key.path);
		json_node(&j, c, false);
	}
	for (unsigned i = 0; i < n_modules; i++) {
		json_key(&j, modules[i].module);
		json_node(&j, &trees[i]->root, trees[i]->fold);
	}
	json_end_obj(&j);
	/* Sections of modules that are not installed here. */
	json_key(&j, "additionalProperties");
	json_obj(&j);
	json_type(&j, "object", NULL);
	json_end_obj(&j);
	json_end_obj(&j);
	return out->failed;
}
