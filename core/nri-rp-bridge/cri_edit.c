/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/cri_edit.h"

#include <string.h>

#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"

#define RDT_ANNOTATION "io.kubernetes.cri.rdt-class"
#define BLOCKIO_ANNOTATION "io.kubernetes.cri.blockio-class"
#define PERMISSIONS_ALL "rwm"

/* An entry of a text map; protobuf-c generates the same layout for all maps of texts. */
struct entry {
	ProtobufCMessage base;
	char *key, *value;
};
_Static_assert(sizeof(struct entry) == sizeof(Nri__PodSandbox__LabelsEntry), "maps are alike");
_Static_assert(sizeof(struct entry) == sizeof(Cri__PodConfig__LabelsEntry), "maps are alike");

/* ---- maps ------------------------------------------------------------------------------------ */

static struct entry *entry_new(struct arena *a, const ProtobufCMessageDescriptor *type,
			       const char *key, const char *value)
{
	struct entry *e = arena_zero(a, struct entry);
	if (!e)
		return NULL;
	protobuf_c_message_init(type, e);
	e->key = (char *)(uintptr_t)key;
	e->value = (char *)(uintptr_t)value;
	return e;
}

/* Sets key to value; value NULL: removes the key. map and n are members of a message. */
static int map_set(struct arena *a, const ProtobufCMessageDescriptor *type, void *map, size_t *n,
		   const char *key, const char *value)
{
	struct entry **list;
	memcpy(&list, map, sizeof list);
	size_t at = 0;
	while (at < *n && !str_eq(list[at]->key, key))
		at++;
	if (at < *n && !value) {
		memmove(&list[at], &list[at + 1], (--*n - at) * sizeof *list);
		return 0;
	}
	if (!value)
		return 0;
	struct entry *e = entry_new(a, type, key, value);
	if (!e)
		return -ENOMEM;
	if (at == *n) {
		struct entry **grown = arena_array(a, *n + 1, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		if (*n)
			memcpy(grown, list, *n * sizeof *list);
		list = grown;
		memcpy(map, &list, sizeof list);
		++*n;
	}
	list[at] = e;
	return 0;
}

static const char *map_find(const void *map, size_t n, const char *key)
{
	struct entry *const *list = map;
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i]->key, key))
			return list[i]->value;
	return NULL;
}

int cri_annotate_pod(struct arena *a, Cri__PodConfig *config, const char *key, const char *value)
{
	return map_set(a, &cri__pod_config__annotations_entry__descriptor, &config->annotations,
		       &config->n_annotations, key, value);
}

int cri_annotate_container(struct arena *a, Cri__ContainerConfig *config, const char *key,
			   const char *value)
{
	return map_set(a, &cri__container_config__annotations_entry__descriptor,
		       &config->annotations, &config->n_annotations, key, value);
}

/* ---- conversion from CRI to NRI -------------------------------------------------------------- */

#define COPY_LABELS(arena, from, to, type)                                                         \
	(PB_COPY_LIST(arena, from, to, labels, type##__labels_entry) ||                            \
	 PB_COPY_LIST(arena, from, to, annotations, type##__annotations_entry))

#define OPTIONAL(arena, to, type, prefix, v)                                                       \
	do {                                                                                       \
		(to) = PB_NEW(arena, type, prefix);                                                \
		if (!(to))                                                                         \
			return NULL;                                                               \
		(to)->value = (v);                                                                 \
	} while (0)

static Nri__LinuxCPU *cpu_of(struct arena *a, const Cri__Resources *from)
{
	Nri__LinuxCPU *cpu = PB_NEW(a, Nri__LinuxCPU, nri__linux_cpu);
	if (!cpu)
		return NULL;
	if (from->cpu_shares > 0)
		OPTIONAL(a, cpu->shares, Nri__OptionalUInt64, nri__optional_uint64,
			 (uint64_t)from->cpu_shares);
	if (from->cpu_quota)
		OPTIONAL(a, cpu->quota, Nri__OptionalInt64, nri__optional_int64, from->cpu_quota);
	if (from->cpu_period > 0)
		OPTIONAL(a, cpu->period, Nri__OptionalUInt64, nri__optional_uint64,
			 (uint64_t)from->cpu_period);
	cpu->cpus = from->cpuset_cpus;
	cpu->mems = from->cpuset_mems;
	return cpu;
}

static Nri__LinuxMemory *memory_of(struct arena *a, const Cri__Resources *from)
{
	Nri__LinuxMemory *memory = PB_NEW(a, Nri__LinuxMemory, nri__linux_memory);
	if (!memory)
		return NULL;
	if (from->memory_limit)
		OPTIONAL(a, memory->limit, Nri__OptionalInt64, nri__optional_int64,
			 from->memory_limit);
	if (from->memory_swap)
		OPTIONAL(a, memory->swap, Nri__OptionalInt64, nri__optional_int64,
			 from->memory_swap);
	return memory;
}

Nri__LinuxResources *cri_resources(struct arena *a, const Cri__Resources *from)
{
	Nri__LinuxResources *to = PB_NEW(a, Nri__LinuxResources, nri__linux_resources);
	if (!to)
		return NULL;
	to->cpu = cpu_of(a, from);
	to->memory = memory_of(a, from);
	bool ok = to->cpu && to->memory &&
		  !PB_COPY_LIST(a, from, to, hugepage_limits, nri__hugepage_limit) &&
		  !PB_COPY_LIST(a, from, to, unified, nri__linux_resources__unified_entry);
	return ok ? to : NULL;
}

static Nri__PodSandbox *pod_of(struct arena *a, const char *id, const Cri__PodMetadata *metadata,
			       const char *handler, const char *parent)
{
	Nri__PodSandbox *pod = PB_NEW(a, Nri__PodSandbox, nri__pod_sandbox);
	Nri__LinuxPodSandbox *lnx = PB_NEW(a, Nri__LinuxPodSandbox, nri__linux_pod_sandbox);
	if (!pod || !lnx)
		return NULL;
	pod->id = (char *)(uintptr_t)id;
	pod->runtime_handler = (char *)(uintptr_t)handler;
	lnx->cgroup_parent = (char *)(uintptr_t)parent;
	pod->lnx = lnx;
	if (metadata) {
		pod->name = metadata->name;
		pod->uid = metadata->uid;
		pod->namespace_ = metadata->namespace_;
	}
	return pod;
}

Nri__PodSandbox *cri_pod(struct arena *a, const char *id, const Cri__PodConfig *config,
			 const char *handler)
{
	const Cri__LinuxPod *lnx = config->lnx;
	Nri__PodSandbox *pod =
		pod_of(a, id, config->metadata, handler, lnx ? lnx->cgroup_parent : "");
	if (!pod || COPY_LABELS(a, config, pod, nri__pod_sandbox))
		return NULL;
	if (lnx && lnx->overhead) {
		pod->lnx->pod_overhead = cri_resources(a, lnx->overhead);
		if (!pod->lnx->pod_overhead)
			return NULL;
	}
	if (lnx && lnx->resources) {
		pod->lnx->pod_resources = cri_resources(a, lnx->resources);
		if (!pod->lnx->pod_resources)
			return NULL;
	}
	return pod;
}

const char *cri_listed_parent(const Cri__ListedPod *pod)
{
	return map_find(pod->annotations, pod->n_annotations, CRI_PARENT_ANNOTATION);
}

static const char *cri_pod_id(const Cri__ListedPod *pod)
{
	const char *id = map_find(pod->annotations, pod->n_annotations, CRI_ID_ANNOTATION);
	return id && *id ? id : pod->id;
}

Nri__PodSandbox *cri_listed_pod(struct arena *a, const Cri__ListedPod *listed, const char *parent)
{
	Nri__PodSandbox *pod =
		pod_of(a, cri_pod_id(listed), listed->metadata, listed->runtime_handler, parent);
	return pod && !COPY_LABELS(a, listed, pod, nri__pod_sandbox) ? pod : NULL;
}

/* Returns resources and oom_score_adj. */
static Nri__LinuxContainer *linux_of(struct arena *a, const Cri__Resources *resources)
{
	Nri__LinuxContainer *lnx = PB_NEW(a, Nri__LinuxContainer, nri__linux_container);
	if (!lnx || !resources)
		return lnx;
	lnx->resources = cri_resources(a, resources);
	lnx->oom_score_adj = PB_NEW(a, Nri__OptionalInt, nri__optional_int);
	if (!lnx->resources || !lnx->oom_score_adj)
		return NULL;
	lnx->oom_score_adj->value = resources->oom_score_adj;
	return lnx;
}

static char **words_of(struct arena *a, const Cri__ContainerConfig *config, size_t *ret_n)
{
	size_t n = 0;
	char **list = arena_array(a, config->n_command + config->n_args + 1, sizeof *list);
	for (size_t i = 0; list && i < config->n_command; i++)
		list[n++] = config->command[i];
	for (size_t i = 0; list && i < config->n_args; i++)
		list[n++] = config->args[i];
	*ret_n = n;
	return list;
}

static int add_env(struct arena *a, const Cri__ContainerConfig *config, Nri__Container *to)
{
	to->env = arena_array(a, config->n_envs + 1, sizeof *to->env);
	for (size_t i = 0; to->env && i < config->n_envs; i++) {
		to->env[i] = arena_printf(a, "%s=%s", config->envs[i]->key, config->envs[i]->value);
		if (!to->env[i])
			return -ENOMEM;
	}
	to->n_env = config->n_envs;
	return to->env ? 0 : -ENOMEM;
}

static int add_mounts(struct arena *a, const Cri__ContainerConfig *config, Nri__Container *to)
{
	static char bind[] = "bind", read_only[] = "ro", writable[] = "rw";
	to->mounts = arena_array(a, config->n_mounts + 1, sizeof *to->mounts);
	for (size_t i = 0; to->mounts && i < config->n_mounts; i++) {
		Nri__Mount *m = PB_NEW(a, Nri__Mount, nri__mount);
		char **options = arena_array(a, 2, sizeof *options);
		if (!m || !options)
			return -ENOMEM;
		options[0] = bind;
		options[1] = config->mounts[i]->readonly ? read_only : writable;
		m->destination = config->mounts[i]->container_path;
		m->source = config->mounts[i]->host_path;
		m->type = bind;
		m->options = options;
		m->n_options = 2;
		to->mounts[to->n_mounts++] = m;
	}
	return to->mounts ? 0 : -ENOMEM;
}

Nri__Container *cri_container(struct arena *a, const char *id, const char *pod_id,
			      const Cri__ContainerConfig *config)
{
	Nri__Container *c = PB_NEW(a, Nri__Container, nri__container);
	if (!c)
		return NULL;
	c->id = (char *)(uintptr_t)id;
	c->pod_sandbox_id = (char *)(uintptr_t)pod_id;
	if (config->metadata)
		c->name = config->metadata->name;
	c->state = NRI__CONTAINER_STATE__CONTAINER_UNKNOWN; /* not created yet */
	c->args = words_of(a, config, &c->n_args);
	c->lnx = linux_of(a, config->lnx ? config->lnx->resources : NULL);
	bool ok = c->args && c->lnx && !add_env(a, config, c) && !add_mounts(a, config, c) &&
		  !PB_COPY_LIST(a, config, c, cdi_devices, nri__cdidevice) &&
		  !COPY_LABELS(a, config, c, nri__container);
	return ok ? c : NULL;
}

Nri__Container *cri_listed_container(struct arena *a, const char *pod_id,
				     const Cri__ListedContainer *ctr,
				     const Cri__Resources *resources)
{
	Nri__Container *c = PB_NEW(a, Nri__Container, nri__container);
	if (!c)
		return NULL;
	c->id = (char *)(uintptr_t)cri_container_id(ctr);
	c->pod_sandbox_id = (char *)(uintptr_t)pod_id;
	if (ctr->metadata)
		c->name = ctr->metadata->name;
	c->created_at = ctr->created_at;
	c->state = ctr->state ? NRI__CONTAINER_STATE__CONTAINER_RUNNING
			      : NRI__CONTAINER_STATE__CONTAINER_CREATED;
	c->lnx = linux_of(a, resources);
	return c->lnx && !COPY_LABELS(a, ctr, c, nri__container) ? c : NULL;
}

const char *cri_container_id(const Cri__ListedContainer *ctr)
{
	const char *id = map_find(ctr->annotations, ctr->n_annotations, CRI_ID_ANNOTATION);
	return id && *id ? id : ctr->id;
}

/* ---- adjustments by the plugin --------------------------------------------------------------- */

static void cri_edit_miss(struct cri_missing *missing, bool wanted, const char *field)
{
	if (wanted && missing->n < CRI_MISSING_MAX)
		missing->fields[missing->n++] = field;
}

static void set_cpu(Cri__Resources *to, const Nri__LinuxCPU *cpu, struct cri_missing *missing)
{
	if (cpu->period)
		to->cpu_period = (int64_t)cpu->period->value;
	if (cpu->quota)
		to->cpu_quota = cpu->quota->value;
	if (cpu->shares)
		to->cpu_shares = (int64_t)cpu->shares->value;
	if (*cpu->cpus)
		to->cpuset_cpus = cpu->cpus;
	if (*cpu->mems)
		to->cpuset_mems = cpu->mems;
	cri_edit_miss(missing, cpu->realtime_runtime || cpu->realtime_period, "cpu.realtime");
}

static void set_memory(Cri__Resources *to, const Nri__LinuxMemory *memory,
		       struct cri_missing *missing)
{
	/* As a runtime with NRI: a limit of 0 is no change, and memory and swap together get the
	 * same limit. 0 as the limit of both means that in CRI. */
	if (memory->limit && memory->limit->value) {
		to->memory_limit = memory->limit->value;
		if (to->memory_swap)
			to->memory_swap = memory->limit->value;
	}
	if (memory->swap)
		to->memory_swap = memory->swap->value;
	cri_edit_miss(missing, memory->reservation, "memory.reservation");
	cri_edit_miss(missing, memory->kernel || memory->kernel_tcp, "memory.kernel");
	cri_edit_miss(missing, memory->swappiness, "memory.swappiness");
	cri_edit_miss(missing, memory->disable_oom_killer || memory->use_hierarchy, "memory.oom");
}

static int set_hugepage(struct arena *a, Cri__Resources *to, const Nri__HugepageLimit *limit)
{
	for (size_t i = 0; i < to->n_hugepage_limits; i++)
		if (str_eq(to->hugepage_limits[i]->page_size, limit->page_size)) {
			to->hugepage_limits[i]->limit = limit->limit;
			return 0;
		}
	Cri__HugepageLimit *more = PB_NEW(a, Cri__HugepageLimit, cri__hugepage_limit);
	Cri__HugepageLimit **list =
		arena_array(a, to->n_hugepage_limits + 1, sizeof(Cri__HugepageLimit *));
	if (!more || !list)
		return -ENOMEM;
	more->page_size = limit->page_size;
	more->limit = limit->limit;
	if (to->n_hugepage_limits)
		memcpy(list, to->hugepage_limits, to->n_hugepage_limits * sizeof *list);
	list[to->n_hugepage_limits++] = more;
	to->hugepage_limits = list;
	return 0;
}

int cri_set_resources(struct arena *a, Cri__Resources *to, const Nri__LinuxResources *from,
		      struct cri_missing *missing)
{
	int r = 0;
	if (from->cpu)
		set_cpu(to, from->cpu, missing);
	if (from->memory)
		set_memory(to, from->memory, missing);
	for (size_t i = 0; !r && i < from->n_hugepage_limits; i++)
		r = set_hugepage(a, to, from->hugepage_limits[i]);
	for (size_t i = 0; !r && i < from->n_unified; i++)
		r = map_set(a, &cri__resources__unified_entry__descriptor, &to->unified,
			    &to->n_unified, from->unified[i]->key, from->unified[i]->value);
	cri_edit_miss(missing, from->n_devices > 0, "resources.devices");
	cri_edit_miss(missing, from->pids, "resources.pids");
	return r;
}

/* Sets annotations; a key with a leading "-" is removed. A map has no order, so a key that is both
 * removed and set is set. */
static int adjust_annotations(struct arena *a, Cri__ContainerConfig *config,
			      const Nri__ContainerAdjustment *adjust)
{
	int r = 0;
	for (size_t i = 0; !r && i < adjust->n_annotations; i++) {
		const char *key = adjust->annotations[i]->key;
		r = *key == '-' ? cri_annotate_container(a, config, key + 1, NULL) : 0;
	}
	for (size_t i = 0; !r && i < adjust->n_annotations; i++) {
		const char *key = adjust->annotations[i]->key;
		if (*key != '-')
			r = cri_annotate_container(a, config, key, adjust->annotations[i]->value);
	}
	return r;
}

/* Returns the variable that the adjustment sets under this name, or NULL. *ret_named: true if the
 * adjustment sets or removes the name. */
static const Nri__KeyValue *env_set_as(const Nri__ContainerAdjustment *adjust, const char *name,
				       bool *ret_named)
{
	const Nri__KeyValue *found = NULL;
	*ret_named = false;
	for (size_t i = 0; i < adjust->n_env; i++) {
		const char *key = adjust->env[i]->key;
		bool removes = *key == '-';
		if (!str_eq(name, key + removes))
			continue;
		*ret_named = true;
		found = removes ? found : adjust->env[i];
	}
	return found;
}

static int put_env(struct arena *a, Cri__KeyValue **list, size_t *n, const Nri__KeyValue *from)
{
	Cri__KeyValue *e = PB_NEW(a, Cri__KeyValue, cri__key_value);
	if (!e)
		return -ENOMEM;
	e->key = from->key;
	e->value = from->value;
	list[(*n)++] = e;
	return 0;
}

static bool has_env(Cri__KeyValue *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i]->key, name))
			return true;
	return false;
}

/* Sets and removes variables. Variables that the container has already keep their place. */
static int adjust_env(struct arena *a, Cri__ContainerConfig *config,
		      const Nri__ContainerAdjustment *adjust)
{
	size_t n = 0;
	int r = 0;
	Cri__KeyValue **list =
		arena_array(a, config->n_envs + adjust->n_env + 1, sizeof(Cri__KeyValue *));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; !r && i < config->n_envs; i++) {
		bool named;
		const Nri__KeyValue *set = env_set_as(adjust, config->envs[i]->key, &named);
		if (set && !has_env(list, n, set->key))
			r = put_env(a, list, &n, set);
		else if (!named)
			list[n++] = config->envs[i];
	}
	for (size_t k = 0; !r && k < adjust->n_env; k++)
		if (*adjust->env[k]->key != '-' && !has_env(list, n, adjust->env[k]->key))
			r = put_env(a, list, &n, adjust->env[k]);
	config->envs = list;
	config->n_envs = n;
	return r;
}

static Cri__Mount *mount_of(struct arena *a, const Nri__Mount *from)
{
	Cri__Mount *m = PB_NEW(a, Cri__Mount, cri__mount);
	if (!m)
		return NULL;
	m->container_path = from->destination;
	m->host_path = from->source;
	for (size_t i = 0; i < from->n_options; i++) {
		const char *option = from->options[i];
		if (str_eq(option, "ro"))
			m->readonly = true;
		else if (str_eq(option, "rslave") || str_eq(option, "slave"))
			m->propagation = 1;
		else if (str_eq(option, "rshared") || str_eq(option, "shared"))
			m->propagation = 2;
	}
	return m;
}

static int adjust_mounts(struct arena *a, Cri__ContainerConfig *config,
			 const Nri__ContainerAdjustment *adjust, struct cri_missing *missing)
{
	size_t n = 0;
	Cri__Mount **list =
		arena_array(a, config->n_mounts + adjust->n_mounts + 1, sizeof(Cri__Mount *));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_mounts; i++) {
		bool replaced = false;
		for (size_t k = 0; k < adjust->n_mounts; k++) {
			const char *path = adjust->mounts[k]->destination;
			replaced = replaced ||
				   str_eq(config->mounts[i]->container_path, path + (*path == '-'));
		}
		if (!replaced)
			list[n++] = config->mounts[i];
	}
	for (size_t k = 0; k < adjust->n_mounts; k++) {
		const Nri__Mount *m = adjust->mounts[k];
		bool bind = !*m->type || str_eq(m->type, "bind");
		cri_edit_miss(missing, *m->destination != '-' && !bind,
			      "mounts that are not of files");
		if (*m->destination == '-' || !bind)
			continue;
		list[n] = mount_of(a, m);
		if (!list[n++])
			return -ENOMEM;
	}
	config->mounts = list;
	config->n_mounts = n;
	return 0;
}

/* Returns true if the adjustment removes or replaces the device of this path. */
static bool device_adjusted(const Nri__LinuxContainerAdjustment *lnx, const char *path)
{
	for (size_t i = 0; i < lnx->n_devices; i++)
		if (str_eq(path, lnx->devices[i]->path + (*lnx->devices[i]->path == '-')))
			return true;
	return false;
}

/* Adds, replaces and removes devices. CRI identifies a device by its path on the host, so device
 * numbers are dropped. */
static int adjust_devices(struct arena *a, Cri__ContainerConfig *config,
			  const Nri__LinuxContainerAdjustment *lnx)
{
	static char all[] = PERMISSIONS_ALL;
	size_t n = 0;
	Cri__Device **list =
		arena_array(a, config->n_devices + lnx->n_devices + 1, sizeof(Cri__Device *));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_devices; i++)
		if (!device_adjusted(lnx, config->devices[i]->container_path))
			list[n++] = config->devices[i];
	for (size_t i = 0; i < lnx->n_devices; i++) {
		if (*lnx->devices[i]->path == '-')
			continue;
		Cri__Device *d = PB_NEW(a, Cri__Device, cri__device);
		if (!d)
			return -ENOMEM;
		d->container_path = lnx->devices[i]->path;
		d->host_path = lnx->devices[i]->path;
		d->permissions = all;
		list[n++] = d;
	}
	config->devices = list;
	config->n_devices = n;
	return 0;
}

/* Adds CDI devices that the container does not have already. */
static int adjust_cdi(struct arena *a, Cri__ContainerConfig *config,
		      const Nri__ContainerAdjustment *adjust)
{
	Cri__CDIDevice **list = arena_array(a, config->n_cdi_devices + adjust->n_cdi_devices + 1,
					    sizeof(Cri__CDIDevice *));
	if (!list)
		return -ENOMEM;
	if (config->n_cdi_devices)
		memcpy(list, config->cdi_devices, config->n_cdi_devices * sizeof *list);
	config->cdi_devices = list;
	for (size_t i = 0; i < adjust->n_cdi_devices; i++) {
		const char *name = adjust->cdi_devices[i]->name;
		bool has = false;
		for (size_t k = 0; k < config->n_cdi_devices; k++)
			has = has || str_eq(list[k]->name, name);
		if (has)
			continue;
		Cri__CDIDevice *d = PB_NEW(a, Cri__CDIDevice, cri__cdidevice);
		if (!d)
			return -ENOMEM;
		d->name = (char *)(uintptr_t)name;
		list[config->n_cdi_devices++] = d;
	}
	return 0;
}

static int adjust_classes(struct arena *a, Cri__ContainerConfig *config,
			  const Nri__LinuxResources *resources)
{
	int r = 0;
	if (resources->rdt_class)
		r = cri_annotate_container(a, config, RDT_ANNOTATION, resources->rdt_class->value);
	if (!r && resources->blockio_class)
		r = cri_annotate_container(a, config, BLOCKIO_ANNOTATION,
					   resources->blockio_class->value);
	return r;
}

static int adjust_linux(struct arena *a, Cri__ContainerConfig *config,
			const Nri__LinuxContainerAdjustment *lnx, struct cri_missing *missing)
{
	if (!config->lnx)
		config->lnx = PB_NEW(a, Cri__LinuxContainer, cri__linux_container);
	if (config->lnx && !config->lnx->resources)
		config->lnx->resources = PB_NEW(a, Cri__Resources, cri__resources);
	if (!config->lnx || !config->lnx->resources)
		return -ENOMEM;
	int r = lnx->n_devices ? adjust_devices(a, config, lnx) : 0;
	if (!r && lnx->resources)
		r = cri_set_resources(a, config->lnx->resources, lnx->resources, missing);
	if (!r && lnx->resources)
		r = adjust_classes(a, config, lnx->resources);
	if (lnx->oom_score_adj)
		config->lnx->resources->oom_score_adj = lnx->oom_score_adj->value;
	cri_edit_miss(missing, *lnx->cgroups_path, "cgroups_path");
	cri_edit_miss(missing, lnx->io_priority, "io_priority");
	cri_edit_miss(missing, lnx->seccomp_policy, "seccomp_policy");
	cri_edit_miss(missing, lnx->n_namespaces > 0, "namespaces");
	cri_edit_miss(missing, lnx->n_sysctl > 0, "sysctl");
	cri_edit_miss(missing, lnx->n_net_devices > 0, "net_devices");
	cri_edit_miss(missing, lnx->scheduler, "scheduler");
	cri_edit_miss(missing, lnx->rdt, "rdt");
	cri_edit_miss(missing, lnx->memory_policy, "memory_policy");
	return r;
}

int cri_adjust(struct arena *a, Cri__ContainerConfig *config,
	       const Nri__ContainerAdjustment *adjust, struct cri_missing *missing)
{
	int r = adjust_annotations(a, config, adjust);
	if (!r && adjust->n_env)
		r = adjust_env(a, config, adjust);
	if (!r && adjust->n_mounts)
		r = adjust_mounts(a, config, adjust, missing);
	if (!r && adjust->n_cdi_devices)
		r = adjust_cdi(a, config, adjust);
	if (!r && adjust->lnx)
		r = adjust_linux(a, config, adjust->lnx, missing);
	cri_edit_miss(missing, adjust->hooks, "hooks");
	cri_edit_miss(missing, adjust->n_rlimits > 0, "rlimits");
	cri_edit_miss(missing, adjust->n_args > 0, "args");
	return r;
}
