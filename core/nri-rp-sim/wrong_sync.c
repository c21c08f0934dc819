/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/wrong_sync.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-sim/model.h"
#include "core/lib/util/str.h"

#define UNKNOWN_MAX 30000
#define LABELS_MAX 100000
#define TEXT_MAX (16 << 20)

static const char keys[] = "missing twice unknown cpus annotations labels orphans cut";

static bool wrong_sync_has(const json_t *list, const char *name)
{
	const json_t *item;
	size_t i;
	json_array_foreach(list, i, item)
	{
		if (str_eq(json_string_value(item), name))
			return true;
	}
	return false;
}

int lie_set(struct sim *s, const json_t *args, struct err *err)
{
	const json_t *node;
	int64_t number;
	struct args *a = ARGS(args, err);
	(void)arg_check(a, keys, "lie");
	(void)arg_list(a, "missing", &node);
	(void)arg_list(a, "twice", &node);
	(void)arg_int(a, "unknown", 0, 0, UNKNOWN_MAX, &number);
	(void)arg_map(a, "cpus", &node);
	(void)arg_int(a, "annotations", 0, 0, TEXT_MAX, &number);
	(void)arg_int(a, "labels", 0, 0, LABELS_MAX, &number);
	if (arg_int(a, "cut", 0, 0, INT64_MAX, &number))
		return a->r;
	json_decref(s->lie);
	s->lie = json_deep_copy(args);
	return s->lie ? 0 : err_errno(err, -ENOMEM, "lie");
}

static int64_t number_of(const struct sim *s, const char *key)
{
	return json_integer_value(json_object_get(s->lie, key));
}

size_t lie_more(const struct sim *s)
{
	return (size_t)number_of(s, "unknown") + json_array_size(json_object_get(s->lie, "twice"));
}

uint64_t lie_cut(struct sim *s)
{
	int64_t n = number_of(s, "cut");
	if (!n)
		return UINT64_MAX;
	(void)json_object_del(s->lie, "cut");
	return (uint64_t)n;
}

/* ---- Synchronize ----------------------------------------------------------------------------- */

static const char *name_of(const struct sim *s, const Nri__Container *m)
{
	const struct sim_ctr *c = model_ctr_of_id(s, m->id);
	return c ? c->name : "";
}

/* Removes containers of "missing" from the list and appends those of "twice" again. */
static void leave_out_and_repeat(const struct sim *s, struct nri_existing *all)
{
	const json_t *missing = json_object_get(s->lie, "missing"),
		     *twice = json_object_get(s->lie, "twice");
	size_t n = all->n_ctrs, kept = 0;
	Nri__Container **again = all->ctrs + n;
	size_t n_again = 0;
	for (size_t i = 0; i < n; i++)
		if (wrong_sync_has(twice, name_of(s, all->ctrs[i])))
			again[n_again++] = all->ctrs[i];
	for (size_t i = 0; i < n + n_again; i++)
		if (!wrong_sync_has(missing, name_of(s, all->ctrs[i])))
			all->ctrs[kept++] = all->ctrs[i];
	all->n_ctrs = kept;
}

static void wrong_sync_move(const struct sim *s, struct nri_existing *all)
{
	const json_t *cpus = json_object_get(s->lie, "cpus");
	for (size_t i = 0; cpus && i < all->n_ctrs; i++) {
		const char *list =
			json_string_value(json_object_get(cpus, name_of(s, all->ctrs[i])));
		Nri__LinuxResources *r = all->ctrs[i]->lnx->resources;
		if (list && r && r->cpu)
			r->cpu->cpus = (char *)(uintptr_t)list;
	}
}

/* Adds containers that the model does not have, in the first pod, or in an unknown pod if there is
 * none. */
static int wrong_sync_invent(const struct sim *s, struct arena *a, struct nri_existing *all)
{
	int64_t n = number_of(s, "unknown");
	for (int64_t i = 0; i < n; i++) {
		Nri__Container *m = pb_build(a, &nri__container__descriptor);
		if (!m)
			return -ENOMEM;
		m->id = arena_printf(a, "%064llx", (unsigned long long)i + 1);
		m->name = arena_printf(a, "unknown-%lld", (long long)i);
		m->pod_sandbox_id = all->n_pods ? all->pods[0]->id : (char *)"nowhere";
		m->state = NRI__CONTAINER_STATE__CONTAINER_RUNNING;
		if (!m->id || !m->name)
			return -ENOMEM;
		all->ctrs[all->n_ctrs++] = m;
	}
	return 0;
}

/* Gives each pod the configured number of labels, or one annotation of the configured size, in
 * place of its own. */
static int wrong_sync_relabel(const struct sim *s, struct arena *a, struct nri_existing *all)
{
	size_t n = (size_t)number_of(s, "labels"), size = (size_t)number_of(s, "annotations");
	char *text = size ? arena_alloc(a, size + 1) : NULL;
	if (size && !text)
		return -ENOMEM;
	if (text) {
		memset(text, '[', size);
		text[size] = '\0';
	}
	for (size_t i = 0; i < all->n_pods; i++) {
		Nri__PodSandbox *pod = all->pods[i];
		if (n)
			pod->n_labels = 0;
		for (size_t k = 0; k < n; k++) {
			Nri__PodSandbox__LabelsEntry *e =
				PB_ADD(a, pod, labels, nri__pod_sandbox__labels_entry);
			if (!e || !(e->key = arena_printf(a, "label-%zu", k)))
				return -ENOMEM;
			e->value = e->key;
		}
		for (size_t k = 0; text && k < pod->n_annotations; k++)
			pod->annotations[k]->value = text;
	}
	return 0;
}

int lie_tell(const struct sim *s, struct arena *a, struct nri_existing *all)
{
	leave_out_and_repeat(s, all);
	wrong_sync_move(s, all);
	int r = wrong_sync_invent(s, a, all);
	if (!r)
		r = wrong_sync_relabel(s, a, all);
	if (json_is_true(json_object_get(s->lie, "orphans")))
		all->n_pods = 0;
	return r;
}
