/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over containers: a key, an operator, values. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "modules/topology-aware/ta.h"

#define VALUE_MAX 2048u /* of a key that is made of several; what is more is cut off */
#define KEY_MAX 512u
#define JOINT_MIN 4u /* characters of such a key */

enum { EQUALS, NOT_EQUAL, IN, NOT_IN, EXISTS, NOT_EXIST, ALWAYS, MATCHES, MATCHES_NOT, ANY, NONE };

/* How many values an operator takes. */
enum { NO_VALUE, ONE_VALUE, ANY_VALUES };

static const struct {
	const char *name;
	uint32_t takes;
} operators[] = {
	[EQUALS] = {"Equals", ONE_VALUE},
	[NOT_EQUAL] = {"NotEqual", ONE_VALUE},
	[IN] = {"In", ANY_VALUES},
	[NOT_IN] = {"NotIn", ANY_VALUES},
	[EXISTS] = {"Exists", NO_VALUE},
	[NOT_EXIST] = {"NotExist", NO_VALUE},
	[ALWAYS] = {"AlwaysTrue", NO_VALUE},
	[MATCHES] = {"Matches", ONE_VALUE},
	[MATCHES_NOT] = {"MatchesNot", ONE_VALUE},
	[ANY] = {"MatchesAny", ANY_VALUES},
	[NONE] = {"MatchesNone", ANY_VALUES},
};
#define N_OPERATORS (sizeof operators / sizeof operators[0])

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static int32_t check_simple_key(struct rp_instance *inst, const char *key)
{
	static const char *const names[] = {"name", "namespace", "qosclass", "id", "uid"};
	const char *rest = strncmp(key, "pod/", 4) == 0 ? key + 4 : key;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(rest, names[i]) == 0)
			return 0;
	if (strncmp(rest, "labels/", 7) == 0 && rest[7])
		return 0;
	if (rest == key && strncmp(rest, "tags/", 5) == 0 && rest[5])
		return 0;
	return modhost_fail(&inst->h, -RP_EINVAL, "\"%.64s\" is no key of a container", key);
}

static bool is_joint(const char *key)
{
	return key[0] == ':' && strlen(key) >= JOINT_MIN;
}

static bool separates(char c)
{
	return !isalnum((unsigned char)c) && c != '/' && c != '.';
}

/* The keys of a joint key, and what goes between keys and between values. */
static const char *split_joint(const char *key, char *ret_keys, char *ret_values)
{
	bool given = separates(key[1]) && separates(key[2]);
	*ret_keys = given ? key[1] : ':';
	*ret_values = given ? key[2] : ':';
	return key + (given ? 3 : 1);
}

/* Copies one of the keys; what is behind it, or NULL after the last one. */
static const char *next_key(const char *p, char separator, char *ret)
{
	size_t len = 0;
	while (p[len] && p[len] != separator)
		len++;
	(void)snprintf(ret, KEY_MAX, "%.*s", (int)len, p);
	return p[len] ? p + len + 1 : NULL;
}

static int32_t check_key(struct rp_instance *inst, const char *key)
{
	char one[KEY_MAX], keys, values;
	if (strlen(key) >= KEY_MAX)
		return modhost_fail(&inst->h, -RP_EINVAL, "the key \"%.32s…\" is too long", key);
	if (!is_joint(key))
		return check_simple_key(inst, key);
	int32_t r = 0;
	for (const char *p = split_joint(key, &keys, &values); p && !r;) {
		p = next_key(p, keys, one);
		r = check_simple_key(inst, one);
	}
	return r;
}

static int32_t check_values(struct rp_instance *inst, const struct expr *e)
{
	uint32_t takes = operators[e->operator].takes;
	const char *name = operators[e->operator].name;
	if (takes == NO_VALUE && e->values.n)
		return modhost_fail(&inst->h, -RP_EINVAL, "operator %s takes no values", name);
	if (takes == ONE_VALUE && e->values.n != 1)
		return modhost_fail(&inst->h, -RP_EINVAL, "operator %s takes one value, not %u",
				    name, e->values.n);
	for (uint32_t i = 0; e->operator>= MATCHES && i<e->values.n; i++)
		if (!glob_valid(e->values.items[i]))
			return modhost_fail(&inst->h, -RP_EINVAL, "\"%.64s\" is no valid pattern",
					    e->values.items[i]);
	return 0;
}

static int32_t read_values(struct rp_instance *inst, rp_cfg list, struct expr *e)
{
	const struct modhost *h = &inst->h;
	uint32_t n = h->config->count(h->ctx, list);
	if (list && h->config->kind(h->ctx, list) != RP_NODE_LIST &&
	    h->config->kind(h->ctx, list) != RP_NODE_NULL)
		return modhost_fail(h, -RP_EINVAL, "the values of an expression have to be a list");
	if (n && !(e->values.items = calloc(n, sizeof *e->values.items)))
		return modhost_fail(h, -RP_ENOMEM, "out of memory");
	for (; e->values.n < n; e->values.n++)
		e->values.items[e->values.n] =
			h->config->text(h->ctx, h->config->item(h->ctx, list, e->values.n), "");
	return 0;
}

int32_t expr_read(struct rp_instance *inst, rp_cfg node, struct expr *ret)
{
	const struct modhost *h = &inst->h;
	struct expr e = {0};
	if (h->config->kind(h->ctx, node) != RP_NODE_MAP)
		return modhost_fail(h, -RP_EINVAL,
				    "an expression has to have key, operator and values");
	e.key = h->config->text(h->ctx, h->config->get(h->ctx, node, "key"), "");
	const char *name = h->config->text(h->ctx, h->config->get(h->ctx, node, "operator"), "");
	while (e.operator < N_OPERATORS && strcmp(operators[e.operator].name, name) != 0)
		e.operator++;
	if (e.operator== N_OPERATORS)
		return modhost_fail(h, -RP_EINVAL, "\"%.64s\" is no operator of an expression",
				    name);
	int32_t r = read_values(inst, h->config->get(h->ctx, node, "values"), &e);
	if (!r)
		r = check_values(inst, &e);
	if (!r && (e.operator!= ALWAYS || e.key[0]))
		r = check_key(inst, e.key);
	if (r) {
		expr_fini(&e);
		return r;
	}
	*ret = e;
	return 0;
}

void expr_fini(struct expr *e)
{
	free(e->values.items);
	e->values = (struct strings){0};
}

/* ---- values ------------------------------------------------------------------------------------------------------------- */

static const char *qos_name(uint32_t qos)
{
	static const char *const names[] = {"Guaranteed", "Burstable", "BestEffort"};
	return qos < N_QOS ? names[qos] : NULL;
}

static const char *pod_value(struct rp_instance *inst, const char *key,
			     const struct rp_ctr_info *info, struct rp_pod_info *pod)
{
	const struct modhost *h = &inst->h;
	if (strncmp(key, "labels/", 7) == 0)
		return h->cache->pod_label(h->ctx, info->pod, key + 7);
	if (strcmp(key, "name") == 0)
		return info->pod_name;
	if (strcmp(key, "namespace") == 0)
		return info->pod_namespace;
	if (strcmp(key, "qosclass") == 0)
		return qos_name(info->qos);
	if (h->cache->get_pod(h->ctx, info->pod, pod))
		return NULL;
	return strcmp(key, "id") == 0 ? pod->id : strcmp(key, "uid") == 0 ? pod->uid : NULL;
}

/* NULL: it has no such thing. */
static const char *value_of(struct rp_instance *inst, const char *key,
			    const struct rp_ctr_info *info, struct rp_pod_info *pod)
{
	const struct modhost *h = &inst->h;
	if (strncmp(key, "pod/", 4) == 0)
		return pod_value(inst, key + 4, info, pod);
	if (strncmp(key, "labels/", 7) == 0)
		return h->cache->ctr_label(h->ctx, info->ctr, key + 7);
	if (strcmp(key, "name") == 0)
		return info->name;
	if (strcmp(key, "namespace") == 0)
		return info->pod_namespace;
	if (strcmp(key, "qosclass") == 0)
		return qos_name(info->qos);
	return strcmp(key, "id") == 0 ? info->id : NULL;
}

static const char *joint_value(struct rp_instance *inst, const char *key,
			       const struct rp_ctr_info *info, char *buf)
{
	struct rp_pod_info pod = {.size = sizeof pod};
	char one[KEY_MAX], keys, values;
	size_t len = 0;
	bool any = false, first = true;
	for (const char *p = split_joint(key, &keys, &values); p; first = false) {
		p = next_key(p, keys, one);
		const char *value = value_of(inst, one, info, &pod);
		any |= value != NULL;
		if (!first && len + 1 < VALUE_MAX)
			buf[len++] = values;
		for (; value && *value && len + 1 < VALUE_MAX; value++)
			buf[len++] = *value;
	}
	buf[len] = '\0';
	return any ? buf : NULL;
}

/* ---- matching ------------------------------------------------------------------------------------------------------------- */

static bool is_listed(const struct strings *values, const char *value, bool globs)
{
	for (uint32_t i = 0; i < values->n; i++) {
		const char *v = values->items[i];
		if (globs ? glob_match(v, value) : strcmp(v, "*") == 0 || strcmp(v, value) == 0)
			return true;
	}
	return false;
}

bool expr_match(struct rp_instance *inst, const struct expr *e, const struct rp_ctr_info *info)
{
	char buf[VALUE_MAX];
	struct rp_pod_info pod = {.size = sizeof pod};
	if (e->operator== ALWAYS)
		return true;
	const char *value = is_joint(e->key) ? joint_value(inst, e->key, info, buf)
					     : value_of(inst, e->key, info, &pod);
	switch (e->operator) {
	case EXISTS:
		return value != NULL;
	case NOT_EXIST:
		return value == NULL;
	case EQUALS:
	case IN:
		return value && is_listed(&e->values, value, false);
	case NOT_EQUAL:
		return !value || strcmp(e->values.items[0], value) != 0;
	case NOT_IN:
		return !value || !is_listed(&e->values, value, false);
	case MATCHES:
	case ANY:
		return value && is_listed(&e->values, value, true);
	default:
		return !value || !is_listed(&e->values, value, true);
	}
}
