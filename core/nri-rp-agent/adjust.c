/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/adjust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/watch.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define LOG_SOURCE "adjust"
#define SETTLE_MS 200u /* time within which changes are collected and sent together */
#define ANSWER_ARENA (1u << 20)
#define PROBLEM "adjustments"
#define N_KINDS 2u

/* Custom resources of one group. */
struct kind {
	struct adjust *adjust;
	const char *group;
	const char *prefix; /* prefix of the objects' names in `objects` */
	bool former; /* kind of a predecessor program, whose status contains only errors */
	struct watch *watch;
	bool known; /* the list of objects is complete */
};

struct adjust {
	struct kube *kube;
	struct link *link;
	char *node, *ns;
	struct kind kinds[N_KINDS];
	json_t *objects; /* relevant parts of the objects, by prefix and name */
	struct loop_timer *timer;
	struct kube_backoff backoff;
	char *asked; /* text last sent to the daemon; NULL: must be sent */
	bool under_way, answered;
	char *errors; /* why the daemon has refused it; NULL: accepted */
	json_t *conflicts; /* name → container → text */
};

static const struct kind kinds[N_KINDS] = {
	{.group = "nri-rp.io", .prefix = ""},
	{.group = "criresmgr.intel.com", .prefix = "criresmgr.intel.com/", .former = true},
};

/* ---- adjustments of this node ---------------------------------------------------------------- */

/* Returns true if a list of names and prefixes ("n1", "n*") matches the node. An empty list matches
 * all nodes. */
static bool names_node(const json_t *nodes, const char *node)
{
	json_t *item;
	size_t i;
	if (!json_array_size(nodes))
		return true;
	json_array_foreach(nodes, i, item)
	{
		const char *name = json_string_value(item);
		size_t n = name ? strlen(name) : 0;
		bool prefix = n && name[n - 1] == '*';
		if (name && (prefix ? strncmp(name, node, n - 1) == 0 : str_eq(name, node)))
			return true;
	}
	return false;
}

/* Returns the scopes that match this node, without their lists of nodes. */
static json_t *scopes_of(const json_t *spec, const char *node)
{
	json_t *scopes = json_array(), *one;
	size_t i;
	json_array_foreach(json_object_get(spec, "scope"), i, one)
	{
		if (!names_node(json_object_get(one, "nodes"), node))
			continue;
		json_t *copy = json_copy(one);
		(void)json_object_del(copy, "nodes");
		(void)json_array_append_new(scopes, copy);
	}
	return scopes;
}

static const char *name_of(const json_t *object)
{
	return json_string_value(kube_meta(object, "name"));
}

json_t *adjust_item(const json_t *object, const char *key, const char *node)
{
	const json_t *spec = json_object_get(object, "spec");
	json_t *scopes = scopes_of(spec, node);
	json_t *item = json_array_size(scopes) ? json_copy((json_t *)(uintptr_t)spec) : NULL;
	if (item) {
		(void)json_object_set_new(item, "name", json_string(key));
		(void)json_object_set(item, "scope", scopes);
	}
	json_decref(scopes);
	return item;
}

static int cmp_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Composes the text for the daemon, an adjustment a line, sorted by name; "": none for this node.
 * NULL: no memory. */
static char *adjust_compose(const struct adjust *a)
{
	struct buf text = BUF_INIT;
	const char *key, **names = calloc(json_object_size(a->objects) + 1, sizeof *names);
	json_t *object;
	size_t n = 0;
	unsigned taken = 0;
	json_object_foreach(a->objects, key, object) if (names) names[n++] = key;
	if (names)
		qsort(names, n, sizeof *names, cmp_text);
	for (size_t i = 0; names && i < n; i++) {
		json_t *item =
			adjust_item(json_object_get(a->objects, names[i]), names[i], a->node);
		_free_ char *line = item ? json_dumps(item, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
		json_decref(item);
		if (line)
			(void)buf_printf(&text, "%s\n  %s", taken++ ? "," : "adjustments: [", line);
	}
	if (taken)
		(void)buf_add_str(&text, "\n]\n");
	char *copy = names && !text.failed ? strdup(buf_text(&text)) : NULL;
	free(names);
	buf_fini(&text);
	return copy;
}

static char *path_of(const struct kind *k, const char *ns)
{
	return str_printf("/apis/%s/v1alpha1/namespaces/%s/adjustments", k->group, ns);
}

static bool all_known(const struct adjust *a)
{
	bool known = true;
	for (unsigned i = 0; i < N_KINDS; i++)
		known &= a->kinds[i].known;
	return known;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void status_written(const struct kube_answer *answer, void *arg)
{
	if (!answer->error)
		kube_set_written(arg, "status of adjustments");
	kube_set_problem(arg, PROBLEM,
			 answer->error && answer->error != -ENOENT ? answer->text : NULL);
}

/* Returns the merge patch that changes `has` to `want`; NULL: they are equal. Both may be null
 * values. */
json_t *adjust_merge(json_t *has, json_t *want)
{
	const char *key;
	json_t *value;
	if (json_equal(has, want))
		return NULL;
	if (!json_is_object(has) || !json_is_object(want))
		return json_incref(want);
	json_t *patch = json_object();
	json_object_foreach(want, key, value)
	{
		json_t *old = json_object_get(has, key);
		json_t *part = old ? adjust_merge(old, value) : json_incref(value);
		if (part)
			(void)json_object_set_new(patch, key, part);
	}
	json_object_foreach(has, key, value)
	{
		if (!json_object_get(want, key))
			(void)json_object_set_new(patch, key, json_null());
	}
	return patch;
}

static const struct kind *kind_of(const struct adjust *a, const char *key)
{
	return &a->kinds[str_has_prefix(key, kinds[1].prefix) ? 1 : 0];
}

static void put_status(const struct adjust *a, const char *key, json_t *verdict)
{
	const struct kind *k = kind_of(a, key);
	const char *name = key + strlen(k->prefix);
	_free_ char *objects = path_of(k, a->ns);
	_free_ char *path = objects ? str_printf("%s/%s/status", objects, name) : NULL;
	json_t *body = json_pack("{s:{s:{s:O}}}", "status", "nodes", a->node, verdict);
	_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	const struct kube_request request = {.method = "PATCH",
					     .path = path,
					     .content_type = KUBE_MERGE_PATCH,
					     .body = text,
					     .done = status_written,
					     .arg = a->kube};
	json_decref(body);
	if (!path || !text || !kube_call(a->kube, &request))
		log_warning("the status of adjustment %s cannot be written: no memory, or too many "
			    "requests",
			    key);
}

/* Returns the status in the format of the predecessor program: container → error, with "*" for
 * errors that concern no single container. */
static json_t *former_verdict(const char *errors, json_t *conflicts)
{
	json_t *map = conflicts ? json_copy(conflicts)
		      : errors	? json_pack("{s:s}", "*", errors)
				: json_object();
	return json_pack("{s:o}", "errors", map);
}

static json_t *verdict_of(const struct adjust *a, const char *key, const json_t *object)
{
	const char *own = json_string_value(json_object_get(object, "refused"));
	const char *errors = own ? own : a->errors;
	json_t *conflicts = own ? NULL : json_object_get(a->conflicts, key);
	json_t *item = own ? json_true() : adjust_item(object, key, a->node);
	json_t *generation = kube_meta(object, "generation");
	if (!item)
		return json_null();
	json_decref(item);
	if (kind_of(a, key)->former)
		return former_verdict(errors, conflicts);
	return json_pack("{s:s, s:O*, s:s*, s:O*}", "status", errors ? "Failure" : "Success",
			 "generation", generation, "errors", errors, "containers", conflicts);
}

/* Writes an object's status if it differs. An equal one is not written again, because each write
 * comes back as a change of the object. */
static void tell_status(const struct adjust *a, const char *key, const json_t *object)
{
	json_t *has = json_object_get(object, "said");
	json_t *verdict = verdict_of(a, key, object);
	json_t *patch = verdict ? adjust_merge(has ? has : json_null(), verdict) : NULL;
	if (patch)
		put_status(a, key, patch);
	json_decref(patch);
	json_decref(verdict);
}

static void tell_all(const struct adjust *a)
{
	const char *name;
	json_t *object;
	if (!a->answered || !all_known(a))
		return;
	json_object_foreach(a->objects, name, object) tell_status(a, name, object);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void adjust_again(struct adjust *a)
{
	free(a->asked);
	a->asked = NULL;
	(void)loop_timer_arm(a->timer, kube_backoff_next_ms(&a->backoff));
}

static void take_conflicts(struct adjust *a, const Agent__SetConfigResponse *m)
{
	json_decref(a->conflicts);
	a->conflicts = json_object();
	for (size_t i = 0; i < m->n_containers; i++) {
		const Agent__AdjustmentError *e = m->containers[i];
		json_t *of = json_object_get(a->conflicts, e->adjustment);
		if (!of) {
			of = json_object();
			(void)json_object_set_new(a->conflicts, e->adjustment, of);
		}
		(void)json_object_set_new(of, e->container, json_string(e->text));
	}
}

static void adjust_answered(const struct rpc_result *result, void *arg)
{
	struct adjust *a = arg;
	_arena_ struct arena *arena = arena_new(4096, ANSWER_ARENA);
	a->under_way = false;
	if (result->error == -ECANCELED || result->error == -ECONNRESET)
		return; /* adjust_daemon_connected() starts again */
	const Agent__SetConfigResponse *m = RPC_ANSWER(arena, agent__set_config_response, result);
	if (!m) {
		adjust_again(a);
		return;
	}
	kube_backoff_reset(&a->backoff);
	a->answered = true;
	free(a->errors);
	a->errors = m->accepted ? NULL : strdup(m->errors);
	take_conflicts(a, m);
	if (!m->accepted)
		log_warning("adjustments are refused: %s", m->errors);
	tell_all(a);
	(void)loop_timer_arm(a->timer, SETTLE_MS);
}

static int adjust_send(const struct adjust *a, const char *text)
{
	static char kind[] = AGENT_ADJUSTMENTS, none[] = "", uid[] = "-";
	char generation[16];
	Agent__SetConfigRequest msg = AGENT__SET_CONFIG_REQUEST__INIT;
	Agent__Section section = AGENT__SECTION__INIT, *list[] = {&section};
	(void)snprintf(generation, sizeof generation, "%08x", crc32c(0, text, strlen(text)));
	section.name = none;
	section.text = (char *)(uintptr_t)text;
	msg.kind = kind;
	msg.namespace_ = a->ns;
	msg.name = a->node;
	msg.uid = uid;
	msg.generation = generation;
	msg.sections = list;
	msg.n_sections = *text != '\0';
	return link_call(a->link, "SetAdjustments", &msg.base, AGENT_CONFIG_TIMEOUT_MS,
			 adjust_answered, (void *)(uintptr_t)a);
}

static void adjust_settle(void *arg)
{
	struct adjust *a = arg;
	if (!all_known(a) || a->under_way)
		return;
	char *text = adjust_compose(a);
	if (!text || (a->asked && str_eq(text, a->asked))) {
		free(text);
		tell_all(a);
		return;
	}
	int r = adjust_send(a, text);
	a->under_way = !r;
	a->answered = false;
	free(a->asked);
	a->asked = text;
	if (r && r != -ENOTCONN)
		adjust_again(a);
}

void adjust_daemon_connected(struct adjust *a)
{
	free(a->asked);
	a->asked = NULL;
	kube_backoff_reset(&a->backoff);
	(void)loop_timer_arm(a->timer, SETTLE_MS);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Returns the relevant parts of an object, so that its size does not matter: generation, spec, and
 * this node's status. Owned; NULL: no memory. */
static json_t *adjust_essence(const struct adjust *a, const json_t *object)
{
	json_t *spec = json_object_get(object, "spec");
	json_t *generation = kube_meta(object, "generation");
	json_t *said = json_object_get(json_object_get(json_object_get(object, "status"), "nodes"),
				       a->node);
	json_t *kept =
		json_pack("{s:{s:O*}, s:O*}", "metadata", "generation", generation, "said", said);
	if (!kept || json_dumpb(spec, NULL, 0, JSON_COMPACT) <= ADJUST_SPEC_MAX) {
		(void)json_object_set(kept, "spec", spec);
		return kept;
	}
	_free_ char *why = str_printf("spec is longer than %u bytes", ADJUST_SPEC_MAX);
	(void)json_object_set_new(kept, "refused", json_string(why ? why : ""));
	return kept;
}

static char *key_of(const struct kind *k, const json_t *object)
{
	const char *name = name_of(object);
	if (!name || !*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")])
		return NULL;
	return str_printf("%s%s", k->prefix, name);
}

static void adjust_take(struct kind *k, const json_t *object)
{
	struct adjust *a = k->adjust;
	_free_ char *key = key_of(k, object);
	if (!key)
		return;
	if (!json_object_get(a->objects, key) && json_object_size(a->objects) == ADJUST_MAX) {
		log_warning("adjustment %s is ignored: more than %u exist", key, ADJUST_MAX);
		return;
	}
	(void)json_object_set_new(a->objects, key, adjust_essence(a, object));
}

static void adjust_forget(struct kind *k)
{
	json_t *objects = k->adjust->objects, *object;
	const char *key;
	void *next;
	json_object_foreach_safe(objects, next, key, object)
	{
		if (kind_of(k->adjust, key) == k)
			(void)json_object_del(objects, key);
	}
}

static void take_gone(struct kind *k, const json_t *object)
{
	_free_ char *key = key_of(k, object);
	if (key)
		(void)json_object_del(k->adjust->objects, key);
}

static void on_object(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct kind *k = arg;
	struct adjust *a = k->adjust;
	switch (event) {
	case WATCH_BEGIN:
		k->known = false;
		adjust_forget(k);
		return;
	case WATCH_OBJECT:
		adjust_take(k, object);
		break;
	case WATCH_GONE:
		take_gone(k, object);
		break;
	case WATCH_LISTED:
		k->known = true;
		break;
	/* the objects may still exist; a predecessor's kind is rarely installed */
	case WATCH_DENIED:
		if (!k->former || k->known)
			return;
		k->known = true;
		break;
	case WATCH_NO_KIND:
		adjust_forget(k);
		k->known = true;
		break;
	case WATCH_FAILED:
		return;
	}
	if (all_known(a) && !loop_timer_armed(a->timer))
		(void)loop_timer_arm(a->timer, SETTLE_MS);
}

static bool open_kinds(struct adjust *a)
{
	for (unsigned i = 0; i < N_KINDS; i++) {
		struct kind *k = &a->kinds[i];
		*k = kinds[i];
		k->adjust = a;
	}
	for (unsigned i = 0; i < N_KINDS; i++) {
		struct kind *k = &a->kinds[i];
		_free_ char *path = path_of(k, a->ns);
		k->watch = path ? watch_new(a->kube, path, NULL, on_object, k) : NULL;
		if (!k->watch)
			return false;
		if (k->former)
			watch_set_optional(k->watch);
	}
	return true;
}

struct adjust *adjust_new(struct kube *k, struct link *l, const char *node, const char *ns)
{
	struct adjust *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->kube = k;
	a->link = l;
	a->node = strdup(node);
	a->ns = strdup(ns);
	a->objects = json_object();
	a->timer = loop_timer_new(kube_loop(k), adjust_settle, a);
	bool whole = a->node && a->ns && a->objects && a->timer;
	return whole && open_kinds(a) ? a : adjust_free(a);
}

struct adjust *adjust_free(struct adjust *a)
{
	if (!a)
		return NULL;
	for (unsigned i = 0; i < N_KINDS; i++)
		watch_free(a->kinds[i].watch);
	loop_timer_free(a->timer);
	json_decref(a->objects);
	json_decref(a->conflicts);
	free(a->node);
	free(a->ns);
	free(a->asked);
	free(a->errors);
	free(a);
	return NULL;
}
