/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-bridge/cgroup_source_internal.h"
#include "core/nri-rp-bridge/cri_edit.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define SHORT_ID 12 /* characters of an id used in place of an unknown name */
#define SHARES_PER_CPU 1024
#define SHARES_MIN 2
#define PERIOD_US 100000
#define OOM_FILE "proc/%u/oom_score_adj"

static char *describe_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* Copies pairs to map entries; entries of all maps of texts have the same layout. */
static Cri__ListedPod__LabelsEntry **describe_entries(struct arena *a, Agent__Pair *const *list,
						      size_t n)
{
	Cri__ListedPod__LabelsEntry **ret = arena_array(a, n + 1, sizeof *ret);
	for (size_t i = 0; ret && i < n; i++) {
		ret[i] = arena_zero(a, Cri__ListedPod__LabelsEntry);
		if (!ret[i])
			return NULL;
		cri__listed_pod__labels_entry__init(ret[i]);
		ret[i]->key = list[i]->key;
		ret[i]->value = list[i]->value;
	}
	return ret;
}

static const char *describe_or(const char *one, const char *other)
{
	return one && *one ? one : other ? other : "";
}

/* Returns the resources of the pod's cgroup, in which the kubelet writes the sums of its
 * containers. */
static Nri__LinuxResources *pod_resources(const struct cgroup_source *s, struct arena *a,
					  const struct pod *pod)
{
	static char none[] = "";
	Cri__Resources *r = arena_zero(a, Cri__Resources);
	if (!r || cgroup_read(&s->files, a, pod->info.cgroup, r) == -ENOMEM)
		return NULL;
	r->cpuset_cpus = r->cpuset_mems = none;
	return cri_resources(a, r);
}

Nri__PodSandbox *describe_pod(const struct cgroup_source *s, struct arena *a, const struct pod *pod)
{
	const Agent__FedPod *fed = podlist_find(s->pods, pod->info.uid);
	struct bundle bundle = {0};
	Cri__PodMetadata metadata = CRI__POD_METADATA__INIT;
	Cri__ListedPod listed = CRI__LISTED_POD__INIT;
	if (bundle_read(&s->files.root, s->config.state, a, pod->id, &bundle))
		bundle = (struct bundle){0};
	metadata.name = describe_text(
		describe_or(fed ? fed->name : "", describe_or(bundle.pod, pod->info.uid)));
	metadata.namespace_ = describe_text(describe_or(fed ? fed->namespace_ : "", bundle.ns));
	metadata.uid = pod->info.uid;
	listed.id = pod->id;
	listed.metadata = &metadata;
	listed.n_labels = fed ? fed->n_labels : 0;
	listed.labels = describe_entries(a, fed ? fed->labels : NULL, listed.n_labels);
	listed.n_annotations = fed ? fed->n_annotations : bundle.n_annotations;
	listed.annotations = (Cri__ListedPod__AnnotationsEntry **)(void *)describe_entries(
		a, fed ? fed->annotations : bundle.annotations, listed.n_annotations);
	const char *parent = arena_printf(a, "/%s", pod->info.cgroup);
	if (!listed.labels || !listed.annotations || !parent)
		return NULL;
	Nri__PodSandbox *m = cri_listed_pod(a, &listed, parent);
	if (!m)
		return NULL;
	m->id = pod->id;
	m->lnx->pod_resources = pod_resources(s, a, pod);
	return m->lnx->pod_resources ? m : NULL;
}

/* ---- containers ------------------------------------------------------------------------------ */

static const Agent__PodContainer *fed_ctr(const Agent__FedPod *fed, const char *id,
					  const char *name)
{
	for (size_t i = 0; fed && i < fed->n_containers; i++)
		if (str_eq(fed->containers[i]->id, id) ||
		    (*name && str_eq(fed->containers[i]->name, name)))
			return fed->containers[i];
	return NULL;
}

static int64_t describe_amount(Agent__Amount *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i]->name, name))
			return list[i]->amount;
	return 0;
}

/* Computes CRI resources from requests and limits as the kubelet does. */
static void resources_of_fed(const Agent__PodContainer *c, Cri__Resources *r)
{
	int64_t limit = describe_amount(c->limits, c->n_limits, "cpu");
	int64_t mcpu = describe_amount(c->requests, c->n_requests, "cpu");
	int64_t memory = describe_amount(c->limits, c->n_limits, "memory");
	mcpu = mcpu ? mcpu : limit;
	if (mcpu > 1000000000 || limit > 1000000000)
		return;
	int64_t shares = mcpu * SHARES_PER_CPU / 1000;
	r->cpu_shares = shares < SHARES_MIN ? SHARES_MIN : shares;
	if (limit > 0) {
		r->cpu_period = PERIOD_US;
		r->cpu_quota = limit * PERIOD_US / 1000;
	}
	if (memory > 0)
		r->memory_limit = memory;
}

#define N_LISTED (sizeof((struct cgroup_info *)NULL)->listed / sizeof(int64_t))

enum { SHARES, QUOTA, MEMORY };

static void note_amounts(int64_t to[N_LISTED], const Agent__PodContainer *fed)
{
	Cri__Resources r = CRI__RESOURCES__INIT;
	resources_of_fed(fed, &r);
	to[SHARES] = r.cpu_shares;
	to[QUOTA] = r.cpu_quota;
	to[MEMORY] = r.memory_limit;
}

bool describe_resize(const struct cgroup_source *s, struct ctr *ctr, Cri__Resources *ret)
{
	const Agent__PodContainer *fed =
		fed_ctr(podlist_find(s->pods, ctr->pod->info.uid), ctr->id, ctr->info.name);
	struct cgroup_info *info = &ctr->info;
	if (!fed)
		return false;
	cri__resources__init(ret);
	resources_of_fed(fed, ret);
	note_amounts(info->asked, fed);
	if (!info->listed[SHARES])
		memcpy(info->listed, info->asked, sizeof info->listed);
	return memcmp(info->listed, info->asked, sizeof info->listed) != 0;
}

int describe_resized(struct ctr *ctr)
{
	const int64_t *asked = ctr->info.asked;
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	memcpy(ctr->info.listed, asked, sizeof ctr->info.listed);
	Cri__Resources *to = wanted_before(ctr, a);
	if (!to)
		return ctr->pending.data ? -ENOMEM : 0;
	if (to->cpu_shares)
		to->cpu_shares = asked[SHARES];
	if (to->cpu_quota || to->cpu_period) {
		to->cpu_quota = asked[QUOTA] ? asked[QUOTA] : -1;
		to->cpu_period = PERIOD_US;
	}
	if (to->memory_limit)
		to->memory_limit = asked[MEMORY] ? asked[MEMORY] : -1;
	return packed_set(&ctr->pending, &to->base);
}

static void as_asked(const Cri__Resources *asked, Cri__Resources *r)
{
	r->cpu_shares = asked->cpu_shares ? asked->cpu_shares : r->cpu_shares;
	r->cpu_period = asked->cpu_period ? asked->cpu_period : r->cpu_period;
	r->cpu_quota = asked->cpu_quota ? asked->cpu_quota : r->cpu_quota;
	r->memory_limit = asked->memory_limit ? asked->memory_limit : r->memory_limit;
}

static int64_t oom_score(const struct cgroup_source *s, uint32_t pid)
{
	char path[64];
	int64_t v;
	(void)snprintf(path, sizeof path, OOM_FILE, pid);
	return pid && fs_read_i64(&s->files.root, path, &v) == 0 ? v : 0;
}

/* Returns a creation time. The true one is unknown; the time when the cgroup was first seen keeps
 * the order. */
static int64_t created_at(const struct ctr *ctr)
{
	return (int64_t)(clock_wall_ns() - (clock_ms() - ctr->info.since_ms) * 1000000u);
}

static Cri__Resources *resources_of(struct cgroup_source *s, struct arena *a, const struct ctr *ctr,
				    const struct bundle *bundle, const Agent__PodContainer *fed,
				    bool fresh)
{
	const Cri__Resources *asked = bundle->resources;
	Cri__Resources *r = arena_zero(a, Cri__Resources);
	if (!r || cgroup_read(&s->files, a, ctr->info.cgroup, r) == -ENOMEM)
		return NULL;
	if (fresh && asked)
		as_asked(asked, r);
	else if (fresh && fed)
		resources_of_fed(fed, r);
	else if (asked && cgroup_has_shares(&s->files, ctr->info.cgroup, asked->cpu_shares))
		/* several numbers of shares have the same weight; use the requested one */
		r->cpu_shares = asked->cpu_shares;
	return r;
}

Nri__Container *describe_ctr(struct cgroup_source *s, struct arena *a, struct ctr *ctr, bool fresh)
{
	const Agent__FedPod *pod = podlist_find(s->pods, ctr->pod->info.uid);
	struct bundle bundle = {.name = ""};
	Cri__ContainerMetadata metadata = CRI__CONTAINER_METADATA__INIT;
	Cri__ListedContainer listed = CRI__LISTED_CONTAINER__INIT;
	if (bundle_read(&s->files.root, s->config.state, a, ctr->id, &bundle))
		bundle = (struct bundle){.name = ""};
	const Agent__PodContainer *fed = fed_ctr(pod, ctr->id, bundle.name);
	Cri__Resources *r = resources_of(s, a, ctr, &bundle, fed, fresh);
	const char *cut = arena_printf(a, "%.*s", SHORT_ID, ctr->id);
	if (!r || !cut)
		return NULL;
	if (fed)
		note_amounts(ctr->info.listed, fed);
	uint32_t pid = cgroup_process(&s->files, ctr->info.cgroup);
	r->oom_score_adj = bundle.resources ? bundle.resources->oom_score_adj : oom_score(s, pid);
	metadata.name =
		describe_text(describe_or(fed ? fed->name : "", describe_or(bundle.name, cut)));
	free(ctr->info.name);
	ctr->info.name = strdup(metadata.name);
	if (!ctr->info.name)
		return NULL;
	listed.id = ctr->id;
	listed.metadata = &metadata;
	listed.state = fresh ? 0 : 1;
	listed.created_at = created_at(ctr);
	listed.labels = (Cri__ListedContainer__LabelsEntry **)(void *)describe_entries(
		a,
		(Agent__Pair *[]){
			&(Agent__Pair){.key = describe_text("io.kubernetes.container.name"),
				       .value = metadata.name},
			&(Agent__Pair){.key = describe_text("io.kubernetes.pod.uid"),
				       .value = ctr->pod->info.uid}},
		2);
	listed.n_labels = listed.labels ? 2 : 0;
	Nri__Container *m = cri_listed_container(a, ctr->pod->id, &listed, r);
	if (!m || !listed.labels)
		return NULL;
	m->id = ctr->id;
	m->pid = pid;
	m->lnx->cgroups_path = ctr->info.path;
	return m;
}
