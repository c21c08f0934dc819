/* SPDX-License-Identifier: Apache-2.0 */
#include "core/runtime/internal.h"

static const struct pod_desc empty_pod = {"", "", "", "", "", "", NULL, NULL, 0, 0};

/* Map entries of every message have the same members. */
#define DECODE_MAP(arena, entries, n, ret_pairs, ret_n)                                            \
	__extension__({                                                                            \
		struct kv *pairs_ = arena_array(arena, (n) + 1, sizeof *pairs_);                   \
		for (size_t i_ = 0; pairs_ && i_ < (n); i_++)                                      \
			pairs_[i_] = (struct kv){(entries)[i_]->key, (entries)[i_]->value};        \
		*(ret_pairs) = pairs_;                                                             \
		*(ret_n) = (uint32_t)(n);                                                          \
		pairs_ ? 0 : -ENOMEM;                                                              \
	})

uint32_t decode_state(Nri__ContainerState state)
{
	switch (state) {
	case NRI__CONTAINER_STATE__CONTAINER_CREATED:
		return RP_STATE_CREATED;
	case NRI__CONTAINER_STATE__CONTAINER_PAUSED:
		return RP_STATE_PAUSED;
	case NRI__CONTAINER_STATE__CONTAINER_RUNNING:
		return RP_STATE_RUNNING;
	case NRI__CONTAINER_STATE__CONTAINER_STOPPED:
		return RP_STATE_EXITED;
	default:
		return RP_STATE_CREATING;
	}
}

void decode_resources(const Nri__LinuxResources *m, struct res_desc *ret)
{
	*ret = (struct res_desc){RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, RP_NOT_SET, NULL, NULL};
	if (m && m->cpu) {
		const Nri__LinuxCPU *c = m->cpu;
		if (c->shares && c->shares->value <= INT64_MAX)
			ret->shares = (int64_t)c->shares->value;
		if (c->quota)
			ret->quota = c->quota->value;
		if (c->period && c->period->value <= INT64_MAX)
			ret->period = (int64_t)c->period->value;
		ret->cpus = c->cpus;
		ret->mems = c->mems;
	}
	if (m && m->memory && m->memory->limit)
		ret->mem_limit = m->memory->limit->value;
}

int decode_pod(struct arena *a, const Nri__PodSandbox *m, struct pod_desc *ret)
{
	*ret = empty_pod;
	if (!m)
		return 0;
	ret->id = m->id;
	ret->name = m->name;
	ret->uid = m->uid;
	ret->ns = m->namespace_;
	ret->runtime_handler = m->runtime_handler;
	if (m->lnx)
		ret->cgroup_parent = m->lnx->cgroup_parent;
	int r = DECODE_MAP(a, m->labels, m->n_labels, &ret->labels, &ret->n_labels);
	return r ? r
		 : DECODE_MAP(a, m->annotations, m->n_annotations, &ret->annotations,
			      &ret->n_annotations);
}

static int decode_mounts(struct arena *a, const Nri__Container *m, struct ctr_desc *ret)
{
	struct rp_mount_info *mounts = arena_array(a, m->n_mounts + 1, sizeof *mounts);
	if (!mounts)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_mounts; i++) {
		const Nri__Mount *from = m->mounts[i];
		mounts[i] = (struct rp_mount_info){sizeof mounts[i], 0, from->source,
						   from->destination, from->type};
		for (size_t o = 0; o < from->n_options; o++)
			if (strcmp(from->options[o], "ro") == 0)
				mounts[i].read_only = 1;
	}
	ret->mounts = mounts;
	ret->n_mounts = (uint32_t)m->n_mounts;
	return 0;
}

static bool rule_covers(const Nri__LinuxDeviceCgroup *rule, const Nri__LinuxDevice *dev)
{
	bool any_type = !*rule->type || strcmp(rule->type, "a") == 0;
	if (!any_type && strcmp(rule->type, dev->type) != 0)
		return false;
	return (!rule->major || rule->major->value == dev->major) &&
	       (!rule->minor || rule->minor->value == dev->minor);
}

/* As the kernel reads the rules of a device cgroup: the last one that covers the device decides. Without rules: writable. */
static bool device_writable(const Nri__LinuxResources *res, const Nri__LinuxDevice *dev)
{
	for (size_t i = res ? res->n_devices : 0; i-- > 0;) {
		const Nri__LinuxDeviceCgroup *rule = res->devices[i];
		if (rule_covers(rule, dev))
			return rule->allow && strchr(rule->access, 'w');
	}
	return true;
}

static int decode_devices(struct arena *a, const Nri__LinuxContainer *m, struct ctr_desc *ret)
{
	struct rp_device_info *devices = arena_array(a, m->n_devices + 1, sizeof *devices);
	if (!devices)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_devices; i++) {
		const Nri__LinuxDevice *from = m->devices[i];
		devices[i] = (struct rp_device_info){
			sizeof devices[i], device_writable(m->resources, from),
			from->path,	   from->type,
			from->major,	   from->minor};
	}
	ret->devices = devices;
	ret->n_devices = (uint32_t)m->n_devices;
	return 0;
}

int decode_ctr(struct arena *a, const Nri__Container *m, struct ctr_desc *ret)
{
	*ret = (struct ctr_desc){.id = "",
				 .pod_id = "",
				 .name = "",
				 .cgroups_path = "",
				 .oom_score_adj = RP_NOT_SET};
	decode_resources(m && m->lnx ? m->lnx->resources : NULL, &ret->res);
	if (!m)
		return 0;
	ret->id = m->id;
	ret->pod_id = m->pod_sandbox_id;
	ret->name = m->name;
	ret->state = decode_state(m->state);
	ret->pid = m->pid;
	ret->created_ns = m->created_at > 0 ? (uint64_t)m->created_at : 0;
	ret->env = (const char *const *)m->env;
	ret->n_env = (uint32_t)m->n_env;
	if (m->lnx) {
		ret->cgroups_path = m->lnx->cgroups_path;
		if (m->lnx->oom_score_adj)
			ret->oom_score_adj = m->lnx->oom_score_adj->value;
	}
	int r = DECODE_MAP(a, m->labels, m->n_labels, &ret->labels, &ret->n_labels);
	if (!r)
		r = DECODE_MAP(a, m->annotations, m->n_annotations, &ret->annotations,
			       &ret->n_annotations);
	if (!r)
		r = decode_mounts(a, m, ret);
	if (!r && m->lnx)
		r = decode_devices(a, m->lnx, ret);
	return r;
}
