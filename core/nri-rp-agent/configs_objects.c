/* SPDX-License-Identifier: Apache-2.0 */
/* The watched objects of a kind: the one of the node, the shared one, and those whose nodeSelector
 * selects the node. */
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rp-agent/configs_internal.h"

#define LOG_SOURCE "configs"
#define LIST_FAILURES_MAX 3u /* failures after which objects with a nodeSelector are not awaited */
/* labels of objects that may have a nodeSelector */
#define SELECTED_LABELS "config.nri/selected!=false"

struct slot *kind_next(struct kind *k, const struct slot *s)
{
	const unsigned level = s ? s->level + 1 : 0;
	if (s && s->next)
		return s->next;
	return level < N_LEVELS ? &k->slots[level] : NULL;
}

const struct candidate *slot_usable(const struct slot *s)
{
	return s->held && candidate_selects(s->held, s->kind->configs->labels) ? s->held : NULL;
}

/* Treats the object as deleted. */
static void slot_lose(struct slot *s)
{
	s->kind->configs->deleted |= slot_usable(s) != NULL;
	if (s->held && s->kind->slots[LEVEL_SELECTED].full) /* there is room for another object */
		s->kind->configs->labels_changed = true;
	s->held = candidate_free(s->held);
}

/* Returns the slot of an object with a nodeSelector; NULL: none. */
static struct slot *slot_find_selected(const struct slot *list, const char *name)
{
	struct slot *s = list->next;
	while (s && !(s->name && str_eq(s->name, name)))
		s = s->next;
	return s;
}

/* Returns a slot for an object whose nodeSelector selects this node; NULL: none. */
static struct slot *slot_for_selected(struct slot *list, const char *name)
{
	struct slot *found = NULL;
	unsigned n = 0;
	for (struct slot *s = list->next; s; s = s->next) {
		n += s->held != NULL;
		if (!s->held && (!s->passed || verdicts_idle(s->passed)))
			found = s;
	}
	if (n >= SELECTED_MAX) {
		if (!list->full)
			log_warning("%s %s: ignored, more than %u objects select node %s by their "
				    "nodeSelector",
				    list->kind->plural, name, SELECTED_MAX,
				    list->kind->configs->node);
		list->full = true;
		return NULL;
	}
	if (!found) {
		found = calloc(1, sizeof *found);
		if (!found)
			return NULL;
		found->kind = list->kind;
		found->level = list->level;
		found->next = list->next;
		list->next = found;
	}
	free(found->name);
	found->name = strdup(name);
	return found->name ? found : NULL;
}

/* Returns the slot of an object, or the list to which the object may belong; NULL: neither. */
static struct slot *slot_of_object(struct slot *s, const json_t *object)
{
	const char *name = json_string_value(kube_meta(object, "name"));
	if (!name || s->level != LEVEL_SELECTED)
		return name && s->name && str_eq(name, s->name) ? s : NULL;
	if (str_eq(name, "default") || str_has_prefix(name, "node.") ||
	    str_has_prefix(name, "group."))
		return NULL;
	struct slot *found = slot_find_selected(s, name);
	return found ? found : s;
}

static void configs_objects_take(struct slot *s, const json_t *object)
{
	struct candidate *now;
	struct err err = ERR_INIT;
	s->seen = true;
	if (candidate_new(object, s->kind->config_map, &now, &err)) {
		log_warning("%s", err.text);
		return;
	}
	/* objects for other nodes cost no memory */
	if (s->level == LEVEL_SELECTED &&
	    !(now->selector && candidate_selects(now, s->kind->configs->labels))) {
		candidate_free(now);
		slot_lose(s);
		return;
	}
	if (s == &s->kind->slots[LEVEL_SELECTED])
		s = slot_for_selected(s, now->name);
	if (!s) {
		candidate_free(now);
		return;
	}
	s->seen = true;
	candidate_free(s->held);
	s->held = now;
}

/* Goes on without the objects with a nodeSelector if they cannot be listed. They may exist, so the
 * node does not return to its files. */
static void slot_failed(struct slot *s, const char *text)
{
	if (s->level != LEVEL_SELECTED || s->known || ++s->n_failures < LIST_FAILURES_MAX)
		return;
	log_warning("%s: objects with a nodeSelector are ignored until they can be listed: %s",
		    s->kind->plural, text);
	s->known = s->denied = true;
}

static void on_object(enum watch_event event, json_t *object, const char *text, void *arg)
{
	struct slot *s = arg, *of = object ? slot_of_object(s, object) : NULL;
	switch (event) {
	case WATCH_BEGIN:
		s->full = false;
		for (of = s; of; of = of->next)
			of->seen = false;
		return;
	case WATCH_OBJECT:
		if (of)
			configs_objects_take(of, object);
		break;
	case WATCH_GONE:
		if (of)
			slot_lose(of);
		break;
	case WATCH_LISTED:
		of = s;
		do
			if (!of->seen)
				slot_lose(of);
		while ((of = of->next));
		s->known = true;
		s->denied = false;
		s->n_failures = 0;
		break;
	case WATCH_DENIED:
		s->known = s->denied = true;
		break;
	case WATCH_NO_KIND:
		of = s;
		do
			of->held = candidate_free(of->held);
		while ((of = of->next));
		s->known = true;
		s->denied = false;
		configs_discover(s->kind->configs); /* the kind may have been removed */
		break;
	case WATCH_FAILED:
		slot_failed(s, text);
		break;
	}
	if (s->known)
		configs_settle_later(s->kind->configs, SETTLE_MS);
}

void slot_unpass(struct slot *s)
{
	if (s->passed_for)
		verdicts_withdraw(s->passed);
	s->passed_for = candidate_free(s->passed_for);
}

void slot_use(struct slot *s)
{
	if (s->passed_for)
		verdicts_release(s->passed, s->kind->plural, s->held);
	s->passed_for = candidate_free(s->passed_for);
}

void slot_close(struct slot *s)
{
	slot_unpass(s);
	if (s->kind && s->kind->configs->sending == s)
		s->kind->configs->sending = NULL;
	s->watch = watch_free(s->watch);
	s->held = candidate_free(s->held);
	free(s->name);
	free(s->passed_why);
	s->name = s->passed_why = NULL;
	s->known = s->seen = s->denied = s->full = false;
	s->n_failures = 0;
}

int slot_open(struct kind *k, enum level level)
{
	struct configs *c = k->configs;
	struct slot *s = &k->slots[level];
	const char *group = level == LEVEL_SHARED ? c->group : NULL;
	const char *prefix = k->config_map ? c->config_map : "";
	const char *what = level == LEVEL_NODE ? "node." : group ? "group." : "default";
	slot_close(s);
	s->kind = k;
	s->known = level == LEVEL_SELECTED && k->config_map; /* a ConfigMap has no nodeSelector */
	if (s->known)
		return 0;
	if (level != LEVEL_SELECTED)
		s->name = str_printf("%s%s%s%s", prefix, *prefix ? "." : "", what,
				     level == LEVEL_NODE ? c->node
				     : group		 ? group
							 : "");
	_free_ char *path =
		str_printf("%s/namespaces/%s/%s", k->config_map ? "/api/v1" : GROUP_PATH,
			   c->ns[k->ns], k->plural);
	_free_ char *selector =
		level == LEVEL_SELECTED
			? str_printf("metadata.name!=default,metadata.name!=node.%s%s%s", c->node,
				     c->group ? ",metadata.name!=group." : "",
				     c->group ? c->group : "")
		: s->name ? str_printf("metadata.name=%s", s->name)
			  : NULL;
	if (path && selector)
		s->watch = watch_new_labelled(c->config.kube, path, selector,
					      level == LEVEL_SELECTED ? SELECTED_LABELS : NULL,
					      on_object, s);
	return s->watch ? 0 : -ENOMEM;
}
