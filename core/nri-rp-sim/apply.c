/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/apply.h"
#include "core/nri-rp-sim/check.h"
#include "core/nri-rp-sim/model.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/str.h"

#define RECORDS_MAX 200000u

/* ---- resources ------------------------------------------------------------------------------- */

static int set_text(char **to, const char *text)
{
	char *copy;
	if (!*text || str_eq(*to, text))
		return 0;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static void set_number(int64_t *to, int64_t value, bool zero_leaves)
{
	if (value || !zero_leaves)
		*to = value;
}

/* Copies resources. zero_leaves: 0 leaves a value unchanged, as containerd's updates do; creations
 * and CRI-O set it. */
static int set_resources(struct resources *to, const Nri__LinuxResources *m, bool zero_leaves)
{
	const Nri__LinuxCPU *c = m->cpu;
	int r = 0;
	if (c) {
		if (c->shares)
			set_number(&to->shares, (int64_t)c->shares->value, zero_leaves);
		if (c->quota)
			set_number(&to->quota, c->quota->value, zero_leaves);
		if (c->period)
			set_number(&to->period, (int64_t)c->period->value, zero_leaves);
		r = set_text(&to->cpus, c->cpus);
		if (!r)
			r = set_text(&to->mems, c->mems);
	}
	if (m->memory && m->memory->limit)
		set_number(&to->memory_limit, m->memory->limit->value, true);
	return r;
}

static int copy_resources(struct resources *to, const struct resources *from)
{
	*to = *from;
	to->cpus = strdup(from->cpus);
	to->mems = strdup(from->mems);
	return to->cpus && to->mems ? 0 : -ENOMEM;
}

static void fini_resources(struct resources *res)
{
	free(res->cpus);
	free(res->mems);
}

static bool same_place(const struct resources *a, const struct resources *b)
{
	return str_eq(a->cpus, b->cpus) && str_eq(a->mems, b->mems);
}

static bool apply_same(const struct resources *a, const struct resources *b)
{
	return same_place(a, b) && a->shares == b->shares && a->quota == b->quota &&
	       a->period == b->period && a->memory_limit == b->memory_limit;
}

/* ---- updates --------------------------------------------------------------------------------- */

static json_t *apply_record(struct sim *s, const Nri__ContainerUpdate *u, const struct sim_ctr *c,
			    const char *via)
{
	const Nri__LinuxResources *m = u->lnx ? u->lnx->resources : NULL;
	json_t *to = json_object();
	char name[MODEL_NAME_MAX];
	doc_put_int(to, "seq", (int64_t)++s->n_updates);
	doc_put_text(to, "via", via);
	doc_put_text(to, "id", u->container_id);
	doc_put_text(to, "container", c ? model_name(c, name) : "");
	if (m && m->cpu) {
		if (*m->cpu->cpus)
			doc_put_text(to, "cpus", m->cpu->cpus);
		if (*m->cpu->mems)
			doc_put_text(to, "mems", m->cpu->mems);
		if (m->cpu->shares)
			doc_put_int(to, "shares", (int64_t)m->cpu->shares->value);
		if (m->cpu->quota)
			doc_put_int(to, "quota", m->cpu->quota->value);
		if (m->cpu->period)
			doc_put_int(to, "period", (int64_t)m->cpu->period->value);
	}
	if (m && m->memory && m->memory->limit)
		doc_put_int(to, "memoryLimit", m->memory->limit->value);
	if (json_array_size(s->updates) < RECORDS_MAX)
		(void)json_array_append(s->updates, to);
	return to;
}

static int apply_change(struct sim *s, struct sim_ctr *c, const Nri__LinuxResources *m, json_t *rec,
			struct err *err)
{
	struct resources next = {0};
	int r = copy_resources(&next, &c->res);
	if (!r)
		r = set_resources(&next, m, s->runtime == RUNTIME_CONTAINERD);
	if (r) {
		fini_resources(&next);
		return err_errno(err, r, "update");
	}
	r = check_sets(s, next.cpus, next.mems, err);
	if (r) {
		char name[MODEL_NAME_MAX];
		sim_problem(s, "update of %s: %s", model_name(c, name), err->text);
	} else if (c->failing && c->state == CTR_RUNNING) {
		r = err_set(err, -EBUSY, "the scenario makes this update fail");
	}
	if (r) {
		fini_resources(&next);
		return r;
	}
	bool moves = !same_place(&c->res, &next), changes = !apply_same(&c->res, &next);
	c->n_updates++;
	c->n_moves += moves;
	s->n_needless += !changes;
	doc_put_bool(rec, "changes", changes);
	fini_resources(&c->res);
	c->res = next;
	return 0;
}

static int apply_update(struct sim *s, const Nri__ContainerUpdate *u, const char *via)
{
	struct err err = ERR_INIT;
	struct sim_ctr *c = model_ctr_of_id(s, u->container_id);
	_json_ json_t *rec = apply_record(s, u, c, via);
	if (!c) {
		doc_put_bool(rec, "unknown", true);
		return 0;
	}
	if (!u->lnx || !u->lnx->resources)
		return 0;
	check_ignored(s, u->lnx->resources, true, c->name);
	int r = apply_change(s, c, u->lnx->resources, rec, &err);
	if (r)
		doc_put_text(rec, "failed", err.text);
	return r && !u->ignore_failure ? r : 0;
}

unsigned apply_updates(struct sim *s, Nri__ContainerUpdate **list, size_t n, const char *via)
{
	unsigned failed = 0;
	for (size_t i = 0; i < n; i++)
		failed += apply_update(s, list[i], via) != 0;
	return failed;
}

/* Applies the updates of an answer after NRI's own checks. */
static int apply_answered(struct sim *s, Nri__ContainerUpdate **list, size_t n,
			  const struct sim_ctr *creating, const char *via, struct err *err)
{
	int r = check_claims(s, list, n, err);
	for (size_t i = 0; !r && creating && i < n; i++) {
		if (!str_eq(list[i]->container_id, creating->id))
			continue;
		sim_problem(s, "an update of the container that is being created");
		r = err_set(err, -EINVAL, "a plugin requested an update of %s during its creation",
			    creating->id);
	}
	if (r)
		return r;
	unsigned failed = apply_updates(s, list, n, via);
	if (failed && s->runtime == RUNTIME_CRIO)
		return err_set(err, -EIO, "%u updates of containers failed", failed);
	return 0;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Returns the map below a key, which is created if it is missing. */
static json_t *sub_map(json_t *map, const char *key)
{
	json_t *sub = json_object_get(map, key);
	if (sub)
		return sub;
	(void)json_object_set_new(map, key, json_object());
	return json_object_get(map, key);
}

/* Sets a key; a leading "-" removes it. */
static void set_member(json_t *map, const char *key, const char *value)
{
	if (*key == '-')
		(void)json_object_del(map, key + 1);
	else
		doc_put_text(map, key, value);
}

#define OPTIONS_MAX 256

static const char *apply_joined(const Nri__Mount *m, char ret[OPTIONS_MAX])
{
	size_t n = 0;
	*ret = '\0';
	for (size_t i = 0; i < m->n_options && n < OPTIONS_MAX; i++)
		n += (size_t)snprintf(ret + n, OPTIONS_MAX - n, "%s%s", i ? "," : "",
				      m->options[i]);
	return ret;
}

static void take_mounts(struct sim_ctr *c, const Nri__ContainerAdjustment *m)
{
	json_t *list = json_object_get(c->spec, "mounts"), *given = json_array();
	if (m->n_mounts && !list) {
		(void)json_object_set_new(c->spec, "mounts", json_array());
		list = json_object_get(c->spec, "mounts");
	}
	for (size_t i = 0; i < m->n_mounts; i++) {
		json_t *mount = json_object();
		char options[OPTIONS_MAX];
		doc_put_text(mount, "destination", m->mounts[i]->destination);
		doc_put_text(mount, "source", m->mounts[i]->source);
		doc_put_text(mount, "type", m->mounts[i]->type);
		doc_put_text(mount, "options", apply_joined(m->mounts[i], options));
		(void)json_array_append(given, mount);
		(void)json_array_append_new(list, mount);
	}
	if (m->n_mounts)
		(void)json_object_set(c->given, "mounts", given);
	json_decref(given);
}

static void take_common(struct sim_ctr *c, const Nri__ContainerAdjustment *m)
{
	json_t *args = m->n_args ? json_array() : NULL;
	for (size_t i = 0; args && i < m->n_args; i++)
		(void)json_array_append_new(args, json_string(m->args[i]));
	if (args)
		(void)json_object_set_new(c->given, "args", args);
	for (size_t i = 0; i < m->n_env; i++) {
		set_member(sub_map(c->spec, "env"), m->env[i]->key, m->env[i]->value);
		set_member(sub_map(c->given, "env"), m->env[i]->key, m->env[i]->value);
	}
	for (size_t i = 0; i < m->n_annotations; i++) {
		const char *key = m->annotations[i]->key, *value = m->annotations[i]->value;
		set_member(sub_map(c->spec, "annotations"), key, value);
		set_member(sub_map(c->given, "annotations"), key, value);
	}
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		set_member(sub_map(c->given, "cdi"), m->cdi_devices[i]->name, "");
	take_mounts(c, m);
}

/* Records devices by type and number ("c 195:0") with the requested mode and owner. */
static void take_devices(struct sim_ctr *c, const Nri__LinuxContainerAdjustment *l)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		const Nri__LinuxDevice *d = l->devices[i];
		char text[128];
		int n = snprintf(text, sizeof text, "%.1s %lld:%lld", d->type, (long long)d->major,
				 (long long)d->minor);
		if (d->file_mode)
			n += snprintf(text + n, sizeof text - (size_t)n, " %04o",
				      d->file_mode->value);
		if (d->uid)
			n += snprintf(text + n, sizeof text - (size_t)n, " user %u", d->uid->value);
		if (d->gid)
			(void)snprintf(text + n, sizeof text - (size_t)n, " group %u",
				       d->gid->value);
		set_member(sub_map(c->given, "devices"), d->path, text);
	}
}

static void take_classes(struct sim_ctr *c, const Nri__LinuxResources *r)
{
	if (r->rdt_class)
		doc_put_text(c->given, "rdt", r->rdt_class->value);
	if (r->blockio_class)
		doc_put_text(c->given, "blockio", r->blockio_class->value);
	for (size_t i = 0; i < r->n_unified; i++)
		doc_put_text(sub_map(c->given, "unified"), r->unified[i]->key,
			     r->unified[i]->value);
	for (size_t i = 0; i < r->n_hugepage_limits; i++)
		doc_put_int(sub_map(c->given, "hugepages"), r->hugepage_limits[i]->page_size,
			    (int64_t)r->hugepage_limits[i]->limit);
	if (r->memory && r->memory->swap)
		doc_put_int(c->given, "swap", r->memory->swap->value);
}

/* Returns the flags as bits by their numbers. */
static int64_t flags_of(const Nri__LinuxScheduler *m)
{
	int64_t flags = 0;
	for (size_t i = 0; i < m->n_flags; i++)
		if (m->flags[i] >= 0 && m->flags[i] < 63)
			flags |= INT64_C(1) << m->flags[i];
	return flags;
}

static void take_scheduling(struct sim_ctr *c, const Nri__LinuxContainerAdjustment *l)
{
	json_t *to;
	if (l->scheduler) {
		to = sub_map(c->given, "scheduler");
		doc_put_int(to, "policy", l->scheduler->policy);
		doc_put_int(to, "nice", l->scheduler->nice);
		doc_put_int(to, "priority", l->scheduler->priority);
		doc_put_int(to, "flags", flags_of(l->scheduler));
		doc_put_int(to, "runtime", (int64_t)l->scheduler->runtime);
		doc_put_int(to, "deadline", (int64_t)l->scheduler->deadline);
		doc_put_int(to, "period", (int64_t)l->scheduler->period);
	}
	if (l->io_priority) {
		to = sub_map(c->given, "ioPriority");
		doc_put_int(to, "class", l->io_priority->class_);
		doc_put_int(to, "priority", l->io_priority->priority);
	}
	if (l->memory_policy) {
		to = sub_map(c->given, "memoryPolicy");
		doc_put_int(to, "mode", l->memory_policy->mode);
		doc_put_text(to, "nodes", l->memory_policy->nodes);
	}
	if (l->oom_score_adj) {
		c->oom_score_adj = l->oom_score_adj->value;
		doc_put_int(c->given, "oomScoreAdj", c->oom_score_adj);
	}
}

/* Removes fields that an older release does not have; the plugin is not notified. */
static void drop_unknown(struct sim *s, Nri__LinuxContainerAdjustment *l)
{
	unsigned minor = s->release->minor;
	if (minor < 7 && l->oom_score_adj)
		l->oom_score_adj = NULL;
	if (minor < 10)
		l->io_priority = NULL;
	if (minor < 11) {
		l->scheduler = NULL;
		l->rdt = NULL;
	}
	if (minor < 12)
		l->memory_policy = NULL;
}

static int take_linux(struct sim *s, struct sim_ctr *c, const Nri__LinuxContainerAdjustment *given,
		      struct err *err)
{
	Nri__LinuxContainerAdjustment l = *given;
	drop_unknown(s, &l);
	if (l.resources) {
		check_ignored(s, l.resources, false, c->name);
		if (set_resources(&c->res, l.resources, false))
			return err_errno(err, -ENOMEM, "creation");
		take_classes(c, l.resources);
	}
	if (l.rdt && l.rdt->clos_id)
		doc_put_text(c->given, "rdt", l.rdt->clos_id->value);
	take_scheduling(c, &l);
	take_devices(c, &l);
	int r = check_sets(s, c->res.cpus, c->res.mems, err);
	if (r) {
		char name[MODEL_NAME_MAX];
		sim_problem(s, "creation of %s: %s", model_name(c, name), err->text);
	}
	return r;
}

int apply_creation(struct sim *s, struct sim_ctr *ctr, const Nri__CreateContainerResponse *m,
		   struct err *err)
{
	int r = check_message(s, &m->base, "the reply to CreateContainer");
	if (r)
		return err_set(err, r, "the plugin's reply cannot be decoded");
	if (m->n_evict)
		sim_problem(s, "evictions, which no release of NRI supports");
	if (m->adjust)
		r = check_adjustment(s, m->adjust, err);
	if (!r)
		r = apply_answered(s, m->update, m->n_update, ctr, "create", err);
	if (r || !m->adjust)
		return r;
	take_common(ctr, m->adjust);
	return m->adjust->lnx ? take_linux(s, ctr, m->adjust->lnx, err) : 0;
}

/* ---- resizes --------------------------------------------------------------------------------- */

/* Sets the kubelet's values. Its cpuset is empty unless its CPU manager sets one. */
static int take_wanted(struct resources *to, const struct resources *wanted)
{
	to->shares = wanted->shares;
	to->quota = wanted->quota;
	to->period = wanted->period;
	to->memory_limit = wanted->memory_limit;
	int r = set_text(&to->cpus, wanted->cpus);
	return r ? r : set_text(&to->mems, wanted->mems);
}

static int resize_self(struct sim *s, struct sim_ctr *c, const struct resources *wanted,
		       const Nri__UpdateContainerResponse *m, struct err *err)
{
	struct resources next = {0};
	int r = copy_resources(&next, &c->res);
	if (!r)
		r = take_wanted(&next, wanted);
	for (size_t i = 0; !r && i < m->n_update; i++) {
		const Nri__ContainerUpdate *u = m->update[i];
		if (!str_eq(u->container_id, c->id) || !u->lnx || !u->lnx->resources)
			continue;
		check_ignored(s, u->lnx->resources, true, c->name);
		json_decref(apply_record(s, u, c, "resize"));
		r = set_resources(&next, u->lnx->resources, false);
	}
	if (r) {
		fini_resources(&next);
		return err_errno(err, r, "update");
	}
	r = check_sets(s, next.cpus, next.mems, err);
	if (r)
		sim_problem(s, "update of %s: %s", c->name, err->text);
	if (r) {
		fini_resources(&next);
		return r;
	}
	c->n_moves += !same_place(&c->res, &next);
	fini_resources(&c->res);
	c->res = next;
	return 0;
}

int apply_resize(struct sim *s, struct sim_ctr *ctr, const struct resources *wanted,
		 const Nri__UpdateContainerResponse *m, struct err *err)
{
	int r = check_message(s, &m->base, "the reply to UpdateContainer");
	if (r)
		return err_set(err, r, "the plugin's reply cannot be decoded");
	r = check_claims(s, m->update, m->n_update, err);
	if (r)
		return r;
	unsigned failed = 0;
	for (size_t i = 0; i < m->n_update; i++)
		if (!str_eq(m->update[i]->container_id, ctr->id))
			failed += apply_updates(s, &m->update[i], 1, "update");
	if (failed && s->runtime == RUNTIME_CRIO)
		return err_set(err, -EIO, "%u updates of containers failed", failed);
	return resize_self(s, ctr, wanted, m, err);
}
