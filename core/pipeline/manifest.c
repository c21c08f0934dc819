/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pipeline/manifest.h"

#include <string.h>

#include "core/conf/fragment.h"
#include "core/util/str.h"

#define POD_ID "nri-rpctl-try"
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define CPU_LIMIT_MAX (INT64_C(1000) * RP_CPUS_MAX) /* mCPU; more is no limit on any machine */
#define PERIOD_US 100000
#define QUOTA_MIN_US 1000
#define OOM_GUARANTEED (-997)
#define OOM_BEST_EFFORT 1000
#define OOM_BURSTABLE_MIN 3
#define OOM_BURSTABLE_MAX 999

/* 0: not given. CPU in milli. */
struct wants {
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
};

struct reading {
	struct arena *a;
	uint64_t memory;
	struct manifest *ret;
	struct wants *wants; /* of each container */
	struct err *err;
};

/* ---- pieces ---------------------------------------------------------------------------------------------------------- */

static int no_memory(struct reading *rd)
{
	return err_set(rd->err, -E2BIG, "the manifest is too large");
}

static int copy_text(struct reading *rd, rp_cfg node, const char *fallback, const char **ret)
{
	*ret = arena_strdup(rd->a, conf_text(node, fallback));
	return *ret ? 0 : no_memory(rd);
}

static int copy_map(struct reading *rd, rp_cfg map, const struct kv **ret, uint32_t *ret_n)
{
	uint32_t n = conf_kind(map) == RP_NODE_MAP ? conf_count(map) : 0;
	struct kv *pairs = arena_array(rd->a, n + 1, sizeof *pairs);
	if (!pairs)
		return no_memory(rd);
	for (uint32_t i = 0; i < n; i++) {
		pairs[i].key = arena_strdup(rd->a, conf_key(map, i));
		int r = copy_text(rd, conf_item(map, i), "", &pairs[i].value);
		if (r || !pairs[i].key)
			return r ? r : no_memory(rd);
	}
	*ret = pairs;
	*ret_n = n;
	return 0;
}

static int read_amount(struct reading *rd, rp_cfg ctr, const char *path, uint32_t type,
		       int64_t *ret)
{
	rp_cfg node = conf_get(ctr, path);
	*ret = conf_value(node, type, node ? -1 : 0);
	if (*ret >= 0)
		return 0;
	return err_set(rd->err, -EINVAL, "container %s: %s: \"%s\" is no amount",
		       conf_text(conf_get(ctr, "name"), "?"), path, conf_text(node, ""));
}

/* A limit without a request is a request, too: so the API server has it. */
static int read_wants(struct reading *rd, rp_cfg ctr, struct wants *ret)
{
	int r = read_amount(rd, ctr, "resources.requests.cpu", RP_T_CPU, &ret->cpu_request);
	if (!r)
		r = read_amount(rd, ctr, "resources.limits.cpu", RP_T_CPU, &ret->cpu_limit);
	if (!r)
		r = read_amount(rd, ctr, "resources.requests.memory", RP_T_BYTES,
				&ret->mem_request);
	if (!r)
		r = read_amount(rd, ctr, "resources.limits.memory", RP_T_BYTES, &ret->mem_limit);
	if (!ret->cpu_request)
		ret->cpu_request = ret->cpu_limit;
	if (!ret->mem_request)
		ret->mem_request = ret->mem_limit;
	return r;
}

/* ---- the kubelet's arithmetic ----------------------------------------------------------------------------------------- */

static uint32_t qos_of(const struct wants *wants, uint32_t n)
{
	bool any = false, all = true;
	for (uint32_t i = 0; i < n; i++) {
		const struct wants *w = &wants[i];
		any = any || w->cpu_request || w->mem_request;
		all = all && w->cpu_limit && w->cpu_request == w->cpu_limit && w->mem_limit &&
		      w->mem_request == w->mem_limit;
	}
	return !any ? RP_QOS_BEST_EFFORT : all ? RP_QOS_GUARANTEED : RP_QOS_BURSTABLE;
}

static int64_t shares_of(int64_t milli)
{
	if (milli >= (int64_t)1000 * SHARES_MAX / 1024)
		return SHARES_MAX;
	return milli * 1024 / 1000 < SHARES_MIN ? SHARES_MIN : milli * 1024 / 1000;
}

static int64_t oom_score_of(const struct wants *w, uint32_t qos, bool critical, uint64_t memory)
{
	if (qos == RP_QOS_GUARANTEED || critical)
		return OOM_GUARANTEED;
	if (qos == RP_QOS_BEST_EFFORT || !memory)
		return OOM_BEST_EFFORT;
	int64_t adj = 1000 - (int64_t)((__int128)1000 * w->mem_request / (int64_t)memory);
	if (adj < OOM_BURSTABLE_MIN)
		return OOM_BURSTABLE_MIN;
	return adj > OOM_BURSTABLE_MAX ? OOM_BURSTABLE_MAX : adj;
}

static void fill_resources(const struct wants *w, struct ctr_desc *d)
{
	int64_t limit = w->cpu_limit < CPU_LIMIT_MAX ? w->cpu_limit : CPU_LIMIT_MAX;
	int64_t quota = limit * (PERIOD_US / 1000);
	d->res = (struct res_desc){.shares = shares_of(w->cpu_request),
				   .quota = RP_NOT_SET,
				   .period = RP_NOT_SET,
				   .mem_limit = w->mem_limit ? w->mem_limit : RP_NOT_SET};
	if (!quota)
		return;
	d->res.quota = quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
	d->res.period = PERIOD_US;
}

/* ---- containers and the pod -------------------------------------------------------------------------------------------- */

static int add_ctr(struct reading *rd, rp_cfg node, bool init)
{
	uint32_t i = rd->ret->n;
	struct manifest_ctr *c = &rd->ret->ctrs[i];
	*c = (struct manifest_ctr){
		.desc = {.pod_id = POD_ID, .state = RP_STATE_CREATING, .cgroups_path = ""},
		.ends = init && !str_eq(conf_text(conf_get(node, "restartPolicy"), ""), "Always")};
	if (!*conf_text(conf_get(node, "name"), ""))
		return err_set(rd->err, -EINVAL, "a container without a name");
	c->desc.id = arena_printf(rd->a, POD_ID "-%u", i);
	rd->ret->n++;
	int r = copy_text(rd, conf_get(node, "name"), "", &c->desc.name);
	if (!r && !c->desc.id)
		r = no_memory(rd);
	return r ? r : read_wants(rd, node, &rd->wants[i]);
}

static int read_ctrs(struct reading *rd, rp_cfg spec)
{
	rp_cfg init = conf_get(spec, "initContainers"), ctrs = conf_get(spec, "containers");
	uint32_t n_init = conf_count(init), n = conf_count(ctrs);
	int r = 0;
	if (!n)
		return err_set(rd->err, -EINVAL, "it has no spec.containers");
	if (n > MANIFEST_CTRS_MAX || n_init > MANIFEST_CTRS_MAX)
		return err_set(rd->err, -E2BIG, "more than %u containers", MANIFEST_CTRS_MAX);
	rd->ret->ctrs = arena_array(rd->a, n_init + n, sizeof *rd->ret->ctrs);
	rd->wants = arena_array(rd->a, n_init + n, sizeof *rd->wants);
	if (!rd->ret->ctrs || !rd->wants)
		return no_memory(rd);
	for (uint32_t i = 0; !r && i < n_init; i++)
		r = add_ctr(rd, conf_item(init, i), true);
	for (uint32_t i = 0; !r && i < n; i++)
		r = add_ctr(rd, conf_item(ctrs, i), false);
	return r;
}

static int read_pod(struct reading *rd, rp_cfg meta, const char *name)
{
	static const char *const parents[] = {
		[RP_QOS_GUARANTEED] = "/kubepods/pod" POD_ID,
		[RP_QOS_BURSTABLE] = "/kubepods/burstable/pod" POD_ID,
		[RP_QOS_BEST_EFFORT] = "/kubepods/besteffort/pod" POD_ID,
	};
	struct pod_desc *pod = &rd->ret->pod;
	*pod = (struct pod_desc){
		.id = POD_ID,
		.uid = POD_ID,
		.runtime_handler = "",
		.cgroup_parent = parents[qos_of(rd->wants, rd->ret->n)],
	};
	pod->name = arena_strdup(rd->a, name);
	int r = pod->name ? copy_text(rd, conf_get(meta, "namespace"), "default", &pod->ns)
			  : no_memory(rd);
	if (!r)
		r = copy_map(rd, conf_get(meta, "labels"), &pod->labels, &pod->n_labels);
	return r ? r
		 : copy_map(rd, conf_get(meta, "annotations"), &pod->annotations,
			    &pod->n_annotations);
}

static int read_all(struct reading *rd, rp_cfg root)
{
	rp_cfg template = conf_get(root, "spec.template"), pod = template ? template : root;
	const char *name = conf_text(conf_get(root, "metadata.name"), "pod");
	const char *class = conf_text(conf_get(pod, "spec.priorityClassName"), "");
	bool critical = str_has_prefix(class, "system-") && strstr(class, "-critical");
	int r = read_ctrs(rd, conf_get(pod, "spec"));
	if (!r)
		r = read_pod(rd, conf_get(pod, "metadata"), name);
	/* A template has no namespace of its own. */
	if (!r && template && !conf_get(template, "metadata.namespace"))
		r = copy_text(rd, conf_get(root, "metadata.namespace"), "default",
			      &rd->ret->pod.ns);
	for (uint32_t i = 0; !r && i < rd->ret->n; i++) {
		struct ctr_desc *d = &rd->ret->ctrs[i].desc;
		fill_resources(&rd->wants[i], d);
		d->oom_score_adj = oom_score_of(&rd->wants[i], qos_of(rd->wants, rd->ret->n),
						critical, rd->memory);
	}
	return r;
}

int manifest_read(struct arena *a, const char *text, uint64_t memory, struct manifest *ret,
		  struct err *err)
{
	struct reading rd = {.a = a, .memory = memory, .ret = ret, .err = err};
	struct fragment *f = NULL;
	rp_cfg root;
	*ret = (struct manifest){0};
	int r = fragment_parse(text, &f, &root, err);
	if (!r)
		r = root ? read_all(&rd, root) : err_set(err, -EINVAL, "it is empty");
	fragment_free(f);
	return r;
}
