/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes replies and updates. Sets only fields that were decided: a field that is merely repeated
 * would be claimed from other plugins. */
#include <stdlib.h>

#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/internal.h"
#include "core/lib/util/pb.h"
#include "core/nri-rpd/nri/encode.h"

/* Removes const from a text, because protobuf-c has no const in its structs. Packing only reads the
 * text. */
static char *encode_borrow(const char *text)
{
	return (char *)(uintptr_t)text;
}

static bool add_cpu(struct arena *a, Nri__LinuxResources *res, uint32_t fields,
		    const struct values *v)
{
	Nri__LinuxCPU *cpu = PB_NEW(a, Nri__LinuxCPU, nri__linux_cpu);
	bool ok = cpu != NULL;
	if (ok && (fields & DIFF_SHARES))
		ok = (cpu->shares = PB_VALUE(a, Nri__OptionalUInt64, nri__optional_uint64,
					     (uint64_t)v->shares)) != NULL;
	if (ok && (fields & DIFF_QUOTA))
		ok = (cpu->quota = PB_VALUE(a, Nri__OptionalInt64, nri__optional_int64,
					    v->quota)) != NULL;
	if (ok && (fields & DIFF_PERIOD))
		ok = (cpu->period = PB_VALUE(a, Nri__OptionalUInt64, nri__optional_uint64,
					     (uint64_t)v->period)) != NULL;
	if (!ok)
		return false;
	if (fields & DIFF_CPUS)
		cpu->cpus = encode_borrow(v->cpus->text);
	if (fields & DIFF_MEMS)
		cpu->mems = encode_borrow(v->mems->text);
	res->cpu = cpu;
	return true;
}

static Nri__LinuxResources *encode_resources(struct arena *a, uint32_t fields,
					     const struct values *v)
{
	Nri__LinuxResources *res = PB_NEW(a, Nri__LinuxResources, nri__linux_resources);
	if (!res || ((fields & ~DIFF_MEM_LIMIT) && !add_cpu(a, res, fields, v)))
		return NULL;
	if (!(fields & DIFF_MEM_LIMIT))
		return res;
	res->memory = PB_NEW(a, Nri__LinuxMemory, nri__linux_memory);
	if (!res->memory)
		return NULL;
	res->memory->limit = PB_VALUE(a, Nri__OptionalInt64, nri__optional_int64, v->mem_limit);
	return res->memory->limit ? res : NULL;
}

/* Update encoded last. Containers that share CPUs get equal updates, one after the other, so that
 * the message can be reused. */
struct said {
	uint32_t fields;
	const struct iset *cpus, *mems;
	Nri__LinuxContainerUpdate *lnx;
};

static bool is_same(const struct said *said, uint32_t fields, const struct values *v)
{
	return said->lnx && fields == said->fields && !(fields & ~(DIFF_CPUS | DIFF_MEMS)) &&
	       v->cpus == said->cpus && v->mems == said->mems;
}

static Nri__ContainerUpdate *encode_update(struct arena *a, const char *id, uint32_t fields,
					   const struct values *v, bool ignore_failure,
					   struct said *said)
{
	Nri__ContainerUpdate *u = PB_NEW(a, Nri__ContainerUpdate, nri__container_update);
	if (!u)
		return NULL;
	u->container_id = encode_borrow(id);
	u->ignore_failure = ignore_failure;
	if (is_same(said, fields, v)) {
		u->lnx = said->lnx;
		return u;
	}
	u->lnx = PB_NEW(a, Nri__LinuxContainerUpdate, nri__linux_container_update);
	if (!u->lnx)
		return NULL;
	u->lnx->resources = encode_resources(a, fields, v);
	*said = (struct said){fields, v->cpus, v->mems, u->lnx};
	return u->lnx->resources ? u : NULL;
}

Nri__ContainerUpdate **encode_updates(struct arena *a, const struct update *updates, uint32_t n,
				      bool ignore_failure)
{
	Nri__ContainerUpdate **list = arena_array(a, n + 1, sizeof(void *));
	struct said said = {0};
	for (uint32_t i = 0; list && i < n; i++) {
		list[i] = encode_update(a, updates[i].ctr->id, updates[i].fields,
					&updates[i].values, ignore_failure, &said);
		if (!list[i])
			return NULL;
	}
	return list;
}

/* ---- creation-only values -------------------------------------------------------------------- */

struct target {
	struct arena *arena;
	const struct reply *reply;
	uint32_t n; /* length of the longest list */
	Nri__ContainerAdjustment *adj;
	Nri__LinuxContainerAdjustment *lnx;
};

static int add_env(struct target *t, const struct extra *e)
{
	Nri__KeyValue *kv = PB_NEW(t->arena, Nri__KeyValue, nri__key_value);
	if (!t->adj->env)
		t->adj->env = arena_array(t->arena, t->n, sizeof(void *));
	if (!kv || !t->adj->env)
		return -ENOMEM;
	kv->key = encode_borrow(e->key);
	kv->value = encode_borrow(e->text);
	t->adj->env[t->adj->n_env++] = kv;
	return 0;
}

static int add_annotation(struct target *t, const struct extra *e)
{
	Nri__ContainerAdjustment__AnnotationsEntry *kv =
		PB_NEW(t->arena, Nri__ContainerAdjustment__AnnotationsEntry,
		       nri__container_adjustment__annotations_entry);
	if (!t->adj->annotations)
		t->adj->annotations = arena_array(t->arena, t->n, sizeof(void *));
	if (!kv || !t->adj->annotations)
		return -ENOMEM;
	kv->key = encode_borrow(e->key);
	kv->value = encode_borrow(e->text);
	t->adj->annotations[t->adj->n_annotations++] = kv;
	return 0;
}

/* Returns the resources of the message, allocated on first use. NULL: out of memory. */
static Nri__LinuxResources *resources_of(struct target *t)
{
	if (!t->lnx->resources)
		t->lnx->resources = PB_NEW(t->arena, Nri__LinuxResources, nri__linux_resources);
	return t->lnx->resources;
}

static int add_swap(struct target *t, const struct extra *e)
{
	Nri__LinuxResources *res = resources_of(t);
	if (res && !res->memory)
		res->memory = PB_NEW(t->arena, Nri__LinuxMemory, nri__linux_memory);
	if (!res || !res->memory)
		return -ENOMEM;
	res->memory->swap = PB_VALUE(t->arena, Nri__OptionalInt64, nri__optional_int64, e->number);
	return res->memory->swap ? 0 : -ENOMEM;
}

static int add_hugepages(struct target *t, const struct extra *e)
{
	Nri__HugepageLimit *limit = PB_NEW(t->arena, Nri__HugepageLimit, nri__hugepage_limit);
	Nri__LinuxResources *res = resources_of(t);
	if (res && !res->hugepage_limits)
		res->hugepage_limits = arena_array(t->arena, t->n, sizeof(void *));
	if (!limit || !res || !res->hugepage_limits)
		return -ENOMEM;
	limit->page_size = encode_borrow(e->key);
	limit->limit = strtoull(e->text, NULL, 10);
	res->hugepage_limits[res->n_hugepage_limits++] = limit;
	return 0;
}

static int add_unified(struct target *t, const struct extra *e)
{
	Nri__LinuxResources__UnifiedEntry *kv = PB_NEW(t->arena, Nri__LinuxResources__UnifiedEntry,
						       nri__linux_resources__unified_entry);
	Nri__LinuxResources *res = resources_of(t);
	if (res && !res->unified)
		res->unified = arena_array(t->arena, t->n, sizeof(void *));
	if (!kv || !res || !res->unified)
		return -ENOMEM;
	kv->key = encode_borrow(e->key);
	kv->value = encode_borrow(e->text);
	res->unified[res->n_unified++] = kv;
	return 0;
}

/* Converts a scheduling policy. Linux numbers policies from 0 (OTHER), NRI from 1. The kernel's
 * SCHED_ISO was never merged, so 4 is not used. */
static Nri__LinuxSchedulerPolicy sched_policy(int64_t linux_number)
{
	static const Nri__LinuxSchedulerPolicy by_number[] = {
		NRI__LINUX_SCHEDULER_POLICY__SCHED_OTHER,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_FIFO,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_RR,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_BATCH,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_ISO,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_IDLE,
		NRI__LINUX_SCHEDULER_POLICY__SCHED_DEADLINE,
	};
	return linux_number >= 0 && linux_number < 7 ? by_number[linux_number]
						     : NRI__LINUX_SCHEDULER_POLICY__SCHED_NONE;
}

#define SCHED_FLAGS 7

static int add_sched_flags(struct target *t, Nri__LinuxScheduler *s, int64_t bits)
{
	s->flags = arena_array(t->arena, SCHED_FLAGS, sizeof *s->flags);
	if (!s->flags)
		return -ENOMEM;
	for (unsigned bit = 0; bit < SCHED_FLAGS; bit++)
		if (bits >> bit & 1)
			s->flags[s->n_flags++] = (Nri__LinuxSchedulerFlag)bit;
	return 0;
}

static int add_sched(struct target *t, const struct extra *e)
{
	Nri__LinuxScheduler *s = t->lnx->scheduler;
	if (!s)
		s = t->lnx->scheduler = PB_NEW(t->arena, Nri__LinuxScheduler, nri__linux_scheduler);
	if (!s)
		return -ENOMEM;
	switch (e->field) {
	case RP_F_SCHED_POLICY:
		s->policy = sched_policy(e->number);
		return 0;
	case RP_F_SCHED_PRIORITY:
		s->priority = (int32_t)e->number;
		return 0;
	case RP_F_NICE:
		s->nice = (int32_t)e->number;
		return 0;
	case RP_F_SCHED_RUNTIME:
		s->runtime = (uint64_t)e->number;
		return 0;
	case RP_F_SCHED_DEADLINE:
		s->deadline = (uint64_t)e->number;
		return 0;
	case RP_F_SCHED_PERIOD:
		s->period = (uint64_t)e->number;
		return 0;
	default:
		return add_sched_flags(t, s, e->number);
	}
}

static int add_io(struct target *t, const struct extra *e)
{
	Nri__LinuxIOPriority *io = t->lnx->io_priority;
	if (!io)
		io = t->lnx->io_priority =
			PB_NEW(t->arena, Nri__LinuxIOPriority, nri__linux_iopriority);
	if (!io)
		return -ENOMEM;
	if (e->field == RP_F_IO_CLASS)
		io->class_ = (Nri__IOPrioClass)e->number;
	else
		io->priority = (int32_t)e->number;
	return 0;
}

static int add_oom(struct target *t, const struct extra *e)
{
	t->lnx->oom_score_adj = PB_VALUE(t->arena, Nri__OptionalInt, nri__optional_int, e->number);
	return t->lnx->oom_score_adj ? 0 : -ENOMEM;
}

static int add_mempolicy_flags(struct target *t, Nri__LinuxMemoryPolicy *m, const char *text)
{
	static const char *const names[] = {"static", "relative", "numa-balancing"};
	m->flags = arena_array(t->arena, 3, sizeof *m->flags);
	if (!m->flags)
		return -ENOMEM;
	for (unsigned i = 0; i < 3; i++)
		if (strstr(text, names[i]))
			m->flags[m->n_flags++] = (Nri__MpolFlag)i;
	return 0;
}

static int add_mempolicy(struct target *t, const struct extra *e)
{
	Nri__LinuxMemoryPolicy *m = t->lnx->memory_policy;
	if (!m)
		m = t->lnx->memory_policy =
			PB_NEW(t->arena, Nri__LinuxMemoryPolicy, nri__linux_memory_policy);
	if (!m)
		return -ENOMEM;
	if (e->field == RP_F_MEMPOLICY_MODE)
		m->mode = (Nri__MpolMode)e->number;
	else if (e->field == RP_F_MEMPOLICY_NODES)
		m->nodes = encode_borrow(e->text);
	else
		return add_mempolicy_flags(t, m, e->text);
	return 0;
}

/* Sets the mount's options from a comma-separated list, and adds whether it is read-only. */
static bool put_options(struct arena *a, Nri__Mount *m, const char *options, bool read_only)
{
	const char *at = options;
	size_t n = 2;
	for (const char *c = options; *c; c++)
		n += *c == ',';
	m->options = arena_array(a, n, sizeof *m->options);
	while (m->options && *at) {
		size_t len = strcspn(at, ",");
		char *option = arena_strndup(a, at, len);
		if (!option)
			return false;
		m->options[m->n_options++] = option;
		at += len + (at[len] == ',');
	}
	if (m->options)
		m->options[m->n_options++] = encode_borrow(read_only ? "ro" : "rw");
	return m->options != NULL;
}

static int add_mount(struct target *t, const struct rp_mount *from)
{
	Nri__Mount *m = PB_NEW(t->arena, Nri__Mount, nri__mount);
	if (!t->adj->mounts)
		t->adj->mounts = arena_array(t->arena, t->n, sizeof(void *));
	if (!m || !t->adj->mounts || !put_options(t->arena, m, from->options, from->read_only != 0))
		return -ENOMEM;
	m->destination = encode_borrow(from->destination);
	m->type = encode_borrow(from->type);
	m->source = encode_borrow(from->source);
	t->adj->mounts[t->adj->n_mounts++] = m;
	return 0;
}

static int add_device(struct target *t, const struct rp_device *from)
{
	Nri__LinuxDevice *d = PB_NEW(t->arena, Nri__LinuxDevice, nri__linux_device);
	struct arena *a = t->arena;
	bool ok = d != NULL;
	if (!t->lnx->devices)
		t->lnx->devices = arena_array(a, t->n, sizeof(void *));
	if (ok && from->mode)
		ok = (d->file_mode = PB_VALUE(a, Nri__OptionalFileMode, nri__optional_file_mode,
					      from->mode)) != NULL;
	if (ok && from->uid != RP_OWNER_NOT_SET)
		ok = (d->uid = PB_VALUE(a, Nri__OptionalUInt32, nri__optional_uint32, from->uid)) !=
		     NULL;
	if (ok && from->gid != RP_OWNER_NOT_SET)
		ok = (d->gid = PB_VALUE(a, Nri__OptionalUInt32, nri__optional_uint32, from->gid)) !=
		     NULL;
	if (!ok || !t->lnx->devices)
		return -ENOMEM;
	d->path = encode_borrow(from->path);
	d->type = encode_borrow(from->type);
	d->major = from->major;
	d->minor = from->minor;
	t->lnx->devices[t->lnx->n_devices++] = d;
	return 0;
}

static int add_cdi(struct target *t, const struct extra *e)
{
	Nri__CDIDevice *d = PB_NEW(t->arena, Nri__CDIDevice, nri__cdidevice);
	if (!t->adj->cdi_devices)
		t->adj->cdi_devices = arena_array(t->arena, t->n, sizeof(void *));
	if (!d || !t->adj->cdi_devices)
		return -ENOMEM;
	d->name = encode_borrow(e->key);
	t->adj->cdi_devices[t->adj->n_cdi_devices++] = d;
	return 0;
}

/* Names the group only: schemata and monitoring are the controller's. */
static int add_rdt_group(struct target *t, const struct extra *e)
{
	Nri__LinuxRdt *rdt = t->lnx->rdt = PB_NEW(t->arena, Nri__LinuxRdt, nri__linux_rdt);
	if (rdt)
		rdt->clos_id = PB_VALUE(t->arena, Nri__OptionalString, nri__optional_string,
					encode_borrow(e->text));
	return rdt && rdt->clos_id ? 0 : -ENOMEM;
}

static int add_extra(struct target *t, const struct extra *e)
{
	switch (e->field) {
	case EXTRA_MOUNT:
		return add_mount(t, e->mount);
	case EXTRA_DEVICE:
		return add_device(t, e->device);
	case EXTRA_CDI:
		return add_cdi(t, e);
	case RP_F_ENV:
		return add_env(t, e);
	case RP_F_ANNOTATION:
		return add_annotation(t, e);
	case RP_F_UNIFIED:
		return add_unified(t, e);
	case RP_F_HUGEPAGES:
		return add_hugepages(t, e);
	case RP_F_SWAP:
		return add_swap(t, e);
	case RP_F_IO_CLASS:
	case RP_F_IO_PRIORITY:
		return add_io(t, e);
	case RP_F_OOM_SCORE_ADJ:
		return add_oom(t, e);
	case RP_F_RDT_GROUP:
		return add_rdt_group(t, e);
	case RP_F_MEMPOLICY_MODE:
	case RP_F_MEMPOLICY_NODES:
	case RP_F_MEMPOLICY_FLAGS:
		return add_mempolicy(t, e);
	default:
		return add_sched(t, e);
	}
}

static int add_class(struct target *t, const struct blob *class, bool rdt)
{
	if (!class)
		return 0;
	Nri__LinuxResources *res = resources_of(t);
	Nri__OptionalString *value = PB_VALUE(t->arena, Nri__OptionalString, nri__optional_string,
					      encode_borrow(class->data));
	if (!res || !value)
		return -ENOMEM;
	if (rdt)
		res->rdt_class = value;
	else
		res->blockio_class = value;
	return 0;
}

static int add_data_dir(struct target *t)
{
	const struct rp_mount m = {.read_only = 1,
				   .source = t->reply->data_path,
				   .destination = RP_DATA_DIR,
				   .type = "bind",
				   .options = "bind,rslave"};
	return add_mount(t, &m);
}

Nri__ContainerAdjustment *encode_adjustment(struct arena *a, const struct reply *reply,
					    bool *ret_empty)
{
	const struct decision *d = &reply->created->cur;
	static const struct extras none;
	const struct extras *x = reply->extras ? reply->extras : &none;
	struct target t = {.arena = a,
			   .reply = reply,
			   .n = x->n + 1,
			   .adj = PB_NEW(a, Nri__ContainerAdjustment, nri__container_adjustment)};
	const struct blob *rdt = reply->taken & RP_TAKES_RDT_CLASS ? NULL : decision_rdt(d),
			  *blockio = reply->taken & RP_TAKES_BLOCKIO_CLASS ? NULL
									   : decision_blockio(d);
	*ret_empty =
		!reply->created_fields && !x->n && !x->args && !rdt && !blockio && !reply->data_dir;
	if (!t.adj || *ret_empty)
		return t.adj;
	t.lnx = t.adj->lnx =
		PB_NEW(a, Nri__LinuxContainerAdjustment, nri__linux_container_adjustment);
	if (!t.lnx)
		return NULL;
	if (reply->created_fields) {
		const struct values v = ctr_decided(reply->created);
		t.lnx->resources = encode_resources(a, reply->created_fields, &v);
		if (!t.lnx->resources)
			return NULL;
	}
	if (add_class(&t, rdt, true) || add_class(&t, blockio, false))
		return NULL;
	for (uint32_t i = 0; i < x->n; i++)
		if (add_extra(&t, &x->list[i]))
			return NULL;
	if (reply->data_dir && add_data_dir(&t))
		return NULL;
	t.adj->args = (char **)(uintptr_t)x->args;
	t.adj->n_args = x->n_args;
	return t.adj;
}
