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

/* Sets key to value; value NULL: removes the key. map and n are members of a message. */
static void map_set(struct arena *a, const ProtobufCMessageDescriptor *type, void *map, size_t *n,
		    const char *key, const char *value)
{
	struct entry **list;
	memcpy(&list, map, sizeof list);
	size_t at = 0;
	while (at < *n && !str_eq(list[at]->key, key))
		at++;
	if (at < *n && !value)
		memmove(&list[at], &list[at + 1], (--*n - at) * sizeof *list);
	struct entry *e = value ? pb_build(a, type) : NULL;
	if (!e)
		return;
	e->key = (char *)(uintptr_t)key;
	e->value = (char *)(uintptr_t)value;
	if (at < *n)
		list[at] = e;
	else if (pb_adopt(a, map, *n))
		(void)pb_build_item(a, e, map, n);
}

static int cri_edit_result(const struct arena *a)
{
	return arena_failed(a) ? -ENOMEM : 0;
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
	map_set(a, &cri__pod_config__annotations_entry__descriptor, &config->annotations,
		&config->n_annotations, key, value);
	return cri_edit_result(a);
}

int cri_annotate_container(struct arena *a, Cri__ContainerConfig *config, const char *key,
			   const char *value)
{
	map_set(a, &cri__container_config__annotations_entry__descriptor, &config->annotations,
		&config->n_annotations, key, value);
	return cri_edit_result(a);
}

/* ---- conversion from CRI to NRI -------------------------------------------------------------- */

#define COPY_LABELS(arena, from, to, type)                                                         \
	do {                                                                                       \
		PB_COPY_LIST(arena, from, to, labels, type##__labels_entry);                       \
		PB_COPY_LIST(arena, from, to, annotations, type##__annotations_entry);             \
	} while (0)

static void add_cpu(struct arena *a, const Cri__Resources *from, Nri__LinuxResources *to)
{
	Nri__LinuxCPU *cpu = PB_PART(a, to->cpu, nri__linux_cpu);
	if (!cpu)
		return;
	if (from->cpu_shares > 0)
		PB_SET(a, cpu->shares, nri__optional_uint64, (uint64_t)from->cpu_shares);
	if (from->cpu_quota)
		PB_SET(a, cpu->quota, nri__optional_int64, from->cpu_quota);
	if (from->cpu_period > 0)
		PB_SET(a, cpu->period, nri__optional_uint64, (uint64_t)from->cpu_period);
	cpu->cpus = from->cpuset_cpus;
	cpu->mems = from->cpuset_mems;
}

static void add_memory(struct arena *a, const Cri__Resources *from, Nri__LinuxResources *to)
{
	Nri__LinuxMemory *memory = PB_PART(a, to->memory, nri__linux_memory);
	if (memory && from->memory_limit)
		PB_SET(a, memory->limit, nri__optional_int64, from->memory_limit);
	if (memory && from->memory_swap)
		PB_SET(a, memory->swap, nri__optional_int64, from->memory_swap);
}

Nri__LinuxResources *cri_resources(struct arena *a, const Cri__Resources *from)
{
	Nri__LinuxResources *to = pb_build(a, &nri__linux_resources__descriptor);
	if (!to)
		return NULL;
	add_cpu(a, from, to);
	add_memory(a, from, to);
	PB_COPY_LIST(a, from, to, hugepage_limits, nri__hugepage_limit);
	PB_COPY_LIST(a, from, to, unified, nri__linux_resources__unified_entry);
	return arena_failed(a) ? NULL : to;
}

static Nri__PodSandbox *pod_of(struct arena *a, const char *id, const Cri__PodMetadata *metadata,
			       const char *handler, const char *parent)
{
	Nri__PodSandbox *pod = pb_build(a, &nri__pod_sandbox__descriptor);
	if (!pod || !PB_PART(a, pod->lnx, nri__linux_pod_sandbox))
		return NULL;
	pod->id = (char *)(uintptr_t)id;
	pod->runtime_handler = (char *)(uintptr_t)handler;
	pod->lnx->cgroup_parent = (char *)(uintptr_t)parent;
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
	if (!pod)
		return NULL;
	COPY_LABELS(a, config, pod, nri__pod_sandbox);
	if (lnx && lnx->overhead)
		pod->lnx->pod_overhead = cri_resources(a, lnx->overhead);
	if (lnx && lnx->resources)
		pod->lnx->pod_resources = cri_resources(a, lnx->resources);
	return arena_failed(a) ? NULL : pod;
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
	if (pod)
		COPY_LABELS(a, listed, pod, nri__pod_sandbox);
	return arena_failed(a) ? NULL : pod;
}

/* Adds resources and oom_score_adj. */
static void add_linux(struct arena *a, const Cri__Resources *resources, Nri__Container *to)
{
	if (!PB_PART(a, to->lnx, nri__linux_container) || !resources)
		return;
	to->lnx->resources = cri_resources(a, resources);
	PB_SET(a, to->lnx->oom_score_adj, nri__optional_int, resources->oom_score_adj);
}

static void add_words(struct arena *a, char **from, size_t n, Nri__Container *to)
{
	for (size_t i = 0; i < n; i++)
		(void)pb_build_item(a, from[i], &to->args, &to->n_args);
}

static void add_mounts(struct arena *a, const Cri__ContainerConfig *config, Nri__Container *to)
{
	static char bind[] = "bind", read_only[] = "ro", writable[] = "rw";
	for (size_t i = 0; i < config->n_mounts; i++) {
		const Cri__Mount *from = config->mounts[i];
		Nri__Mount *m = PB_ADD(a, to, mounts, nri__mount);
		if (!m)
			return;
		m->destination = from->container_path;
		m->source = from->host_path;
		m->type = bind;
		(void)pb_build_item(a, bind, &m->options, &m->n_options);
		(void)pb_build_item(a, from->readonly ? read_only : writable, &m->options,
				    &m->n_options);
	}
}

Nri__Container *cri_container(struct arena *a, const char *id, const char *pod_id,
			      const Cri__ContainerConfig *config)
{
	Nri__Container *c = pb_build(a, &nri__container__descriptor);
	if (!c)
		return NULL;
	c->id = (char *)(uintptr_t)id;
	c->pod_sandbox_id = (char *)(uintptr_t)pod_id;
	if (config->metadata)
		c->name = config->metadata->name;
	c->state = NRI__CONTAINER_STATE__CONTAINER_UNKNOWN; /* not created yet */
	add_words(a, config->command, config->n_command, c);
	add_words(a, config->args, config->n_args, c);
	add_linux(a, config->lnx ? config->lnx->resources : NULL, c);
	for (size_t i = 0; i < config->n_envs; i++)
		(void)pb_build_item(
			a, arena_printf(a, "%s=%s", config->envs[i]->key, config->envs[i]->value),
			&c->env, &c->n_env);
	add_mounts(a, config, c);
	PB_COPY_LIST(a, config, c, cdi_devices, nri__cdidevice);
	COPY_LABELS(a, config, c, nri__container);
	return arena_failed(a) ? NULL : c;
}

Nri__Container *cri_listed_container(struct arena *a, const char *pod_id,
				     const Cri__ListedContainer *ctr,
				     const Cri__Resources *resources)
{
	Nri__Container *c = pb_build(a, &nri__container__descriptor);
	if (!c)
		return NULL;
	c->id = (char *)(uintptr_t)cri_container_id(ctr);
	c->pod_sandbox_id = (char *)(uintptr_t)pod_id;
	if (ctr->metadata)
		c->name = ctr->metadata->name;
	c->created_at = ctr->created_at;
	c->state = ctr->state ? NRI__CONTAINER_STATE__CONTAINER_RUNNING
			      : NRI__CONTAINER_STATE__CONTAINER_CREATED;
	add_linux(a, resources, c);
	COPY_LABELS(a, ctr, c, nri__container);
	return arena_failed(a) ? NULL : c;
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

static void set_hugepage(struct arena *a, Cri__Resources *to, const Nri__HugepageLimit *limit)
{
	for (size_t i = 0; i < to->n_hugepage_limits; i++)
		if (str_eq(to->hugepage_limits[i]->page_size, limit->page_size)) {
			to->hugepage_limits[i]->limit = limit->limit;
			return;
		}
	Cri__HugepageLimit *more = PB_ADOPT(a, to, hugepage_limits)
					   ? PB_ADD(a, to, hugepage_limits, cri__hugepage_limit)
					   : NULL;
	if (!more)
		return;
	more->page_size = limit->page_size;
	more->limit = limit->limit;
}

int cri_set_resources(struct arena *a, Cri__Resources *to, const Nri__LinuxResources *from,
		      struct cri_missing *missing)
{
	if (from->cpu)
		set_cpu(to, from->cpu, missing);
	if (from->memory)
		set_memory(to, from->memory, missing);
	for (size_t i = 0; i < from->n_hugepage_limits; i++)
		set_hugepage(a, to, from->hugepage_limits[i]);
	for (size_t i = 0; i < from->n_unified; i++)
		map_set(a, &cri__resources__unified_entry__descriptor, &to->unified, &to->n_unified,
			from->unified[i]->key, from->unified[i]->value);
	cri_edit_miss(missing, from->n_devices > 0, "resources.devices");
	cri_edit_miss(missing, from->pids, "resources.pids");
	return cri_edit_result(a);
}

/* Sets annotations; a key with a leading "-" is removed. A map has no order, so a key that is both
 * removed and set is set. */
static void adjust_annotations(struct arena *a, Cri__ContainerConfig *config,
			       const Nri__ContainerAdjustment *adjust)
{
	for (size_t i = 0; i < adjust->n_annotations; i++) {
		const char *key = adjust->annotations[i]->key;
		if (*key == '-')
			(void)cri_annotate_container(a, config, key + 1, NULL);
	}
	for (size_t i = 0; i < adjust->n_annotations; i++) {
		const char *key = adjust->annotations[i]->key;
		if (*key != '-')
			(void)cri_annotate_container(a, config, key, adjust->annotations[i]->value);
	}
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

static Cri__KeyValue *env_of(struct arena *a, const Nri__KeyValue *from)
{
	Cri__KeyValue *e = pb_build(a, &cri__key_value__descriptor);
	if (!e)
		return NULL;
	e->key = from->key;
	e->value = from->value;
	return e;
}

static bool has_env(const Cri__ContainerConfig *config, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(config->envs[i]->key, name))
			return true;
	return false;
}

/* Sets and removes variables. Variables that the container has already keep their place. */
static void adjust_env(struct arena *a, Cri__ContainerConfig *config,
		       const Nri__ContainerAdjustment *adjust)
{
	size_t n = 0;
	for (size_t i = 0; i < config->n_envs; i++) {
		bool named;
		const Nri__KeyValue *set = env_set_as(adjust, config->envs[i]->key, &named);
		Cri__KeyValue *e = named ? NULL : config->envs[i];
		if (set && !has_env(config, n, set->key))
			e = env_of(a, set);
		if (e)
			config->envs[n++] = e;
	}
	config->n_envs = n;
	if (!PB_ADOPT(a, config, envs))
		return;
	for (size_t k = 0; k < adjust->n_env; k++)
		if (*adjust->env[k]->key != '-' &&
		    !has_env(config, config->n_envs, adjust->env[k]->key))
			(void)pb_build_item(a, env_of(a, adjust->env[k]), &config->envs,
					    &config->n_envs);
}

static void fill_mount(Cri__Mount *m, const Nri__Mount *from)
{
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
}

static void adjust_mounts(struct arena *a, Cri__ContainerConfig *config,
			  const Nri__ContainerAdjustment *adjust, struct cri_missing *missing)
{
	size_t n = 0;
	for (size_t i = 0; i < config->n_mounts; i++) {
		bool replaced = false;
		for (size_t k = 0; k < adjust->n_mounts; k++) {
			const char *path = adjust->mounts[k]->destination;
			replaced = replaced ||
				   str_eq(config->mounts[i]->container_path, path + (*path == '-'));
		}
		if (!replaced)
			config->mounts[n++] = config->mounts[i];
	}
	config->n_mounts = n;
	if (!PB_ADOPT(a, config, mounts))
		return;
	for (size_t k = 0; k < adjust->n_mounts; k++) {
		const Nri__Mount *m = adjust->mounts[k];
		bool bind = !*m->type || str_eq(m->type, "bind");
		cri_edit_miss(missing, *m->destination != '-' && !bind,
			      "mounts that are not of files");
		if (*m->destination == '-' || !bind)
			continue;
		Cri__Mount *to = PB_ADD(a, config, mounts, cri__mount);
		if (to)
			fill_mount(to, m);
	}
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
static void adjust_devices(struct arena *a, Cri__ContainerConfig *config,
			   const Nri__LinuxContainerAdjustment *lnx)
{
	static char all[] = PERMISSIONS_ALL;
	size_t n = 0;
	for (size_t i = 0; i < config->n_devices; i++)
		if (!device_adjusted(lnx, config->devices[i]->container_path))
			config->devices[n++] = config->devices[i];
	config->n_devices = n;
	if (!PB_ADOPT(a, config, devices))
		return;
	for (size_t i = 0; i < lnx->n_devices; i++) {
		if (*lnx->devices[i]->path == '-')
			continue;
		Cri__Device *d = PB_ADD(a, config, devices, cri__device);
		if (!d)
			return;
		d->container_path = lnx->devices[i]->path;
		d->host_path = lnx->devices[i]->path;
		d->permissions = all;
	}
}

/* Adds CDI devices that the container does not have already. */
static void adjust_cdi(struct arena *a, Cri__ContainerConfig *config,
		       const Nri__ContainerAdjustment *adjust)
{
	if (!PB_ADOPT(a, config, cdi_devices))
		return;
	for (size_t i = 0; i < adjust->n_cdi_devices; i++) {
		const char *name = adjust->cdi_devices[i]->name;
		bool has = false;
		for (size_t k = 0; k < config->n_cdi_devices; k++)
			has = has || str_eq(config->cdi_devices[k]->name, name);
		Cri__CDIDevice *d = has ? NULL : PB_ADD(a, config, cdi_devices, cri__cdidevice);
		if (d)
			d->name = (char *)(uintptr_t)name;
	}
}

static void adjust_classes(struct arena *a, Cri__ContainerConfig *config,
			   const Nri__LinuxResources *resources)
{
	if (resources->rdt_class)
		(void)cri_annotate_container(a, config, RDT_ANNOTATION,
					     resources->rdt_class->value);
	if (resources->blockio_class)
		(void)cri_annotate_container(a, config, BLOCKIO_ANNOTATION,
					     resources->blockio_class->value);
}

static void adjust_linux(struct arena *a, Cri__ContainerConfig *config,
			 const Nri__LinuxContainerAdjustment *lnx, struct cri_missing *missing)
{
	if (!PB_PART(a, config->lnx, cri__linux_container) ||
	    !PB_PART(a, config->lnx->resources, cri__resources))
		return;
	if (lnx->n_devices)
		adjust_devices(a, config, lnx);
	if (lnx->resources) {
		(void)cri_set_resources(a, config->lnx->resources, lnx->resources, missing);
		adjust_classes(a, config, lnx->resources);
	}
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
}

int cri_adjust(struct arena *a, Cri__ContainerConfig *config,
	       const Nri__ContainerAdjustment *adjust, struct cri_missing *missing)
{
	adjust_annotations(a, config, adjust);
	if (adjust->n_env)
		adjust_env(a, config, adjust);
	if (adjust->n_mounts)
		adjust_mounts(a, config, adjust, missing);
	if (adjust->n_cdi_devices)
		adjust_cdi(a, config, adjust);
	if (adjust->lnx)
		adjust_linux(a, config, adjust->lnx, missing);
	cri_edit_miss(missing, adjust->hooks, "hooks");
	cri_edit_miss(missing, adjust->n_rlimits > 0, "rlimits");
	cri_edit_miss(missing, adjust->n_args > 0, "args");
	return cri_edit_result(a);
}
