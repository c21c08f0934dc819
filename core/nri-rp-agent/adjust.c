/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/adjust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/agent/protocol.h"
#include "core/nri-rp-agent/watch.h"
#include "core/util/arena.h"
#include "core/util/buf.h"
#include "core/util/cleanup.h"
#include "core/util/crc32c.h"
#include "core/util/log.h"
#include "core/util/pb.h"
#include "core/util/str.h"
#include "proto/agent.pb-c.h"

#define LOG_SOURCE "adjust"
#define SETTLE_MS 200u /* changes that come together are one */
#define ANSWER_ARENA (1u << 20)
#define PROBLEM "adjustments"

struct adjust {
	struct kube *kube;
	struct link *link;
	char *node, *ns;
	struct watch *watch;
	json_t *objects; /* by name */
	bool known; /* all of them are there */
	struct loop_timer *timer;
	struct backoff backoff;
	char *asked; /* the text that the daemon was asked to take; NULL: it has to be asked */
	bool under_way, answered;
	char *errors; /* why it has not taken it; NULL: it has */
};

/* ---- what is said for this node -------------------------------------------------------------- */

/* "n1", "n*"; none at all is every node. */
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

/* Of the scopes those that name this node, without that. */
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
	return json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
}

json_t *adjust_item(const json_t *object, const char *node)
{
	const json_t *spec = json_object_get(object, "spec");
	json_t *scopes = scopes_of(spec, node);
	json_t *item = json_array_size(scopes) && name_of(object)
			       ? json_copy((json_t *)(uintptr_t)spec)
			       : NULL;
	if (item) {
		(void)json_object_set_new(item, "name", json_string(name_of(object)));
		(void)json_object_set(item, "scope", scopes);
	}
	json_decref(scopes);
	return item;
}

static int cmp_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One a line, by name; "": none is for this node. NULL: no memory. */
static char *compose(const struct adjust *a)
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
		json_t *item = adjust_item(json_object_get(a->objects, names[i]), a->node);
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

/* ---- status ---------------------------------------------------------------------------------- */

static void status_written(const struct kube_answer *answer, void *arg)
{
	kube_set_problem(arg, PROBLEM,
			 answer->error && answer->error != -ENOENT ? answer->text : NULL);
}

static void put_status(const struct adjust *a, const char *name, json_t *verdict)
{
	_free_ char *path = str_printf(ADJUST_PATH "/%s/status", a->ns, name);
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
			    name);
}

/* What is there already is not written again: the write itself comes back as a change of the
 * object. */
static void tell_status(const struct adjust *a, const char *name, const json_t *object)
{
	json_t *item = adjust_item(object, a->node);
	const json_t *nodes = json_object_get(json_object_get(object, "status"), "nodes");
	const json_t *has = json_object_get(nodes, a->node);
	json_t *generation = json_object_get(json_object_get(object, "metadata"), "generation");
	json_t *verdict =
		item ? json_pack("{s:s, s:O?, s:s*}", "status", a->errors ? "Failure" : "Success",
				 "generation", generation, "errors", a->errors)
		     : json_null();
	if (verdict && !json_equal(verdict, has ? (json_t *)(uintptr_t)has : json_null())) {
		/* an error that is no more has to be taken away */
		if (item && !a->errors && json_object_get(has, "errors"))
			(void)json_object_set_new(verdict, "errors", json_null());
		put_status(a, name, verdict);
	}
	json_decref(verdict);
	json_decref(item);
}

static void tell_all(const struct adjust *a)
{
	const char *name;
	json_t *object;
	if (!a->answered || !a->known)
		return;
	json_object_foreach(a->objects, name, object) tell_status(a, name, object);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void again(struct adjust *a)
{
	free(a->asked);
	a->asked = NULL;
	(void)loop_timer_arm(a->timer, backoff_next_ms(&a->backoff));
}

static void answered(const struct rpc_result *result, void *arg)
{
	struct adjust *a = arg;
	_arena_ struct arena *arena = arena_new(4096, ANSWER_ARENA);
	ProtobufCAllocator alloc = pb_arena(arena);
	a->under_way = false;
	if (result->error == -ECANCELED || result->error == -ECONNRESET)
		return; /* adjust_daemon_connected() begins anew */
	const Agent__SetConfigResponse *m =
		arena && !result->error ? agent__set_config_response__unpack(
						  &alloc, result->payload_len, result->payload)
					: NULL;
	if (!m) {
		again(a);
		return;
	}
	a->backoff.ms = 0;
	a->answered = true;
	free(a->errors);
	a->errors = m->accepted ? NULL : strdup(m->errors);
	if (!m->accepted)
		log_warning("adjustments are refused: %s", m->errors);
	tell_all(a);
	(void)loop_timer_arm(a->timer, SETTLE_MS);
}

static int send(const struct adjust *a, const char *text)
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
	return link_call(a->link, "SetAdjustments", &msg.base, AGENT_CONFIG_TIMEOUT_MS, answered,
			 (void *)(uintptr_t)a);
}

static void settle(void *arg)
{
	struct adjust *a = arg;
	if (!a->known || a->under_way)
		return;
	char *text = compose(a);
	if (!text || (a->asked && str_eq(text, a->asked))) {
		free(text);
		tell_all(a);
		return;
	}
	int r = send(a, text);
	a->under_way = !r;
	a->answered = false;
	free(a->asked);
	a->asked = text;
	if (r && r != -ENOTCONN)
		again(a);
}

void adjust_daemon_connected(struct adjust *a)
{
	free(a->asked);
	a->asked = NULL;
	a->backoff.ms = 0;
	(void)loop_timer_arm(a->timer, SETTLE_MS);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void take(struct adjust *a, json_t *object)
{
	const char *name = name_of(object);
	if (!name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-")])
		return;
	if (!json_object_get(a->objects, name) && json_object_size(a->objects) == ADJUST_MAX) {
		log_warning("adjustment %s is left out: there are more than %u", name, ADJUST_MAX);
		return;
	}
	(void)json_object_set(a->objects, name, object);
}

static void on_object(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct adjust *a = arg;
	(void)text;
	switch (event) {
	case WATCH_BEGIN:
		a->known = false;
		(void)json_object_clear(a->objects);
		return;
	case WATCH_OBJECT:
		take(a, object);
		break;
	case WATCH_GONE:
		if (name_of(object))
			(void)json_object_del(a->objects, name_of(object));
		break;
	case WATCH_LISTED:
		a->known = true;
		break;
	case WATCH_DENIED:
		return;
	}
	if (a->known && !loop_timer_armed(a->timer))
		(void)loop_timer_arm(a->timer, SETTLE_MS);
}

struct adjust *adjust_new(struct kube *k, struct link *l, const char *node, const char *ns)
{
	struct adjust *a = calloc(1, sizeof *a);
	_free_ char *path = str_printf(ADJUST_PATH, ns);
	if (!a)
		return NULL;
	a->kube = k;
	a->link = l;
	a->node = strdup(node);
	a->ns = strdup(ns);
	a->objects = json_object();
	a->timer = loop_timer_new(kube_loop(k), settle, a);
	if (path && a->node && a->ns && a->objects && a->timer)
		a->watch = watch_new(k, path, NULL, on_object, a);
	return a->watch ? a : adjust_free(a);
}

struct adjust *adjust_free(struct adjust *a)
{
	if (!a)
		return NULL;
	watch_free(a->watch);
	loop_timer_free(a->timer);
	json_decref(a->objects);
	free(a->node);
	free(a->ns);
	free(a->asked);
	free(a->errors);
	free(a);
	return NULL;
}
