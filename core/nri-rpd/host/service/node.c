/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.node/1: the node in the cluster, and the modules' wishes for it. */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/host/node.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/service/node.h"

#define DOMAIN_MAX 253u
#define NAME_MAX_LEN 63u
#define HOST_DOMAIN "nri-rp/"

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define ANY LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the Node; an empty one before it has been received. */
static const struct node_object *node_of(void *ctx)
{
	static const struct node_object none;
	const struct node_object *node = instance_of(ctx)->env->node;
	return node ? node : &none;
}

static const struct node_amount *amount_of(const struct node_amount *list, uint32_t n,
					   const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_eq(list[i].name, name))
			return &list[i];
	return NULL;
}

SERVICE_CALL(const char *, RP_HOST_NODE_1, NULL, get_name, (void *ctx), node_of(ctx)->name)
SERVICE_CALL(const char *, RP_HOST_NODE_1, NULL, get_label, (void *ctx, const char *key),
	     kv_text(node_of(ctx)->labels, node_of(ctx)->n_labels, SERVICE_NAME(ctx, key)))
SERVICE_CALL(const char *, RP_HOST_NODE_1, NULL, get_annotation, (void *ctx, const char *key),
	     kv_text(node_of(ctx)->annotations, node_of(ctx)->n_annotations,
		     SERVICE_NAME(ctx, key)))

static int32_t get_taint(void *ctx, uint32_t index, struct rp_node_taint *out)
{
	MAIN_ONLY(ctx, RP_HOST_NODE_1, -RP_EPERM);
	const struct node_object *node = node_of(ctx);
	if (index >= node->n_taints)
		return -RP_ENOENT;
	const struct node_taint *t = &node->taints[index];
	const struct rp_node_taint full = {sizeof full, 0, t->key, t->value, t->effect};
	sized_fill(out, &full, sizeof full);
	return 0;
}

/* Finds an amount of the Node's capacity or of its allocatable part. */
static int32_t node_amount(void *ctx, bool allocatable, const char *resource, int64_t *ret)
{
	const struct node_object *node = node_of(ctx);
	const struct node_amount *a = amount_of(
		allocatable ? node->allocatable : node->capacity,
		allocatable ? node->n_allocatable : node->n_capacity, SERVICE_NAME(ctx, resource));
	if (!a)
		return -RP_ENOENT;
	*ret = a->amount;
	return 0;
}

SERVICE_CALL(int32_t, RP_HOST_NODE_1, -RP_EPERM, get_capacity,
	     (void *ctx, const char *resource, int64_t *ret),
	     node_amount(ctx, false, resource, ret))
SERVICE_CALL(int32_t, RP_HOST_NODE_1, -RP_EPERM, get_allocatable,
	     (void *ctx, const char *resource, int64_t *ret), node_amount(ctx, true, resource, ret))

/* ---- syntax of names and values of a Node ---------------------------------------------------- */

/* Returns true if the word consists of `letters`; characters of `also` may occur inside only. */
static bool good_word(const char *s, size_t n, size_t max, const char *letters, const char *also)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr(letters, s[i]) && (i == 0 || i + 1 == n || !strchr(also, s[i])))
			return false;
	return n && n <= max;
}

static bool good_key(const char *key)
{
	const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
	if (slash && !good_word(key, (size_t)(slash - key), DOMAIN_MAX, LOWER, "-."))
		return false;
	return good_word(name, strlen(name), NAME_MAX_LEN, ANY, "-_.") &&
	       !str_has_prefix(key, HOST_DOMAIN);
}

static bool good_label_value(const char *value)
{
	return !*value || good_word(value, strlen(value), RP_NODE_LABEL_MAX, ANY, "-_.");
}

static bool good_effect(const char *effect)
{
	return str_eq(effect, "NoSchedule") || str_eq(effect, "PreferNoSchedule") ||
	       str_eq(effect, "NoExecute");
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static bool same_wish(const struct node_wish *a, const struct node_wish *b)
{
	return a->kind == b->kind && str_eq(a->key, b->key) && str_eq(a->effect, b->effect);
}

bool node_wish_waits(const struct node_wish *all, const struct node_wish *w)
{
	for (const struct node_wish *at = all; at && at != w; at = at->next)
		if (same_wish(at, w))
			return true;
	return false;
}

bool node_has_wish(const struct node_object *node, const struct node_wish *w)
{
	const char *value = NULL;
	if (!node)
		return false;
	if (w->kind == WISH_RESOURCE) {
		const struct node_amount *a = amount_of(node->capacity, node->n_capacity, w->key);
		return a && a->amount == w->amount;
	}
	if (w->kind == WISH_LABEL)
		value = kv_text(node->labels, node->n_labels, w->key);
	else if (w->kind == WISH_ANNOTATION)
		value = kv_text(node->annotations, node->n_annotations, w->key);
	for (uint32_t i = 0; w->kind == WISH_TAINT && i < node->n_taints; i++)
		if (str_eq(node->taints[i].key, w->key) &&
		    str_eq(node->taints[i].effect, w->effect))
			value = node->taints[i].value;
	return value && str_eq(value, w->value);
}

const char *wish_kind_name(enum wish_kind kind)
{
	static const char *const names[] = {
		[WISH_LABEL] = "label",
		[WISH_ANNOTATION] = "annotation",
		[WISH_TAINT] = "taint",
		[WISH_RESOURCE] = "resource",
	};
	return names[kind];
}

static void tell_changed(const struct host_env *env)
{
	if (env->wished)
		env->wished(env->arg);
}

static void node_drop(struct host_env *env, struct node_wish *w)
{
	DL_DELETE(env->wishes, w);
	free(w->value);
	free(w);
}

static struct node_wish *find_own(const struct instance *i, const struct node_wish *like,
				  unsigned *ret_n)
{
	struct node_wish *w, *found = NULL;
	*ret_n = 0;
	DL_FOREACH (i->env->wishes, w) {
		if (w->owner != i)
			continue;
		++*ret_n;
		if (same_wish(w, like))
			found = w;
	}
	return found;
}

static struct node_wish *node_add(struct instance *i, const struct node_wish *like)
{
	size_t key = strlen(like->key) + 1, effect = strlen(like->effect) + 1;
	struct node_wish *w = calloc(1, sizeof *w + key + effect);
	if (!w)
		return NULL;
	*w = *like;
	w->owner = i;
	w->value = NULL;
	w->key = memcpy(w + 1, like->key, key);
	w->effect = memcpy((char *)(w + 1) + key, like->effect, effect);
	DL_APPEND(i->env->wishes, w);
	return w;
}

/* Adds, changes or withdraws a module's wanted change of the Node; `like` without a value:
 * withdraw. */
static int32_t node_do_wish(struct instance *i, const struct node_wish *like)
{
	unsigned n;
	struct node_wish *w = find_own(i, like, &n);
	if (!w && !like->value)
		return 0;
	if (!like->value) {
		node_drop(i->env, w);
		tell_changed(i->env);
		return 0;
	}
	if (w && w->amount == like->amount && str_eq(w->value, like->value))
		return 0;
	if (!w && n == RP_NODE_WISHES_MAX)
		return -RP_E2BIG;
	char *value = strdup(like->value);
	if (value && !w)
		w = node_add(i, like);
	if (!value || !w) {
		free(value);
		return -RP_ENOMEM;
	}
	free(w->value);
	w->value = value;
	w->amount = like->amount;
	tell_changed(i->env);
	return 0;
}

static int32_t wish_text(struct instance *i, enum wish_kind kind, const char *key,
			 const char *effect, const char *value)
{
	return node_do_wish(i, &(struct node_wish){.kind = kind,
						   .key = key,
						   .effect = effect,
						   .value = (char *)(uintptr_t)value});
}

int32_t instance_wish_pair(struct instance *i, enum wish_kind kind, const char *key,
			   const char *value)
{
	bool label = kind == WISH_LABEL;
	if (!good_key(key) ||
	    (value && !(label ? good_label_value(value) : utf8_valid(value, strlen(value)))))
		return -RP_EINVAL;
	if (value && !label && strlen(value) > RP_NODE_ANNOTATION_MAX)
		return -RP_E2BIG;
	return wish_text(i, kind, key, "", value);
}

int32_t instance_wish_resource(struct instance *i, const char *name, int64_t amount)
{
	static char none[] = "";
	bool withdrawn = amount == RP_NOT_SET;
	if (!good_key(name) || !strchr(name, '/') || (amount < 0 && !withdrawn))
		return -RP_EINVAL;
	return node_do_wish(i, &(struct node_wish){.kind = WISH_RESOURCE,
						   .key = name,
						   .effect = "",
						   .value = withdrawn ? NULL : none,
						   .amount = withdrawn ? 0 : amount});
}

/* ---- functions of the service ---------------------------------------------------------------- */

SERVICE_CALL(int32_t, RP_HOST_NODE_1, -RP_EPERM, set_label,
	     (void *ctx, const char *key, const char *value),
	     instance_wish_pair(ctx, WISH_LABEL, SERVICE_NAME(ctx, key), value))
SERVICE_CALL(int32_t, RP_HOST_NODE_1, -RP_EPERM, set_annotation,
	     (void *ctx, const char *key, const char *value),
	     instance_wish_pair(ctx, WISH_ANNOTATION, SERVICE_NAME(ctx, key), value))
SERVICE_CALL(int32_t, RP_HOST_NODE_1, -RP_EPERM, set_resource,
	     (void *ctx, const char *resource, int64_t amount),
	     instance_wish_resource(ctx, SERVICE_NAME(ctx, resource), amount))

static int32_t set_taint(void *ctx, const char *key, const char *effect, const char *value)
{
	MAIN_ONLY(ctx, RP_HOST_NODE_1, -RP_EPERM);
	struct site_name name;
	if (!good_key(key) || !good_effect(effect) || (value && !good_label_value(value)))
		return -RP_EINVAL;
	return wish_text(instance_of(ctx), WISH_TAINT, service_name(ctx, key, &name), effect,
			 value);
}

void instance_drop_wishes(struct instance *i)
{
	struct node_wish *w, *next;
	bool any = false;
	DL_FOREACH_SAFE(i->env->wishes, w, next)
	{
		if (w->owner != i)
			continue;
		node_drop(i->env, w);
		any = true;
	}
	if (any)
		tell_changed(i->env);
}

const struct rp_host_node host_node_service = {
	.size = sizeof host_node_service,
	.name = get_name,
	.label = get_label,
	.annotation = get_annotation,
	.taint = get_taint,
	.capacity = get_capacity,
	.allocatable = get_allocatable,
	.set_label = set_label,
	.set_annotation = set_annotation,
	.set_taint = set_taint,
	.set_resource = set_resource,
};
