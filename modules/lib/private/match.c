/* SPDX-License-Identifier: Apache-2.0 */
/* Values of containers by key, expressions, and expansion of references in texts. */
#include <ctype.h>
#include <string.h>

#include <nri-rp/lib/glob.h>
#include "modules/lib/private/match.h"
#include <nri-rp/lib/section.h>

/* ---- keys ------------------------------------------------------------------------------------ */

static const char *const qos_names[] = {"Guaranteed", "Burstable", "BestEffort"};

static const char *match_after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);
	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static const char *pod_value(const struct modhost *h, const struct rp_ctr_info *info,
			     const char *key)
{
	struct rp_pod_info pod = {.size = sizeof pod};
	const char *label = match_after(key, "labels/");
	if (label)
		return h->cache->pod_label(h->ctx, info->pod, label);
	if (strcmp(key, "name") == 0)
		return info->pod_name;
	if (strcmp(key, "namespace") == 0)
		return info->pod_namespace;
	if (h->cache->get_pod(h->ctx, info->pod, &pod))
		return NULL;
	if (strcmp(key, "qosclass") == 0)
		return pod.qos < 3 ? qos_names[pod.qos] : NULL;
	if (strcmp(key, "id") == 0)
		return pod.id;
	return strcmp(key, "uid") == 0 ? pod.uid : NULL;
}

static const char *simple_value(const struct modhost *h, const struct rp_ctr_info *info,
				const char *key)
{
	const char *rest = match_after(key, "pod/");
	if (rest)
		return pod_value(h, info, rest);
	rest = match_after(key, "labels/");
	if (rest)
		return h->cache->ctr_label(h->ctx, info->ctr, rest);
	if (strcmp(key, "name") == 0)
		return info->name;
	if (strcmp(key, "namespace") == 0)
		return info->pod_namespace;
	if (strcmp(key, "qosclass") == 0)
		return info->qos < 3 ? qos_names[info->qos] : NULL;
	return strcmp(key, "id") == 0 ? info->id : NULL;
}

static bool is_separator(char c)
{
	return c && !isalnum((unsigned char)c) && c != '/' && c != '.';
}

/* Splits a joint key into its parts. False: it is a simple key. */
static bool split_key(const char *key, char *split, char *join, const char **parts)
{
	if (key[0] != ':' || strlen(key) < 4)
		return false;
	bool given = is_separator(key[1]) && is_separator(key[2]);
	*split = given ? key[1] : ':';
	*join = given ? key[2] : ':';
	*parts = key + (given ? 3 : 1);
	return true;
}

struct out {
	char *buf;
	size_t len, size;
};

static void match_put(struct out *o, const char *text, size_t n)
{
	if (n > o->size - 1 - o->len)
		n = o->size - 1 - o->len;
	memcpy(o->buf + o->len, text, n);
	o->len += n;
	o->buf[o->len] = '\0';
}

/* Copies one part of a key into buf; "" if it is longer than MATCH_VALUE_MAX, as no such key
 * exists. */
static const char *copy_part(const char *part, size_t n, char buf[MATCH_VALUE_MAX])
{
	if (n >= MATCH_VALUE_MAX)
		n = 0;
	memcpy(buf, part, n);
	buf[n] = '\0';
	return buf;
}

bool match_value(const struct modhost *h, const struct rp_ctr_info *info, const char *key,
		 char *buf, size_t size)
{
	char split, join, part[MATCH_VALUE_MAX];
	const char *parts;
	struct out o = {buf, 0, size};
	buf[0] = '\0';
	if (!split_key(key, &split, &join, &parts)) {
		const char *v = simple_value(h, info, key);
		if (v)
			match_put(&o, v, strlen(v));
		return v != NULL;
	}
	bool found = false;
	for (;;) {
		const char *end = strchr(parts, split);
		size_t n = end ? (size_t)(end - parts) : strlen(parts);
		const char *v = simple_value(h, info, copy_part(parts, n, part));
		if (v)
			match_put(&o, v, strlen(v));
		found = found || v;
		if (!end)
			return found;
		match_put(&o, &join, 1);
		parts = end + 1;
	}
}

/* Returns NULL if the key is valid, else the error. */
static const char *check_simple_key(const char *key)
{
	static const char *const words[] = {"name", "namespace", "qosclass", "id", "uid"};
	static const char *const maps[] = {"labels", "tags"};
	const char *rest = match_after(key, "pod/");
	if (rest ? !*rest : strcmp(key, "pod") == 0)
		return "nothing follows \"pod\"";
	if (rest)
		key = rest;
	size_t n = strcspn(key, "/");
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i]) == n && strncmp(key, words[i], n) == 0)
			return key[n] ? "nothing may follow its last word" : NULL;
	for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
		if (strlen(maps[i]) == n && strncmp(key, maps[i], n) == 0)
			return key[n] && key[n + 1] ? NULL : "nothing follows its last word";
	return "it has an unknown word";
}

static const char *check_key(const char *key)
{
	char split, join, part[MATCH_VALUE_MAX];
	const char *parts;
	if (!split_key(key, &split, &join, &parts))
		return check_simple_key(key);
	for (;;) {
		const char *end = strchr(parts, split);
		size_t n = end ? (size_t)(end - parts) : strlen(parts);
		const char *wrong = check_simple_key(copy_part(parts, n, part));
		if (wrong || !end)
			return wrong;
		parts = end + 1;
	}
}

/* ---- expressions ----------------------------------------------------------------------------- */

enum { OP_EQUALS, OP_IN, OP_EXISTS, OP_ALWAYS, OP_MATCHES };

#define NEGATED 0x1u
#define NO_STAR 0x2u /* "*" is an ordinary value */

static const struct {
	const char *name;
	uint32_t op, flags;
	int32_t n_values; /* number of values; -1: any number */
} operators[] = {
	{"Equals", OP_EQUALS, 0, 1},
	{"NotEqual", OP_EQUALS, NEGATED | NO_STAR, 1},
	{"In", OP_IN, 0, -1},
	{"NotIn", OP_IN, NEGATED, -1},
	{"Exists", OP_EXISTS, 0, 0},
	{"NotExist", OP_EXISTS, NEGATED, 0},
	{"NotExists", OP_EXISTS, NEGATED, 0},
	{"AlwaysTrue", OP_ALWAYS, 0, 0},
	{"Matches", OP_MATCHES, 0, 1},
	{"MatchesNot", OP_MATCHES, NEGATED, 1},
	{"MatchesAny", OP_MATCHES, 0, -1},
	{"MatchesNone", OP_MATCHES, NEGATED, -1},
};
#define N_OPERATORS (sizeof operators / sizeof operators[0])

static int32_t check_values(const struct modhost *h, rp_cfg node, const char *what,
			    const struct expr *e)
{
	int32_t wanted = operators[e->op].n_values;
	if (wanted >= 0 && e->values.n != (uint32_t)wanted)
		return modhost_refuse(h, node, "%s: operator %s takes %d values, found %u", what,
				      operators[e->op].name, wanted, e->values.n);
	for (uint32_t i = 0; operators[e->op].op == OP_MATCHES && i < e->values.n; i++)
		if (!glob_valid(e->values.list[i]))
			return modhost_refuse(h, node, "%s: \"%.64s\" is not a valid pattern", what,
					      e->values.list[i]);
	return 0;
}

int32_t match_read_one(const struct modhost *h, struct blocks *memory, rp_cfg node,
		       const char *what, struct expr *ret)
{
	uint32_t op = 0;
	if (h->config->kind(h->ctx, node) != RP_NODE_MAP)
		return modhost_refuse(h, node, "%s: an expression needs key, operator and values",
				      what);
	const char *name = section_text(h, node, "operator", "");
	ret->key = section_text(h, node, "key", "");
	while (op < N_OPERATORS && strcmp(operators[op].name, name) != 0)
		op++;
	if (op == N_OPERATORS)
		return modhost_refuse(h, node, "%s: unknown operator \"%.64s\"", what, name);
	ret->op = op;
	rp_cfg values = section_get(h, node, "values");
	uint32_t kind = h->config->kind(h->ctx, values);
	if (values && kind != RP_NODE_LIST && kind != RP_NODE_NULL)
		return modhost_refuse(h, node, "%s: the values of an expression must be a list",
				      what);
	int32_t r = texts_read(h, memory, values, 0, &ret->values);
	if (!r)
		r = check_values(h, node, what, ret);
	if (r || operators[op].op == OP_ALWAYS)
		return r;
	const char *wrong = check_key(ret->key);
	return wrong ? modhost_refuse(h, node, "%s: bad key \"%.64s\": %s", what, ret->key, wrong)
		     : 0;
}

int32_t match_read(const struct modhost *h, struct blocks *memory, rp_cfg list, const char *what,
		   struct exprs *ret)
{
	uint32_t n = h->config->count(h->ctx, list);
	*ret = (struct exprs){blocks_alloc(memory, n, sizeof *ret->list), n};
	if (!ret->list)
		return modhost_no_memory(h);
	for (uint32_t i = 0; i < n; i++) {
		int32_t r = match_read_one(h, memory, h->config->item(h->ctx, list, i), what,
					   &ret->list[i]);
		if (r)
			return r;
	}
	return 0;
}

static bool has_value(const struct expr *e, const char *value)
{
	uint32_t flags = operators[e->op].flags;
	for (uint32_t i = 0; i < e->values.n; i++) {
		const char *want = e->values.list[i];
		if (strcmp(want, value) == 0 || (!(flags & NO_STAR) && strcmp(want, "*") == 0))
			return true;
	}
	return false;
}

bool match_holds(const struct modhost *h, const struct expr *e, const struct rp_ctr_info *info)
{
	char value[MATCH_VALUE_MAX];
	uint32_t op = operators[e->op].op;
	if (op == OP_ALWAYS)
		return true;
	bool is = match_value(h, info, e->key, value, sizeof value);
	if (is && op == OP_MATCHES)
		is = glob_any(&e->values, value);
	else if (is && op != OP_EXISTS)
		is = has_value(e, value);
	return is != ((operators[e->op].flags & NEGATED) != 0);
}

int32_t match_any(const struct modhost *h, const struct exprs *exprs,
		  const struct rp_ctr_info *info)
{
	for (uint32_t i = 0; i < exprs->n; i++)
		if (match_holds(h, &exprs->list[i], info))
			return (int32_t)i;
	return -1;
}

/* ---- texts with keys ------------------------------------------------------------------------- */

/* Parses a reference at p ("$") and returns its end and its key; the key of "$$" is NULL. NULL:
 * malformed, with the error in *wrong. */
static const char *next_key(const char *p, const char **key, size_t *n, const char **wrong)
{
	*key = NULL;
	*n = 0;
	p++;
	if (*p == '$')
		return p + 1;
	bool braces = *p == '{';
	*key = p += braces;
	*n = strcspn(p, braces ? "}${" : "$}{");
	p += *n;
	if (!*n)
		*wrong = "a key is empty";
	else if (braces && *p != '}')
		*wrong = *p == '$' ? "a $ within braces" : "a brace is not closed";
	else if (!braces && (*p == '{' || *p == '}'))
		*wrong = "an unmatched closing brace";
	else
		return p + braces;
	return NULL;
}

static bool match_do_expand(const struct modhost *h, const struct rp_ctr_info *info,
			    const char *text, struct out *o, const char **wrong)
{
	bool complete = true;
	char name[MATCH_VALUE_MAX], value[MATCH_VALUE_MAX];
	while (*text) {
		size_t n = strcspn(text, "${}");
		const char *key;
		if (o)
			match_put(o, text, n);
		text += n;
		if (*text == '{' || *text == '}') {
			*wrong = "an unmatched closing brace";
			return false;
		}
		if (!*text)
			break;
		text = next_key(text, &key, &n, wrong);
		if (!text)
			return false;
		if (!o)
			continue;
		if (!key) {
			match_put(o, "$", 1);
			continue;
		}
		complete = match_value(h, info, copy_part(key, n, name), value, sizeof value) &&
			   complete;
		match_put(o, value, strlen(value));
	}
	return complete;
}

const char *match_check_text(const char *text)
{
	const char *wrong = NULL;
	(void)match_do_expand(NULL, NULL, text, NULL, &wrong);
	return wrong;
}

bool match_expand(const struct modhost *h, const struct rp_ctr_info *info, const char *text,
		  char *buf, size_t size)
{
	struct out o = {buf, 0, size};
	const char *wrong = NULL;
	buf[0] = '\0';
	bool complete = match_do_expand(h, info, text, &o, &wrong);
	if (wrong)
		buf[0] = '\0';
	return complete && !wrong;
}
