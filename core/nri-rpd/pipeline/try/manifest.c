/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: documents, lists, templates and numbers of replicas. */
#include "core/nri-rpd/pipeline/try/manifest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/conf/documents.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/try/manifest_pod.h"

#define LISTS_MAX 8u /* deepest nesting of lists */

/* Kind of object with a template of pods. Paths are NULL for kinds without a number of replicas. */
struct template_kind {
	const char *kind, *template, *replicas, *at_most;
	bool numbered; /* pod names end with a number, also if there is a single pod */
};

static const struct template_kind kinds[] = {
	{.kind = "Deployment", .template = "spec.template", .replicas = "spec.replicas"},
	{.kind = "ReplicaSet", .template = "spec.template", .replicas = "spec.replicas"},
	{.kind = "ReplicationController", .template = "spec.template", .replicas = "spec.replicas"},
	{.kind = "StatefulSet",
	 .template = "spec.template",
	 .replicas = "spec.replicas",
	 .numbered = true},
	{.kind = "DaemonSet", .template = "spec.template"},
	{.kind = "Job",
	 .template = "spec.template",
	 .replicas = "spec.parallelism",
	 .at_most = "spec.completions"},
	{.kind = "CronJob",
	 .template = "spec.jobTemplate.spec.template",
	 .replicas = "spec.jobTemplate.spec.parallelism",
	 .at_most = "spec.jobTemplate.spec.completions"},
	{.kind = "PodTemplate", .template = "template"},
	/* custom kinds */
	{.kind = NULL, .template = "spec.template", .replicas = "spec.replicas"},
};

struct reading {
	struct arena *a;
	uint64_t memory;
	struct manifest *ret;
	struct err *err;
};

static int no_memory(struct reading *rd)
{
	return err_set(rd->err, -E2BIG, "the manifest is too large");
}

__attribute__((format(printf, 2, 3))) static int manifest_note(struct reading *rd, const char *fmt,
							       ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct manifest *m = rd->ret;
	if (m->n_notes == MANIFEST_NOTES_MAX)
		return 0;
	m->notes[m->n_notes] = arena_strdup(rd->a, text);
	return m->notes[m->n_notes++] ? 0 : no_memory(rd);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Object of the cluster. */
struct object {
	rp_cfg root;
	const char *kind, *name, *ns;
};

static const char *name_of(struct reading *rd, rp_cfg root)
{
	const char *name = conf_text(conf_get(root, "metadata.name"), "");
	const char *stem = conf_text(conf_get(root, "metadata.generateName"), "");
	if (*name || !*stem)
		return *name ? name : "pod";
	return arena_printf(rd->a, "%sx", stem);
}

/* Returns true if a list of containers is below `at`, each with a name. Other templates, as those
 * of virtual machines, make no pods. */
static bool has_containers(rp_cfg at)
{
	rp_cfg ctrs = conf_get(at, "spec.containers");
	if (conf_kind(ctrs) != RP_NODE_LIST || !conf_count(ctrs))
		return false;
	for (uint32_t i = 0; i < conf_count(ctrs); i++)
		if (!conf_text(conf_get(conf_item(ctrs, i), "name"), NULL))
			return false;
	return true;
}

static bool has_condition(const struct object *o, const char *type)
{
	rp_cfg list = conf_get(o->root, "status.conditions");
	for (uint32_t i = 0; i < conf_count(list); i++)
		if (str_eq(conf_text(conf_get(conf_item(list, i), "type"), ""), type) &&
		    str_eq(conf_text(conf_get(conf_item(list, i), "status"), ""), "True"))
			return true;
	return false;
}

/* Returns true if the object's pods have ended and use no CPUs. */
static bool has_ended(const struct object *o)
{
	const char *phase = conf_text(conf_get(o->root, "status.phase"), "");
	if (str_eq(o->kind, "Pod"))
		return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
	return str_eq(o->kind, "Job") &&
	       (has_condition(o, "Complete") || has_condition(o, "Failed"));
}

static const struct template_kind *kind_of(const struct object *o)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (!kinds[i].kind || str_eq(kinds[i].kind, o->kind))
			return conf_get(o->root, kinds[i].template) ? &kinds[i] : NULL;
	return NULL;
}

static int64_t count_at(const struct object *o, const char *path, int64_t fallback)
{
	rp_cfg node = path ? conf_get(o->root, path) : NULL;
	return node ? conf_value(node, RP_T_INT, -1) : fallback;
}

static int replicas_of(struct reading *rd, const struct object *o, const struct template_kind *k,
		       uint32_t *ret)
{
	int64_t n = count_at(o, k->replicas, 1), most = count_at(o, k->at_most, n);
	if (n < 0 || most < 0)
		return err_set(rd->err, -EINVAL, "%s: \"%s\" is not a number of replicas",
			       n < 0 ? k->replicas : k->at_most,
			       conf_text(conf_get(o->root, n < 0 ? k->replicas : k->at_most), ""));
	n = most < n ? most : n;
	*ret = n < MANIFEST_PODS_MAX ? (uint32_t)n : MANIFEST_PODS_MAX;
	return n > MANIFEST_PODS_MAX
		       ? manifest_note(rd, "%s %s: only trying the first %u of %lld replicas",
				       o->kind, o->name, MANIFEST_PODS_MAX, (long long)n)
		       : 0;
}

/* ---- pods of an object ----------------------------------------------------------------------- */

static int add_pod(struct reading *rd, const struct object *o, struct manifest_source *source,
		   uint32_t replica, uint32_t n_replicas)
{
	struct manifest *m = rd->ret;
	struct manifest_pod *pod = &m->pods[m->n];
	if (m->n == MANIFEST_PODS_MAX)
		return err_set(rd->err, -E2BIG, "more than %u pods", MANIFEST_PODS_MAX);
	pod->owner = arena_printf(rd->a, "%s %s/%s", o->kind, source->ns, o->name);
	pod->replica = replica;
	pod->n_replicas = n_replicas;
	int r = pod->owner && source->name ? manifest_read_pod(source, m->n, pod, rd->err)
					   : no_memory(rd);
	if (r)
		return r;
	m->n++;
	m->n_ctrs += pod->n;
	return m->n_ctrs <= MANIFEST_ALL_CTRS_MAX
		       ? 0
		       : err_set(rd->err, -E2BIG, "more than %u containers in total",
				 MANIFEST_ALL_CTRS_MAX);
}

static int add_template(struct reading *rd, const struct object *o, const struct template_kind *k)
{
	rp_cfg pod = conf_get(o->root, k->template);
	struct manifest_source source = {
		.arena = rd->a,
		.memory = rd->memory,
		.pod = pod,
		.ns = conf_text(conf_get(pod, "metadata.namespace"), o->ns),
	};
	uint32_t n = 0;
	int r = replicas_of(rd, o, k, &n);
	if (!r && !n)
		return manifest_note(rd, "%s %s has no replicas", o->kind, o->name);
	for (uint32_t i = 0; !r && i < n; i++) {
		source.name =
			n > 1 || k->numbered ? arena_printf(rd->a, "%s-%u", o->name, i) : o->name;
		r = add_pod(rd, o, &source, i + 1, n);
	}
	return r;
}

static int add_object(struct reading *rd, rp_cfg root)
{
	const char *kind = conf_text(conf_get(root, "kind"), "");
	const struct object o = {.root = root,
				 .kind = *kind ? kind : "Pod",
				 .name = name_of(rd, root),
				 .ns = conf_text(conf_get(root, "metadata.namespace"), "default")};
	if (!o.name)
		return no_memory(rd);
	const struct template_kind *k = kind_of(&o);
	int r;
	if (has_ended(&o))
		return manifest_note(rd, "%s %s has ended", o.kind, o.name);
	if (k && (k->kind || has_containers(conf_get(root, k->template)))) {
		r = add_template(rd, &o, k);
	} else if (str_eq(o.kind, "Pod") || has_containers(root)) {
		struct manifest_source source = {rd->a, rd->memory, root, o.name, o.ns};
		r = add_pod(rd, &o, &source, 1, 1);
	} else {
		return manifest_note(rd, "%s %s has no pods", o.kind, o.name);
	}
	return r ? err_prefix(rd->err, "%s %s: ", o.kind, o.name) : 0;
}

static int add_any(struct reading *rd, rp_cfg root, unsigned depth)
{
	rp_cfg items = conf_get(root, "items");
	if (conf_kind(items) != RP_NODE_LIST)
		return add_object(rd, root);
	if (depth == LISTS_MAX)
		return err_set(rd->err, -EINVAL, "more than %u nested lists", LISTS_MAX);
	int r = 0;
	for (uint32_t i = 0; !r && i < conf_count(items); i++)
		r = add_any(rd, conf_item(items, i), depth + 1);
	return r;
}

/* Returns -EINVAL if the manifest has no pods; the first note says which objects it has instead. */
static int check_any(struct reading *rd, unsigned n_docs)
{
	const struct manifest *m = rd->ret;
	if (m->n)
		return 0;
	if (!n_docs)
		return err_set(rd->err, -EINVAL, "it is empty");
	return err_set(rd->err, -EINVAL, "it contains no pod%s%s", m->n_notes ? ": " : "",
		       m->n_notes ? m->notes[0] : "");
}

int manifest_read(struct arena *a, const char *name, const char *text, uint64_t memory,
		  struct manifest *ret, struct err *err)
{
	struct reading rd = {.a = a, .memory = memory, .ret = ret, .err = err};
	struct documents docs = {0};
	*ret = (struct manifest){
		.pods = arena_array(a, MANIFEST_PODS_MAX, sizeof *ret->pods),
		.notes = arena_array(a, MANIFEST_NOTES_MAX, sizeof *ret->notes),
	};
	if (!ret->pods || !ret->notes)
		return no_memory(&rd);
	int r = documents_parse(name, text, strlen(text), &docs, err);
	if (r)
		return r;
	for (unsigned i = 0; !r && i < docs.n_roots; i++)
		r = add_any(&rd, docs.roots[i], 0);
	if (!r)
		r = check_any(&rd, docs.n_roots);
	documents_fini(&docs);
	return r ? err_prefix(err, "%s: ", name) : 0;
}
