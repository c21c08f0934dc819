/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/node_patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-agent/writer.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/err.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "wishes"
#define PROBLEM "wishes"
#define LABELS "labels"
#define ANNOTATIONS "annotations"
#define TAINTS "taints"
#define RESOURCES "resources"
#define SETTLING "settling"

struct wishes {
	struct kube *kube;
	struct writer *writer;
	json_t *wanted; /* items that the daemon wants on the Node; NULL: not received yet */
	json_t *seen; /* the Node as last seen; NULL: not seen yet */
};

/* ---- wanted items ---------------------------------------------------------------------------- */

static void put_pairs(json_t *map, Agent__Pair *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)json_object_set_new(map, list[i]->key, json_string(list[i]->value));
}

static void put_taints(json_t *map, Agent__Taint *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_free_ char *key = str_printf("%s:%s", list[i]->key, list[i]->effect);
		if (key)
			(void)json_object_set_new(map, key, json_string(list[i]->value));
	}
}

/*
 * Returns the wanted content of the Node, as a new reference: {"labels": {KEY: VALUE},
 * "annotations": …, "taints": {"KEY:EFFECT": VALUE}, "resources": {NAME: true}}.
 */
static json_t *wishes_wanted(const Agent__PublishedRequest *m)
{
	json_t *labels = json_object(), *annotations = json_object(), *taints = json_object(),
	       *resources = json_object();
	put_pairs(labels, m->labels, m->n_labels);
	put_pairs(annotations, m->annotations, m->n_annotations);
	put_taints(taints, m->taints, m->n_taints);
	for (size_t i = 0; i < m->n_resources; i++)
		(void)json_object_set_new(resources, m->resources[i]->name, json_true());
	return json_pack("{s:o, s:o, s:o, s:o, s:b}", LABELS, labels, ANNOTATIONS, annotations,
			 TAINTS, taints, RESOURCES, resources, SETTLING, m->settling);
}

/* ---- record of the agent's items ------------------------------------------------------------- */

/* Returns the record {"labels": [KEY, …], …}. If it is missing or invalid, returns an empty object:
 * no item belongs to the agent. */
static json_t *read_record(const json_t *node)
{
	const json_t *annotations = kube_meta(node, ANNOTATIONS);
	const char *text = json_string_value(json_object_get(annotations, WISHES_RECORD));
	json_t *record = text ? json_loads(text, 0, NULL) : NULL;
	if (json_is_object(record))
		return record;
	json_decref(record);
	return json_object();
}

static bool is_listed(const json_t *record, const char *part, const char *key)
{
	json_t *item;
	size_t i;
	json_array_foreach(json_object_get(record, part), i, item)
	{
		if (json_is_string(item) && str_eq(json_string_value(item), key))
			return true;
	}
	return false;
}

bool wishes_recorded(const json_t *node, const char *resource)
{
	json_t *record = read_record(node);
	bool ours = is_listed(record, RESOURCES, resource);
	json_decref(record);
	return ours;
}

/* ---- differences ----------------------------------------------------------------------------- */

struct comparing {
	json_t *node, *wanted, *record;
	json_t *labels, *annotations; /* parts of the merge patch */
	json_t *taints; /* the complete new list; NULL: no memory */
	bool other_taints;
	json_t *next; /* new record of the agent's items */
	char *foreign;
};

static void node_patch_note(struct comparing *c, const char *part, const char *key)
{
	json_t *list = json_object_get(c->next, part);
	if (!list) {
		list = json_array();
		(void)json_object_set_new(c->next, part, list);
	}
	(void)json_array_append_new(list, json_string(key));
}

/* Reports an item that belongs to another program; only the first one is reported. */
static void node_patch_refuse(struct comparing *c, const char *what, const char *key)
{
	if (!*c->foreign)
		(void)snprintf(c->foreign, ERR_TEXT_MAX,
			       "the %s %s of this node was set by another component and is "
			       "unchanged: nri-rpd wants another value",
			       what, key);
}

static void compare_map(struct comparing *c, const char *part, const char *what, json_t *patch)
{
	json_t *has = kube_meta(c->node, part);
	json_t *wanted = json_object_get(c->wanted, part), *value, *item;
	const char *key;
	size_t i;
	json_object_foreach(wanted, key, value)
	{
		json_t *old = json_object_get(has, key);
		bool same = old && json_equal(old, value);
		if (old && !is_listed(c->record, part, key)) {
			if (!same)
				node_patch_refuse(c, what, key);
			continue;
		}
		node_patch_note(c, part, key);
		if (!same)
			(void)json_object_set(patch, key, value);
	}
	json_array_foreach(json_object_get(c->record, part), i, item)
	{
		key = json_string_value(item);
		if (key && !json_object_get(wanted, key) && json_object_get(has, key))
			(void)json_object_set_new(patch, key, json_null());
	}
}

static char *taint_key(const json_t *taint)
{
	const char *key = json_string_value(json_object_get(taint, "key"));
	const char *effect = json_string_value(json_object_get(taint, "effect"));
	return str_printf("%s:%s", key ? key : "", effect ? effect : "");
}

/* Handles a taint of the Node: keeps, changes or removes it. */
static void compare_taint(struct comparing *c, json_t *taint, json_t *missing)
{
	_free_ char *key = taint_key(taint);
	json_t *wanted = key ? json_object_get(missing, key) : NULL;
	const char *value = json_string_value(json_object_get(taint, "value"));
	bool ours = key && is_listed(c->record, TAINTS, key);
	bool same = wanted && str_eq(json_string_value(wanted), value ? value : "");
	if (ours && !wanted) {
		c->other_taints = true;
		return;
	}
	json_t *kept = json_copy(taint);
	(void)json_array_append_new(c->taints, kept);
	if (!wanted)
		return;
	if (ours) {
		node_patch_note(c, TAINTS, key);
		c->other_taints |= !same;
		(void)json_object_set(kept, "value", wanted);
	} else if (!same) {
		node_patch_refuse(c, "taint", key);
	}
	(void)json_object_del(missing, key);
}

static void compare_taints(struct comparing *c)
{
	json_t *has = json_object_get(json_object_get(c->node, "spec"), TAINTS), *item;
	json_t *missing = json_copy(json_object_get(c->wanted, TAINTS));
	const char *key;
	size_t i;
	json_array_foreach(has, i, item) compare_taint(c, item, missing);
	json_object_foreach(missing, key, item)
	{
		const char *colon = strrchr(key, ':');
		_free_ char *name = strndup(key, (size_t)(colon - key));
		(void)json_array_append_new(c->taints,
					    json_pack("{s:s, s:O, s:s}", "key", name ? name : "",
						      "value", item, "effect", colon + 1));
		node_patch_note(c, TAINTS, key);
		c->other_taints = true;
	}
	json_decref(missing);
}

/* Returns true if no component owns the resource: its amount is missing or 0, as a kubelet reports
 * unknown resources. */
static bool is_nobodys(const json_t *amount)
{
	const char *text = json_string_value(amount);
	return !text || str_eq(text, "0");
}

static void compare_resources(struct comparing *c)
{
	json_t *has = json_object_get(json_object_get(c->node, "status"), "capacity");
	json_t *wanted = json_object_get(c->wanted, RESOURCES), *item;
	const char *name;
	size_t i;
	json_object_foreach(wanted, name, item)
	{
		if (is_listed(c->record, RESOURCES, name) || is_nobodys(json_object_get(has, name)))
			node_patch_note(c, RESOURCES, name);
		else
			node_patch_refuse(c, "resource", name);
	}
	json_array_foreach(json_object_get(c->record, RESOURCES), i, item)
	{
		name = json_string_value(item);
		if (name && !json_object_get(wanted, name) && json_object_get(has, name))
			node_patch_note(c, RESOURCES, name);
	}
}

static void compare_record(struct comparing *c)
{
	if (json_equal(c->record, c->next))
		return;
	_free_ char *text = json_dumps(c->next, JSON_COMPACT | JSON_SORT_KEYS);
	(void)json_object_set_new(c->annotations, WISHES_RECORD,
				  json_object_size(c->next) ? json_string(text) : json_null());
}

/* Keeps the agent's items on the Node while modules are still settling: adds those that no module
 * has requested yet to the wanted ones. */
static void keep_map(const struct comparing *c, const char *part)
{
	json_t *has = kube_meta(c->node, part), *value;
	json_t *wanted = json_object_get(c->wanted, part);
	const char *key;
	json_object_foreach(has, key, value)
	{
		if (is_listed(c->record, part, key) && !json_object_get(wanted, key))
			(void)json_object_set(wanted, key, value);
	}
}

static void keep_taints(const struct comparing *c)
{
	json_t *has = json_object_get(json_object_get(c->node, "spec"), TAINTS), *taint;
	json_t *wanted = json_object_get(c->wanted, TAINTS);
	size_t i;
	json_array_foreach(has, i, taint)
	{
		_free_ char *key = taint_key(taint);
		const char *value = json_string_value(json_object_get(taint, "value"));
		if (key && is_listed(c->record, TAINTS, key) && !json_object_get(wanted, key))
			(void)json_object_set_new(wanted, key, json_string(value ? value : ""));
	}
}

static json_t *node_patch_compose(const struct comparing *c)
{
	json_t *meta = json_object(), *patch = json_object();
	const json_t *version = kube_meta(c->node, "resourceVersion");
	if (json_object_size(c->labels))
		(void)json_object_set(meta, LABELS, c->labels);
	if (json_object_size(c->annotations))
		(void)json_object_set(meta, ANNOTATIONS, c->annotations);
	if (c->other_taints)
		(void)json_object_set_new(patch, "spec", json_pack("{s:O}", TAINTS, c->taints));
	if (json_object_size(meta) || json_object_size(patch)) {
		(void)json_object_set(meta, "resourceVersion", (json_t *)(uintptr_t)version);
		(void)json_object_set(patch, "metadata", meta);
	}
	json_decref(meta);
	if (json_object_size(patch))
		return patch;
	json_decref(patch);
	return NULL;
}

int wishes_patch(json_t *node, json_t *wanted, json_t **ret, char *foreign)
{
	struct comparing c = {.node = node,
			      .wanted = json_deep_copy(wanted),
			      .record = read_record(node),
			      .labels = json_object(),
			      .annotations = json_object(),
			      .taints = json_array(),
			      .next = json_object(),
			      .foreign = foreign};
	bool memory = c.wanted && c.record && c.labels && c.annotations && c.taints && c.next;
	*foreign = '\0';
	if (memory && json_is_true(json_object_get(wanted, SETTLING))) {
		keep_map(&c, LABELS);
		keep_map(&c, ANNOTATIONS);
		keep_taints(&c);
	}
	if (memory) {
		compare_map(&c, LABELS, "label", c.labels);
		compare_map(&c, ANNOTATIONS, "annotation", c.annotations);
		compare_taints(&c);
		compare_resources(&c);
		compare_record(&c);
		*ret = node_patch_compose(&c);
	}
	json_decref(c.wanted);
	json_decref(c.record);
	json_decref(c.labels);
	json_decref(c.annotations);
	json_decref(c.taints);
	json_decref(c.next);
	return memory ? 0 : -ENOMEM;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void node_patch_compare(struct wishes *w)
{
	char foreign[ERR_TEXT_MAX];
	json_t *patch = NULL;
	if (!w->seen || !w->wanted)
		return;
	int r = wishes_patch(w->seen, w->wanted, &patch, foreign);
	if (!r)
		kube_set_problem(w->kube, PROBLEM, *foreign ? foreign : NULL);
	if (r || (patch && writer_put(w->writer, patch)))
		log_error("labels and taints cannot be written: no memory");
}

int wishes_take(struct wishes *w, const Agent__PublishedRequest *m)
{
	json_t *wanted = wishes_wanted(m);
	if (!wanted)
		return -ENOMEM;
	json_decref(w->wanted);
	w->wanted = wanted;
	node_patch_compare(w);
	return 0;
}

void wishes_seen(struct wishes *w, json_t *node)
{
	json_decref(w->seen);
	w->seen = json_incref(node);
	node_patch_compare(w);
}

struct wishes *wishes_new(struct kube *k, const char *node)
{
	struct wishes *w = calloc(1, sizeof *w);
	const struct writer_config config = {.what = "labels, annotations and taints",
					     .method = "PATCH",
					     .path = str_printf("/api/v1/nodes/%s", node),
					     .content_type = KUBE_MERGE_PATCH,
					     .interval_ms = WISHES_INTERVAL_MS,
					     .versioned = true};
	if (!w) {
		free(config.path);
		return NULL;
	}
	w->kube = k;
	w->writer = writer_new(k, &config);
	return w->writer ? w : wishes_free(w);
}

struct wishes *wishes_free(struct wishes *w)
{
	if (!w)
		return NULL;
	writer_free(w->writer);
	json_decref(w->wanted);
	json_decref(w->seen);
	free(w);
	return NULL;
}
