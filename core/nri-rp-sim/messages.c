/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/messages.h"
#include "core/nri-rp-sim/kubelet.h"
#include "core/lib/util/pb.h"

/* Removes const: protobuf-c's structs have none, and packing only reads the text. */
static char *messages_borrow(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* An entry of a map; entries of all maps have the same members after the base. */
struct entry {
	ProtobufCMessage base;
	char *key, *value;
};
_Static_assert(sizeof(struct entry) == sizeof(Nri__PodSandbox__LabelsEntry), "layout");
_Static_assert(offsetof(struct entry, value) == offsetof(Nri__Container__AnnotationsEntry, value),
	       "layout");

/* A map of a message. */
struct map {
	struct arena *arena;
	const ProtobufCMessageDescriptor *type;
	void *list; /* the member of the message */
	size_t *n;
};
#define MAP_OF(a, m, member, prefix)                                                               \
	(struct map)                                                                               \
	{                                                                                          \
		a, &prefix##__descriptor, &(m)->member, &(m)->n_##member                           \
	}

static void map_add(const struct map *m, const char *key, const char *value)
{
	struct entry *e = pb_build_item(m->arena, pb_build(m->arena, m->type), m->list, m->n);
	if (!e)
		return;
	e->key = messages_borrow(key);
	e->value = messages_borrow(value);
}

static void map_add_all(const struct map *m, const json_t *from)
{
	const char *key;
	json_t *value;
	char buf[ARG_NUMBER_MAX];
	json_object_foreach((json_t *)(uintptr_t)from, key, value)
	{
		const char *text = arg_scalar(value, buf);
		map_add(m, key, text == buf ? arena_strdup(m->arena, buf) : text ? text : "");
	}
}

/* ---- resources ------------------------------------------------------------------------------- */

Nri__LinuxResources *message_resources(struct arena *a, const struct resources *res, bool update)
{
	Nri__LinuxResources *m = pb_build(a, &nri__linux_resources__descriptor);
	int64_t quota = res->quota == SIM_NOT_SET && update ? 0 : res->quota;
	if (!m || !PB_PART(a, m->cpu, nri__linux_cpu))
		return NULL;
	m->cpu->cpus = res->cpus;
	m->cpu->mems = res->mems;
	PB_SET(a, m->cpu->shares, nri__optional_uint64, (uint64_t)res->shares);
	PB_SET(a, m->cpu->period, nri__optional_uint64, (uint64_t)res->period);
	if (quota != SIM_NOT_SET)
		PB_SET(a, m->cpu->quota, nri__optional_int64, quota);
	if (res->memory_limit != SIM_NOT_SET && PB_PART(a, m->memory, nri__linux_memory))
		PB_SET(a, m->memory->limit, nri__optional_int64, res->memory_limit);
	return arena_failed(a) ? NULL : m;
}

/* Returns the sums that the kubelet sends to the runtime with the sandbox. */
static Nri__LinuxResources *pod_sums(struct arena *a, const struct wants *w)
{
	static char none[] = "";
	const struct resources sums = {.shares = kubelet_shares(w),
				       .quota = kubelet_quota(w),
				       .period = KUBELET_PERIOD,
				       .memory_limit = w->memory_limit,
				       .cpus = none,
				       .mems = none};
	return message_resources(a, &sums, false);
}

/* ---- pods ------------------------------------------------------------------------------------ */

Nri__PodSandbox *message_pod(const struct sim *s, struct arena *a, const struct sim_pod *p)
{
	Nri__PodSandbox *m = pb_build(a, &nri__pod_sandbox__descriptor);
	if (!m || !PB_PART(a, m->lnx, nri__linux_pod_sandbox))
		return NULL;
	const struct map labels = MAP_OF(a, m, labels, nri__pod_sandbox__labels_entry),
			 annotations =
				 MAP_OF(a, m, annotations, nri__pod_sandbox__annotations_entry);
	map_add_all(&labels, p->labels);
	map_add(&labels, "io.kubernetes.pod.name", p->name);
	map_add(&labels, "io.kubernetes.pod.namespace", p->ns);
	map_add(&labels, "io.kubernetes.pod.uid", p->uid);
	map_add_all(&annotations, p->annotations);
	if (s->runtime == RUNTIME_CRIO) {
		map_add(&annotations, "io.kubernetes.cri-o.ContainerType", "sandbox");
		map_add(&annotations, "io.kubernetes.cri-o.CgroupParent", p->cgroup_parent);
	}
	m->id = p->id;
	m->name = p->name;
	m->uid = p->uid;
	m->namespace_ = p->ns;
	m->runtime_handler = p->handler;
	m->pid = p->pid;
	m->lnx->cgroup_parent = p->cgroup_parent;
	m->lnx->cgroups_path = arena_printf(a, "%s/%s", p->cgroup_parent, p->id);
	m->lnx->pod_resources = pod_sums(a, &p->wants);
	return arena_failed(a) ? NULL : m;
}

/* ---- containers ------------------------------------------------------------------------------ */

static void fill_labels(const struct sim *s, struct arena *a, const struct sim_ctr *c,
			Nri__Container *m)
{
	const json_t *own = json_object_get(c->spec, "annotations");
	const struct map labels = MAP_OF(a, m, labels, nri__container__labels_entry),
			 annotations = MAP_OF(a, m, annotations, nri__container__annotations_entry);
	map_add_all(&labels, json_object_get(c->spec, "labels"));
	map_add(&labels, "io.kubernetes.container.name", c->name);
	map_add(&labels, "io.kubernetes.pod.name", c->pod->name);
	map_add(&labels, "io.kubernetes.pod.namespace", c->pod->ns);
	map_add(&labels, "io.kubernetes.pod.uid", c->pod->uid);
	map_add_all(&annotations, own);
	if (s->runtime == RUNTIME_CRIO) {
		map_add(&annotations, "io.kubernetes.cri-o.ContainerType", "container");
		map_add(&annotations, "io.kubernetes.cri-o.SandboxID", c->pod->id);
	} else {
		map_add(&labels, "io.cri-containerd.kind", "container");
		map_add(&annotations, "io.kubernetes.cri.container-type", "container");
		map_add(&annotations, "io.kubernetes.cri.container-name", c->name);
		map_add(&annotations, "io.kubernetes.cri.sandbox-id", c->pod->id);
		map_add(&annotations, "io.kubernetes.cri.sandbox-name", c->pod->name);
		map_add(&annotations, "io.kubernetes.cri.sandbox-namespace", c->pod->ns);
		map_add(&annotations, "io.kubernetes.cri.sandbox-uid", c->pod->uid);
	}
}

static char *item_text(const json_t *item)
{
	const char *text = json_string_value(item);
	return messages_borrow(text ? text : "");
}

static void add_env(struct arena *a, Nri__Container *m, char *text)
{
	(void)pb_build_item(a, text, &m->env, &m->n_env);
}

static void fill_process(struct arena *a, const struct sim_ctr *c, Nri__Container *m)
{
	const char *key;
	json_t *value;
	size_t i;
	char buf[ARG_NUMBER_MAX];
	json_array_foreach(json_object_get(c->spec, "args"), i, value)
	{
		(void)pb_build_item(a, item_text(value), &m->args, &m->n_args);
	}
	add_env(a, m, arena_printf(a, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"));
	add_env(a, m, arena_printf(a, "HOSTNAME=%s", c->pod->name));
	json_object_foreach(json_object_get(c->spec, "env"), key, value)
	{
		const char *text = arg_scalar(value, buf);
		add_env(a, m, arena_printf(a, "%s=%s", key, text ? text : ""));
	}
}

static const char *text_of(const json_t *map, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(map, key));
	return text ? text : otherwise;
}

static void fill_mount(struct arena *a, const json_t *spec, Nri__Mount *m)
{
	const json_t *value;
	size_t i;
	if (!m)
		return;
	m->destination = messages_borrow(text_of(spec, "destination", ""));
	m->source = messages_borrow(text_of(spec, "source", ""));
	m->type = messages_borrow(text_of(spec, "type", "bind"));
	json_array_foreach(json_object_get(spec, "options"), i, value)
	{
		(void)pb_build_item(a, item_text(value), &m->options, &m->n_options);
	}
}

static void fill_device(const json_t *spec, Nri__LinuxDevice *d)
{
	if (!d)
		return;
	d->path = messages_borrow(text_of(spec, "path", ""));
	d->type = messages_borrow(text_of(spec, "type", "c"));
	d->major = json_integer_value(json_object_get(spec, "major"));
	d->minor = json_integer_value(json_object_get(spec, "minor"));
}

static void fill_lists(struct arena *a, const struct sim_ctr *c, Nri__Container *m)
{
	const char *key;
	json_t *value;
	size_t i;
	json_array_foreach(json_object_get(c->spec, "mounts"), i, value)
	{
		fill_mount(a, value, PB_ADD(a, m, mounts, nri__mount));
	}
	json_array_foreach(json_object_get(c->spec, "devices"), i, value)
	{
		fill_device(value, PB_ADD(a, m->lnx, devices, nri__linux_device));
	}
	json_object_foreach(json_object_get(c->spec, "hugepages"), key, value)
	{
		Nri__HugepageLimit *h =
			PB_ADD(a, m->lnx->resources, hugepage_limits, nri__hugepage_limit);
		if (!h)
			return;
		h->page_size = messages_borrow(key);
		h->limit = (uint64_t)json_integer_value(value);
	}
	json_array_foreach(json_object_get(c->spec, "cdi"), i, value)
	{
		Nri__CDIDevice *d = PB_ADD(a, m, cdi_devices, nri__cdidevice);
		if (d)
			d->name = item_text(value);
	}
}

static Nri__ContainerState wire_state(enum ctr_state state)
{
	static const Nri__ContainerState states[] = {
		[CTR_CREATING] = NRI__CONTAINER_STATE__CONTAINER_UNKNOWN,
		[CTR_CREATED] = NRI__CONTAINER_STATE__CONTAINER_CREATED,
		[CTR_RUNNING] = NRI__CONTAINER_STATE__CONTAINER_RUNNING,
		[CTR_EXITED] = NRI__CONTAINER_STATE__CONTAINER_STOPPED,
	};
	return states[state];
}

static void fill_times(const struct sim *s, const struct sim_ctr *c, Nri__Container *m)
{
	if (!release_has_times(s->release))
		return;
	m->created_at = c->created_ns;
	m->started_at = c->started_ns;
	m->finished_at = c->finished_ns;
	m->exit_code = c->exit_code;
	if (c->state == CTR_EXITED)
		m->status_reason = messages_borrow(c->exit_code ? "Error" : "Completed");
}

Nri__Container *message_ctr(const struct sim *s, struct arena *a, const struct sim_ctr *c)
{
	Nri__Container *m = pb_build(a, &nri__container__descriptor);
	if (!m || !PB_PART(a, m->lnx, nri__linux_container))
		return NULL;
	m->id = c->id;
	m->pod_sandbox_id = c->pod->id;
	m->name = c->name;
	m->state = wire_state(c->state);
	m->pid = c->state == CTR_RUNNING ? c->pid : 0;
	m->lnx->cgroups_path = c->cgroups_path;
	PB_SET(a, m->lnx->oom_score_adj, nri__optional_int, c->oom_score_adj);
	m->lnx->resources = message_resources(a, &c->res, false);
	if (!m->lnx->resources)
		return NULL;
	fill_times(s, c, m);
	fill_labels(s, a, c, m);
	fill_process(a, c, m);
	fill_lists(a, c, m);
	return arena_failed(a) ? NULL : m;
}
