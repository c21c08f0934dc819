/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/messages.h"
#include "core/nri-rp-sim/kubelet.h"

#define EXTRA_ENTRIES 8u

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

struct map {
	struct arena *arena;
	const ProtobufCMessageDescriptor *type;
	struct entry **entries;
	size_t n, room;
	bool failed;
};

static struct map map_new(struct arena *a, const ProtobufCMessageDescriptor *type,
			  const json_t *from)
{
	struct map m = {.arena = a, .type = type, .room = json_object_size(from) + EXTRA_ENTRIES};
	m.entries = arena_array(a, m.room, sizeof(void *));
	m.failed = !m.entries;
	return m;
}

static void map_add(struct map *m, const char *key, const char *value)
{
	struct entry *e = m->failed || m->n == m->room ? NULL : arena_zero(m->arena, struct entry);
	if (!e) {
		m->failed = true;
		return;
	}
	protobuf_c_message_init(m->type, e);
	e->key = messages_borrow(key);
	e->value = messages_borrow(value);
	m->entries[m->n++] = e;
}

static void map_add_all(struct map *m, const json_t *from)
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

static bool fill_cpu(struct arena *a, const struct resources *res, bool update, Nri__LinuxCPU *cpu)
{
	int64_t quota = res->quota == SIM_NOT_SET && update ? 0 : res->quota;
	cpu->cpus = res->cpus;
	cpu->mems = res->mems;
	cpu->shares = PB_VALUE(a, Nri__OptionalUInt64, nri__optional_uint64, (uint64_t)res->shares);
	cpu->period = PB_VALUE(a, Nri__OptionalUInt64, nri__optional_uint64, (uint64_t)res->period);
	if (quota != SIM_NOT_SET)
		cpu->quota = PB_VALUE(a, Nri__OptionalInt64, nri__optional_int64, quota);
	return cpu->shares && cpu->period && (quota == SIM_NOT_SET || cpu->quota);
}

Nri__LinuxResources *message_resources(struct arena *a, const struct resources *res, bool update)
{
	Nri__LinuxResources *m = PB_NEW(a, Nri__LinuxResources, nri__linux_resources);
	if (!m)
		return NULL;
	m->cpu = PB_NEW(a, Nri__LinuxCPU, nri__linux_cpu);
	if (!m->cpu || !fill_cpu(a, res, update, m->cpu))
		return NULL;
	if (res->memory_limit == SIM_NOT_SET)
		return m;
	m->memory = PB_NEW(a, Nri__LinuxMemory, nri__linux_memory);
	if (!m->memory)
		return NULL;
	m->memory->limit = PB_VALUE(a, Nri__OptionalInt64, nri__optional_int64, res->memory_limit);
	return m->memory->limit ? m : NULL;
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
	Nri__PodSandbox *m = PB_NEW(a, Nri__PodSandbox, nri__pod_sandbox);
	Nri__LinuxPodSandbox *lnx = PB_NEW(a, Nri__LinuxPodSandbox, nri__linux_pod_sandbox);
	struct map labels = map_new(a, &nri__pod_sandbox__labels_entry__descriptor, p->labels);
	struct map annotations =
		map_new(a, &nri__pod_sandbox__annotations_entry__descriptor, p->annotations);
	if (!m || !lnx)
		return NULL;
	map_add_all(&labels, p->labels);
	map_add(&labels, "io.kubernetes.pod.name", p->name);
	map_add(&labels, "io.kubernetes.pod.namespace", p->ns);
	map_add(&labels, "io.kubernetes.pod.uid", p->uid);
	map_add_all(&annotations, p->annotations);
	if (s->runtime == RUNTIME_CRIO) {
		map_add(&annotations, "io.kubernetes.cri-o.ContainerType", "sandbox");
		map_add(&annotations, "io.kubernetes.cri-o.CgroupParent", p->cgroup_parent);
	}
	if (labels.failed || annotations.failed)
		return NULL;
	m->id = p->id;
	m->name = p->name;
	m->uid = p->uid;
	m->namespace_ = p->ns;
	m->runtime_handler = p->handler;
	m->pid = p->pid;
	m->labels = (Nri__PodSandbox__LabelsEntry **)labels.entries;
	m->n_labels = labels.n;
	m->annotations = (Nri__PodSandbox__AnnotationsEntry **)annotations.entries;
	m->n_annotations = annotations.n;
	m->lnx = lnx;
	lnx->cgroup_parent = p->cgroup_parent;
	lnx->cgroups_path = arena_printf(a, "%s/%s", p->cgroup_parent, p->id);
	lnx->pod_resources = pod_sums(a, &p->wants);
	return lnx->cgroups_path && lnx->pod_resources ? m : NULL;
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool fill_labels(const struct sim *s, struct arena *a, const struct sim_ctr *c,
			Nri__Container *m)
{
	const json_t *own = json_object_get(c->spec, "annotations");
	struct map labels = map_new(a, &nri__container__labels_entry__descriptor,
				    json_object_get(c->spec, "labels"));
	struct map annotations = map_new(a, &nri__container__annotations_entry__descriptor, own);
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
	m->labels = (Nri__Container__LabelsEntry **)labels.entries;
	m->n_labels = labels.n;
	m->annotations = (Nri__Container__AnnotationsEntry **)annotations.entries;
	m->n_annotations = annotations.n;
	return !labels.failed && !annotations.failed;
}

static bool fill_process(struct arena *a, const struct sim_ctr *c, Nri__Container *m)
{
	const json_t *args = json_object_get(c->spec, "args"),
		     *env = json_object_get(c->spec, "env");
	const char *key;
	json_t *value;
	size_t i;
	char buf[ARG_NUMBER_MAX];
	m->args = arena_array(a, json_array_size(args) + 1, sizeof *m->args);
	m->env = arena_array(a, json_object_size(env) + 2, sizeof *m->env);
	if (!m->args || !m->env)
		return false;
	json_array_foreach(args, i, value)
	{
		m->args[m->n_args++] =
			messages_borrow(json_is_string(value) ? json_string_value(value) : "");
	}
	m->env[m->n_env++] = arena_printf(a, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	m->env[m->n_env++] = arena_printf(a, "HOSTNAME=%s", c->pod->name);
	json_object_foreach((json_t *)(uintptr_t)env, key, value)
	{
		const char *text = arg_scalar(value, buf);
		m->env[m->n_env++] = arena_printf(a, "%s=%s", key, text ? text : "");
	}
	for (i = 0; i < m->n_env; i++)
		if (!m->env[i])
			return false;
	return true;
}

static const char *text_of(const json_t *map, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(map, key));
	return text ? text : otherwise;
}

static Nri__Mount *message_mount(struct arena *a, const json_t *spec)
{
	Nri__Mount *m = PB_NEW(a, Nri__Mount, nri__mount);
	const json_t *options = json_object_get(spec, "options");
	const json_t *value;
	size_t i;
	if (!m)
		return NULL;
	m->destination = messages_borrow(text_of(spec, "destination", ""));
	m->source = messages_borrow(text_of(spec, "source", ""));
	m->type = messages_borrow(text_of(spec, "type", "bind"));
	m->options = arena_array(a, json_array_size(options) + 1, sizeof *m->options);
	json_array_foreach(options, i, value)
	{
		if (m->options)
			m->options[m->n_options++] = messages_borrow(
				json_is_string(value) ? json_string_value(value) : "");
	}
	return m->options ? m : NULL;
}

static bool fill_mounts(struct arena *a, const struct sim_ctr *c, Nri__Container *m)
{
	const json_t *list = json_object_get(c->spec, "mounts"), *value;
	size_t i;
	m->mounts = arena_array(a, json_array_size(list) + 1, sizeof *m->mounts);
	if (!m->mounts)
		return false;
	json_array_foreach(list, i, value)
	{
		m->mounts[m->n_mounts] = message_mount(a, value);
		if (!m->mounts[m->n_mounts++])
			return false;
	}
	return true;
}

static bool fill_devices(struct arena *a, const struct sim_ctr *c, Nri__LinuxContainer *m)
{
	const json_t *list = json_object_get(c->spec, "devices"), *value;
	size_t i;
	m->devices = arena_array(a, json_array_size(list) + 1, sizeof *m->devices);
	if (!m->devices)
		return false;
	json_array_foreach(list, i, value)
	{
		Nri__LinuxDevice *d = PB_NEW(a, Nri__LinuxDevice, nri__linux_device);
		if (!d)
			return false;
		d->path = messages_borrow(text_of(value, "path", ""));
		d->type = messages_borrow(text_of(value, "type", "c"));
		d->major = json_integer_value(json_object_get(value, "major"));
		d->minor = json_integer_value(json_object_get(value, "minor"));
		m->devices[m->n_devices++] = d;
	}
	return true;
}

static bool fill_hugepages(struct arena *a, const struct sim_ctr *c, Nri__LinuxResources *m)
{
	const json_t *map = json_object_get(c->spec, "hugepages");
	const char *key;
	json_t *value;
	m->hugepage_limits = arena_array(a, json_object_size(map) + 1, sizeof *m->hugepage_limits);
	if (!m->hugepage_limits)
		return false;
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		Nri__HugepageLimit *h = PB_NEW(a, Nri__HugepageLimit, nri__hugepage_limit);
		if (!h)
			return false;
		h->page_size = messages_borrow(key);
		h->limit = (uint64_t)json_integer_value(value);
		m->hugepage_limits[m->n_hugepage_limits++] = h;
	}
	return true;
}

static bool fill_cdi(struct arena *a, const struct sim_ctr *c, Nri__Container *m)
{
	const json_t *list = json_object_get(c->spec, "cdi"), *value;
	size_t i;
	m->cdi_devices = arena_array(a, json_array_size(list) + 1, sizeof *m->cdi_devices);
	if (!m->cdi_devices)
		return false;
	json_array_foreach(list, i, value)
	{
		Nri__CDIDevice *d = PB_NEW(a, Nri__CDIDevice, nri__cdidevice);
		if (!d)
			return false;
		d->name = messages_borrow(json_is_string(value) ? json_string_value(value) : "");
		m->cdi_devices[m->n_cdi_devices++] = d;
	}
	return true;
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
	Nri__Container *m = PB_NEW(a, Nri__Container, nri__container);
	Nri__LinuxContainer *lnx = PB_NEW(a, Nri__LinuxContainer, nri__linux_container);
	if (!m || !lnx)
		return NULL;
	m->id = c->id;
	m->pod_sandbox_id = c->pod->id;
	m->name = c->name;
	m->state = wire_state(c->state);
	m->pid = c->state == CTR_RUNNING ? c->pid : 0;
	m->lnx = lnx;
	lnx->cgroups_path = c->cgroups_path;
	lnx->oom_score_adj = PB_VALUE(a, Nri__OptionalInt, nri__optional_int, c->oom_score_adj);
	lnx->resources = message_resources(a, &c->res, false);
	if (!lnx->resources || !lnx->oom_score_adj)
		return NULL;
	fill_times(s, c, m);
	bool ok = fill_labels(s, a, c, m) && fill_process(a, c, m) && fill_mounts(a, c, m) &&
		  fill_devices(a, c, lnx) && fill_hugepages(a, c, lnx->resources) &&
		  fill_cdi(a, c, m);
	return ok ? m : NULL;
}
