/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/object_status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/nri-rp-agent/writer.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "verdict"
#define INTERVAL_MS 1000u

/* Targets of status writes. The former one exists until its entry is removed. */
struct verdicts {
	struct kube *kube;
	char *node;
	char *path; /* path of the current target; NULL: nothing was written */
	bool annotation;
	json_t *told; /* value of the annotation; NULL: none */
	struct writer *current, *former;
};

static char *verdict_path(const struct verdicts *v, const char *plural, const struct candidate *c)
{
	if (c->config_map)
		return str_printf("/api/v1/nodes/%s", v->node);
	return str_printf("/apis/config.nri/v1alpha1/namespaces/%s/%s/%s/status", c->ns, plural,
			  c->name);
}

static struct writer *open_writer(struct verdicts *v, const char *path)
{
	const struct writer_config config = {.what = "status of the configuration",
					     .method = "PATCH",
					     .path = strdup(path),
					     .content_type = KUBE_MERGE_PATCH,
					     .interval_ms = INTERVAL_MS,
					     .ends_with_it = true};
	return writer_new(v->kube, &config);
}

/* Writes this node's entry, `verdict`, which is borrowed; NULL removes the entry. */
static void object_status_put(const struct verdicts *v, struct writer *w, bool annotation,
			      json_t *verdict)
{
	json_t *value = verdict && annotation ? json_string(json_string_value(verdict))
			: verdict	      ? json_incref(verdict)
					      : json_null();
	json_t *body = annotation ? json_pack("{s:{s:{s:o}}}", "metadata", "annotations",
					      VERDICT_ANNOTATION, value)
				  : json_pack("{s:{s:{s:o}}}", "status", "nodes", v->node, value);
	if (writer_put(w, body))
		log_warning("the status of the configuration cannot be written: no memory");
}

static json_t *object_status_compose(const struct candidate *c, const char *errors,
				     const char *warnings)
{
	char now[KUBE_TIME_MAX];
	kube_time(time(NULL), now);
	const char *outcome = errors ? "Failure" : "Success";
	const char *said = errors ? errors : warnings;
	if (c->config_map) {
		_free_ char *text =
			str_printf("%s %s/%s %s %s%s%s", outcome, c->ns, c->name, c->generation,
				   now, said ? ": " : "", said ? said : "");
		return text ? json_string(text) : NULL;
	}
	/* The key is omitted without errors, because some API servers treat an empty text as
	 * null. */
	return json_pack("{s:s, s:I, s:s?, s:s?, s:s}", "status", outcome, "generation",
			 (json_int_t)strtoll(c->generation, NULL, 10), "errors", errors, "warnings",
			 errors ? NULL : warnings, "timestamp", now);
}

void verdicts_withdraw(struct verdicts *v)
{
	if (!v->current)
		return;
	object_status_put(v, v->current, v->annotation, NULL);
	writer_free(v->former);
	v->former = v->current;
	v->current = NULL;
	free(v->path);
	v->path = NULL;
}

void verdicts_release(struct verdicts *v, const char *plural, const struct candidate *c)
{
	_free_ char *path = verdict_path(v, plural, c);
	if (!path || !v->path || !str_eq(path, v->path))
		return;
	v->current = writer_free(v->current);
	free(v->path);
	v->path = NULL;
}

void verdicts_tell(struct verdicts *v, const char *plural, const struct candidate *c,
		   const char *errors, const char *warnings)
{
	char *path = verdict_path(v, plural, c);
	json_t *verdict = object_status_compose(c, errors, warnings);
	if (path && v->path && !str_eq(path, v->path))
		verdicts_withdraw(v);
	if (path && !v->current) {
		v->current = open_writer(v, path);
		v->path = TAKE(path);
		v->annotation = c->config_map;
	}
	if (v->current && verdict)
		object_status_put(v, v->current, v->annotation, verdict);
	free(path);
	json_decref(v->told);
	v->told = verdict;
}

void verdicts_node_seen(const struct verdicts *v, const json_t *node)
{
	const json_t *annotations = kube_meta(node, "annotations");
	bool missing = !json_object_get(annotations, VERDICT_ANNOTATION);
	if (v->current && v->annotation && v->told && missing && writer_idle(v->current))
		object_status_put(v, v->current, true, v->told);
}

bool verdicts_idle(const struct verdicts *v)
{
	return (!v->current || writer_idle(v->current)) && (!v->former || writer_idle(v->former));
}

struct verdicts *verdicts_new(struct kube *k, const char *node)
{
	struct verdicts *v = calloc(1, sizeof *v);
	if (!v)
		return NULL;
	v->kube = k;
	v->node = strdup(node);
	return v->node ? v : verdicts_free(v);
}

struct verdicts *verdicts_free(struct verdicts *v)
{
	if (!v)
		return NULL;
	writer_free(v->current);
	writer_free(v->former);
	json_decref(v->told);
	free(v->path);
	free(v->node);
	free(v);
	return NULL;
}
