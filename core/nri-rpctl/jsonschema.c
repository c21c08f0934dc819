/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes key tables as a JSON schema for editors and as custom resource definitions for API
 * servers. Schemas in definitions must be *structural*: each value has one type, an object has
 * either named members or any members, and there are no alternatives.
 */
#include "core/nri-rpctl/jsonschema.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/conf/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/json.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

struct style {
	bool structural;
	bool fold; /* keys match regardless of case */
	/* below a list, all members are in one file: files merge maps, but replace lists */
	bool whole;
};

static void json_type(struct json *j, const char *type)
{
	json_kstr(j, "type", type);
}

/* Writes the types of a value. Outside of structural schemas a key may be null, and scalars may
 * have other types, because the loader reads them as text: `others`, separated by '|'. */
static void json_types(struct json *j, bool structural, const char *type, const char *others)
{
	if (structural) {
		json_type(j, type);
		return;
	}
	json_karr(j, "type");
	json_str(j, type);
	for (const char *at = others; at && *at;) {
		char word[CONF_PLACE_MAX];
		const size_t n = strcspn(at, "|");
		(void)snprintf(word, sizeof word, "%.*s", (int)n, at);
		json_str(j, word);
		at += n + (at[n] == '|');
	}
	json_str(j, "null");
	json_end_arr(j);
}

/* Writes the value as which a YAML reader reads a choice: a boolean for "off", a number for "0". */
static void json_choice_read(struct json *j, const char *word)
{
	bool truth;
	int64_t number;
	if (str_to_i64(word, &number) == 0)
		json_int(j, number);
	else if (str_to_bool(word, &truth) == 0)
		json_bool(j, truth);
}

static void json_choices(struct json *j, const char *choices, bool structural)
{
	json_karr(j, "enum");
	for (const char *at = choices; at;) {
		const char *bar = strchr(at, '|');
		char word[CONF_PLACE_MAX];
		(void)snprintf(word, sizeof word, "%.*s", bar ? (int)(bar - at) : (int)strlen(at),
			       at);
		json_str(j, word);
		if (!structural)
			json_choice_read(j, word);
		at = bar ? bar + 1 : NULL;
	}
	if (!structural)
		json_nil(j);
	json_end_arr(j);
}

/* Largest integer that API servers handle exactly: they use JavaScript's numbers. */
#define EXACT_MAX (INT64_C(1) << 53)

static bool worth_saying(int64_t bound, int64_t none, bool structural)
{
	return bound != none && (!structural || (bound <= EXACT_MAX && bound >= -EXACT_MAX));
}

static void json_integer(struct json *j, const struct rp_key *key, bool structural)
{
	json_types(j, structural, "integer", NULL);
	if (!key->min && !key->max)
		return;
	if (worth_saying(key->min, INT64_MIN, structural))
		json_kint(j, "minimum", key->min);
	if (worth_saying(key->max, INT64_MAX, structural))
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

/* Writes that any value is allowed, in a custom resource definition. */
static void json_anything(struct json *j)
{
	json_kbool(j, "x-kubernetes-preserve-unknown-fields", true);
}

static void json_node(struct json *j, const struct schema_node *s, struct style style);

static void json_members(struct json *j, const struct schema_node *s, struct style style)
{
	if (s->any) {
		json_key(j, "additionalProperties");
		json_node(j, s->any, style);
	} else if (!style.structural) {
		json_kbool(j, "additionalProperties", style.fold);
	}
}

static void json_map(struct json *j, const struct schema_node *s, struct style style)
{
	json_types(j, style.structural, "object", NULL);
	if (schema_open(s) && style.structural)
		json_anything(j);
	if (schema_open(s))
		return;
	/* Structural schemas have either named or arbitrary members. */
	if (style.structural && !s->first) {
		json_members(j, s, style);
		return;
	}
	if (style.structural && (s->any || style.fold))
		json_anything(j);
	json_kobj(j, "properties");
	bool required = false;
	for (const struct schema_node *c = s->first; c; c = c->next) {
		json_key(j, c->key.path);
		json_node(j, c, style);
		required |= c->key.flags & RP_KEY_REQUIRED;
	}
	json_end_obj(j);
	if (!style.structural)
		json_members(j, s, style);
	/* Required keys are omitted where an editor would report them wrongly: the loader accepts
	 * another case, and another file of rp.conf.d may have the key. */
	if (!required || style.fold || !(style.structural || style.whole))
		return;
	json_karr(j, "required");
	for (const struct schema_node *c = s->first; c; c = c->next)
		if (c->key.flags & RP_KEY_REQUIRED)
			json_str(j, c->key.path);
	json_end_arr(j);
}

static void json_list(struct json *j, const struct schema_node *s, struct style style)
{
	style.whole = true;
	json_types(j, style.structural, "array", NULL);
	if (!s->elem && !style.structural)
		return;
	json_key(j, "items");
	if (s->elem) {
		json_node(j, s->elem, style);
		return;
	}
	json_obj(j);
	json_anything(j);
	json_end_obj(j);
}

static void json_scalar(struct json *j, const struct rp_key *key, bool structural)
{
	switch (key->type) {
	case RP_T_BOOL:
		json_types(j, structural, "boolean", "string|integer");
		if (!structural)
			json_kstr(j, "pattern",
				  "^([tTfFyYnN]|true|True|TRUE|false|False|FALSE|"
				  "yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$");
		break;
	case RP_T_INT:
		json_integer(j, key, structural);
		break;
	case RP_T_NUMBER:
		json_types(j, structural, "number", NULL);
		break;
	case RP_T_ENUM:
		if (structural)
			json_type(j, "string");
		json_choices(j, key->choices, structural);
		break;
	case RP_T_STRING:
		json_types(j, structural, "string", "number|boolean");
		break;
	case RP_T_DURATION:
		json_types(j, structural, "string", "number");
		break;
	case RP_T_ANY:
		if (structural)
			json_anything(j);
		break;
	default:
		if (structural)
			json_kbool(j, "x-kubernetes-int-or-string", true);
		else
			json_types(j, false, "string", "number");
	}
}

static bool is_text(uint32_t type)
{
	return type == RP_T_STRING || type == RP_T_ENUM || type == RP_T_DURATION;
}

static void json_non_empty(struct json *j, const struct rp_key *key, bool structural)
{
	if (key->type == RP_T_LIST)
		json_kint(j, "minItems", 1);
	else if (key->type == RP_T_MAP)
		json_kint(j, "minProperties", 1);
	else if (!structural || is_text(key->type))
		json_kint(j, "minLength", 1);
}

/* Writes a key's description. In custom resource definitions the default is part of the text,
 * because it may change with the version on each node. */
static void json_words(struct json *j, const struct rp_key *key, bool structural)
{
	bool tell = structural && key->fallback && *key->fallback;
	_free_ char *text =
		tell ? str_printf("%s Default: %s.", key->doc ? key->doc : "", key->fallback)
		     : NULL;
	if (text)
		json_kstr(j, "description", text);
	else if (key->doc && key->doc[0])
		json_kstr(j, "description", key->doc);
	if (tell && !text)
		j->out->failed = -ENOMEM;
	if (key->fallback && !structural)
		json_default(j, key);
}

static void json_node(struct json *j, const struct schema_node *s, struct style style)
{
	const struct rp_key *key = &s->key;
	json_obj(j);
	if (key->type == RP_T_MAP)
		json_map(j, s, style);
	else if (key->type == RP_T_LIST)
		json_list(j, s, style);
	else
		json_scalar(j, key, style.structural);
	if (key->flags & RP_KEY_NON_EMPTY)
		json_non_empty(j, key, style.structural);
	json_words(j, key, style.structural);
	json_end_obj(j);
}

/* ---- parts of the core in policies ----------------------------------------------------------- */

/* Adds the core's members of a part such as control to the policy's members of that part. Where the
 * core allows any key in a member, so does the result. */
static int merge_part(struct arena *arena, struct schema_node *own, const struct schema_node *core)
{
	struct schema_node **end = &own->first, *added;
	for (; *end; end = &(*end)->next) {
		const struct schema_node *other = schema_child(core, (*end)->key.path, false);
		if (!other || !schema_open(other) || schema_open(*end) || (*end)->any)
			continue;
		added = arena_zero(arena, struct schema_node);
		if (!added)
			return -ENOMEM;
		added->key.type = RP_T_ANY;
		(*end)->any = added;
	}
	for (const struct schema_node *c = core->first; c; c = c->next) {
		if (schema_child(own, c->key.path, false))
			continue;
		added = arena_zero(arena, struct schema_node);
		if (!added)
			return -ENOMEM;
		*added = *c;
		added->next = NULL;
		*end = added;
		end = &added->next;
	}
	return 0;
}

/* Adds the common parts to the tree of a policy: for its resource, and for its section, into which
 * a resource's spec may have been copied. */
static int add_common_parts(struct arena *arena, struct schema_tree *tree,
			    const struct schema_tree *core)
{
	struct schema_node **end = &tree->root.first;
	int r = 0;
	if (!tree->cr_kind || schema_open(&tree->root))
		return 0;
	for (; !r && *end; end = &(*end)->next)
		if (conf_has_string(&conf_common_parts, (*end)->key.path))
			r = merge_part(arena, *end,
				       schema_child(&core->root, (*end)->key.path, false));
	for (unsigned i = 0; !r && i < conf_common_parts.n; i++) {
		const char *key = conf_common_parts.items[i];
		if (schema_child(&tree->root, key, false))
			continue;
		struct schema_node *part = arena_zero(arena, struct schema_node);
		if (!part)
			return -ENOMEM;
		*part = *schema_child(&core->root, key, false);
		part->next = NULL;
		*end = part;
		end = &part->next;
	}
	return r;
}

static int build_all(struct arena *arena, const struct conf_named_schema *modules,
		     unsigned n_modules, struct schema_tree ***ret)
{
	struct schema_tree **trees =
		arena_array(arena, n_modules + 1, sizeof(struct schema_tree *));
	int rc = trees ? schema_build(arena, conf_core_schema(), &trees[n_modules], NULL) : -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < n_modules; i++) {
		rc = schema_build(arena, modules[i].schema, &trees[i], NULL);
		if (!rc)
			rc = add_common_parts(arena, trees[i], trees[n_modules]);
	}
	*ret = trees;
	return rc;
}

/* Writes the keys of a custom resource, because a document of rp.conf can be a complete one. */
static void json_resource_keys(struct json *j)
{
	static const char *const keys[][2] = {{"apiVersion", "string"},
					      {"kind", "string"},
					      {"metadata", "object"},
					      {"spec", "object"},
					      {"status", "object"}};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_kobj(j, keys[i][0]);
		json_type(j, keys[i][1]);
		json_end_obj(j);
	}
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
	json_type(&j, "object");
	json_kobj(&j, "properties");
	for (const struct schema_node *c = trees[n_modules]->root.first; c; c = c->next) {
		json_key(&j, c->key.path);
		json_node(&j, c, (struct style){.fold = false});
	}
	for (unsigned i = 0; i < n_modules; i++) {
		json_key(&j, modules[i].module);
		json_node(&j, &trees[i]->root, (struct style){.fold = trees[i]->fold});
	}
	json_resource_keys(&j);
	json_end_obj(&j);
	/* Sections of modules that are not installed. */
	json_kobj(&j, "additionalProperties");
	json_types(&j, false, "object", NULL);
	json_end_obj(&j);
	json_end_obj(&j);
	return out->failed;
}

/* ---- custom resources ------------------------------------------------------------------------ */

#define NAME_MAX_CRD 64u

/* Text of a definition before the keys of the spec, with ' for ". Its arguments are the plural, the
 * kind twice, the plural and the singular. The columns are those that kubectl get shows. */
static const char crd_begin[] =
	"{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
	"'metadata':{'name':'%s.config.nri'},'spec':{'group':'config.nri','scope':'Namespaced',"
	"'names':{'kind':'%s','listKind':'%sList','plural':'%s','singular':'%s'},"
	"'versions':[{'name':'v1alpha1','served':true,'storage':true,'additionalPrinterColumns':["
	"{'name':'Generation','type':'integer','jsonPath':'.metadata.generation'},"
	"{'name':'Nodes','type':'string','jsonPath':'.spec.nodeSelector'},"
	"{'name':'Status','type':'string','jsonPath':'.status.nodes.*.status'},"
	"{'name':'Age','type':'date','jsonPath':'.metadata.creationTimestamp'}],"
	"'subresources':{'status':{}},'schema':{'openAPIV3Schema':{"
	"'type':'object','required':['spec'],'properties':{'apiVersion':{'type':'string'},"
	"'kind':{'type':'string'},'metadata':{'type':'object'},"
	"'spec':{'type':'object','properties':{";

/* Text behind them: the labels by which nri-rp-agent decides which nodes follow the object, and the
 * status, in which it reports for each node. */
static const char crd_end[] =
	"'nodeSelector':{'type':'object','description':'Labels of the nodes that follow this "
	"object. Default: all nodes that its name stands for.',"
	"'additionalProperties':{'type':'string'}}}},"
	"'status':{'type':'object','properties':{"
	"'nodes':{'type':'object','additionalProperties':{'type':'object','properties':{"
	"'status':{'type':'string'},'errors':{'type':'string'},'warnings':{'type':'string'},"
	"'timestamp':{'type':'string'},'generation':{'type':'integer'}}}}}}}}}}]}}";

static void __attribute__((format(printf, 2, 3))) put_quoted(struct buf *out, const char *fmt, ...)
{
	struct buf text = BUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	(void)buf_vprintf(&text, fmt, ap);
	va_end(ap);
	for (const char *c = buf_text(&text); *c; c++)
		(void)buf_add(out, *c == '\'' ? "\"" : c, 1);
	if (text.failed)
		out->failed = text.failed;
	buf_fini(&text);
}

/* Writes a key of the spec; the text behind the keys begins with another one. */
static void put_key(struct buf *out, const char *key, const struct schema_node *s, bool fold)
{
	struct json j;
	json_init(&j, out);
	json_key(&j, key);
	json_node(&j, s, (struct style){.structural = true, .fold = fold});
	(void)buf_add_str(out, ",");
}

/* Writes a definition with the keys of the policy and the core's common parts (rewrite.c). The
 * plural of "BalloonsPolicy" is "balloonspolicies". */
static void put_definition(struct buf *out, const struct schema_tree *policy,
			   const struct schema_tree *core)
{
	char singular[NAME_MAX_CRD], plural[NAME_MAX_CRD + 4];
	const char *kind = policy->cr_kind;
	(void)snprintf(singular, sizeof singular, "%s", kind);
	for (char *c = singular; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	bool y = str_has_suffix(singular, "y");
	(void)snprintf(plural, sizeof plural, "%.*s%s", (int)(strlen(singular) - y), singular,
		       y ? "ies" : "s");
	put_quoted(out, crd_begin, plural, kind, kind, plural, singular);
	for (const struct schema_node *c = policy->root.first; c; c = c->next)
		put_key(out, c->key.path, c, policy->fold);
	for (unsigned i = 0; i < conf_common_parts.n; i++) {
		const char *key = conf_common_parts.items[i];
		if (!schema_child(&policy->root, key, false))
			put_key(out, key, schema_child(&core->root, key, false), false);
	}
	put_quoted(out, "%s", crd_end);
}

int conf_crds(const struct conf_named_schema *modules, unsigned n_modules, struct buf *out)
{
	_arena_ struct arena *arena = arena_new(CONF_ARENA_BLOCK, CONF_ARENA_MAX);
	struct schema_tree **trees;
	const char *between = "";
	int rc = arena ? build_all(arena, modules, n_modules, &trees) : -ENOMEM;
	if (rc < 0)
		return rc;
	put_quoted(out, "{'apiVersion':'v1','kind':'List','items':[");
	for (unsigned i = 0; i < n_modules; i++) {
		if (!trees[i]->cr_kind)
			continue;
		(void)buf_add_str(out, between);
		put_definition(out, trees[i], trees[n_modules]);
		between = ",";
	}
	(void)buf_add_str(out, "]}");
	return out->failed;
}
