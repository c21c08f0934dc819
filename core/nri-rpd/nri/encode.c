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

static void add_cpu(struct arena *a, Nri__LinuxResources *res, uint32_t fields,
		    const struct values *v)
{
	Nri__LinuxCPU *cpu = res->cpu = pb_build(a, &nri__linux_cpu__descriptor);
	if (!cpu)
		return;
	if (fields & DIFF_SHARES)
		PB_SET(a, cpu->shares, nri__optional_uint64, (uint64_t)v->shares);
	if (fields & DIFF_QUOTA)
		PB_SET(a, cpu->quota, nri__optional_int64, v->quota);
	if (fields & DIFF_PERIOD)
		PB_SET(a, cpu->period, nri__optional_uint64, (uint64_t)v->period);
	if (fields & DIFF_CPUS)
		cpu->cpus = encode_borrow(v->cpus->text);
	if (fields & DIFF_MEMS)
		cpu->mems = encode_borrow(v->mems->text);
}

static Nri__LinuxResources *encode_resources(struct arena *a, uint32_t fields,
					     const struct values *v)
{
	Nri__LinuxResources *res = pb_build(a, &nri__linux_resources__descriptor);
	if (res && (fields & ~DIFF_MEM_LIMIT))
		add_cpu(a, res, fields, v);
	if (res && (fields & DIFF_MEM_LIMIT) && PB_PART(a, res->memory, nri__linux_memory))
		PB_SET(a, res->memory->limit, nri__optional_int64, v->mem_limit);
	return res;
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
	Nri__ContainerUpdate *u = pb_build(a, &nri__container_update__descriptor);
	if (!u)
		return NULL;
	u->container_id = encode_borrow(id);
	u->ignore_failure = ignore_failure;
	if (is_same(said, fields, v)) {
		u->lnx = said->lnx;
		return u;
	}
	if (PB_PART(a, u->lnx, nri__linux_container_update))
		u->lnx->resources = encode_resources(a, fields, v);
	*said = (struct said){fields, v->cpus, v->mems, u->lnx};
	return u;
}

Nri__ContainerUpdate **encode_updates(struct arena *a, const struct update *updates, uint32_t n,
				      bool ignore_failure)
{
	Nri__ContainerUpdate **list = arena_array(a, n + 1, sizeof(void *));
	struct said said = {0};
	for (uint32_t i = 0; list && i < n; i++)
		list[i] = encode_update(a, updates[i].ctr->id, updates[i].fields,
					&updates[i].values, ignore_failure, &said);
	return arena_failed(a) ? NULL : list;
}

/* ---- creation-only values -------------------------------------------------------------------- */

struct target {
	struct arena *arena;
	Nri__ContainerAdjustment *adj;
	Nri__LinuxContainerAdjustment *lnx;
};

/* Appends the key and the text of a value to a list of `to`. */
#define ADD_PAIR(t, to, member, prefix, e)                                                         \
	do {                                                                                       \
		__typeof__(*(to)->member) kv_ = PB_ADD((t)->arena, to, member, prefix);            \
		if (kv_) {                                                                         \
			kv_->key = encode_borrow((e)->key);                                        \
			kv_->value = encode_borrow((e)->text);                                     \
		}                                                                                  \
	} while (0)

/* Returns the resources of the message, allocated on first use. NULL: out of memory. */
static Nri__LinuxResources *resources_of(struct target *t)
{
	return PB_PART(t->arena, t->lnx->resources, nri__linux_resources);
}

static void add_swap(struct target *t, const struct extra *e)
{
	Nri__LinuxResources *res = resources_of(t);
	if (res && PB_PART(t->arena, res->memory, nri__linux_memory))
		PB_SET(t->arena, res->memory->swap, nri__optional_int64, e->number);
}

static void add_hugepages(struct target *t, const struct extra *e)
{
	Nri__LinuxResources *res = resources_of(t);
	Nri__HugepageLimit *limit =
		res ? PB_ADD(t->arena, res, hugepage_limits, nri__hugepage_limit) : NULL;
	if (!limit)
		return;
	limit->page_size = encode_borrow(e->key);
	limit->limit = strtoull(e->text, NULL, 10);
}

static void add_unified(struct target *t, const struct extra *e)
{
	Nri__LinuxResources *res = resources_of(t);
	if (res)
		ADD_PAIR(t, res, unified, nri__linux_resources__unified_entry, e);
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

static void add_sched_flags(struct target *t, Nri__LinuxScheduler *s, int64_t bits)
{
	s->flags = arena_array(t->arena, SCHED_FLAGS, sizeof *s->flags);
	for (unsigned bit = 0; s->flags && bit < SCHED_FLAGS; bit++)
		if (bits >> bit & 1)
			s->flags[s->n_flags++] = (Nri__LinuxSchedulerFlag)bit;
}

static void add_sched(struct target *t, const struct extra *e)
{
	Nri__LinuxScheduler *s = PB_PART(t->arena, t->lnx->scheduler, nri__linux_scheduler);
	if (!s)
		return;
	switch (e->field) {
	case RP_F_SCHED_POLICY:
		s->policy = sched_policy(e->number);
		break;
	case RP_F_SCHED_PRIORITY:
		s->priority = (int32_t)e->number;
		break;
	case RP_F_NICE:
		s->nice = (int32_t)e->number;
		break;
	case RP_F_SCHED_RUNTIME:
		s->runtime = (uint64_t)e->number;
		break;
	case RP_F_SCHED_DEADLINE:
		s->deadline = (uint64_t)e->number;
		break;
	case RP_F_SCHED_PERIOD:
		s->period = (uint64_t)e->number;
		break;
	default:
		add_sched_flags(t, s, e->number);
	}
}

static void add_io(struct target *t, const struct extra *e)
{
	Nri__LinuxIOPriority *io = PB_PART(t->arena, t->lnx->io_priority, nri__linux_iopriority);
	if (io && e->field == RP_F_IO_CLASS)
		io->class_ = (Nri__IOPrioClass)e->number;
	else if (io)
		io->priority = (int32_t)e->number;
}

static void add_mempolicy_flags(struct target *t, Nri__LinuxMemoryPolicy *m, const char *text)
{
	static const char *const names[] = {"static", "relative", "numa-balancing"};
	m->flags = arena_array(t->arena, 3, sizeof *m->flags);
	for (unsigned i = 0; m->flags && i < 3; i++)
		if (strstr(text, names[i]))
			m->flags[m->n_flags++] = (Nri__MpolFlag)i;
}

static void add_mempolicy(struct target *t, const struct extra *e)
{
	Nri__LinuxMemoryPolicy *m =
		PB_PART(t->arena, t->lnx->memory_policy, nri__linux_memory_policy);
	if (!m)
		return;
	if (e->field == RP_F_MEMPOLICY_MODE)
		m->mode = (Nri__MpolMode)e->number;
	else if (e->field == RP_F_MEMPOLICY_NODES)
		m->nodes = encode_borrow(e->text);
	else
		add_mempolicy_flags(t, m, e->text);
}

static void add_option(struct target *t, Nri__Mount *m, char *option)
{
	(void)pb_build_item(t->arena, option, &m->options, &m->n_options);
}

/* Adds a mount. Its options are a comma-separated list, followed by whether it is read-only. */
static void add_mount(struct target *t, const struct rp_mount *from)
{
	Nri__Mount *m = PB_ADD(t->arena, t->adj, mounts, nri__mount);
	if (!m)
		return;
	m->destination = encode_borrow(from->destination);
	m->type = encode_borrow(from->type);
	m->source = encode_borrow(from->source);
	for (const char *at = from->options; *at;) {
		size_t len = strcspn(at, ",");
		add_option(t, m, arena_strndup(t->arena, at, len));
		at += len + (at[len] == ',');
	}
	add_option(t, m, encode_borrow(from->read_only ? "ro" : "rw"));
}

static void add_device(struct target *t, const struct rp_device *from)
{
	Nri__LinuxDevice *d = PB_ADD(t->arena, t->lnx, devices, nri__linux_device);
	if (!d)
		return;
	if (from->mode)
		PB_SET(t->arena, d->file_mode, nri__optional_file_mode, from->mode);
	if (from->uid != RP_OWNER_NOT_SET)
		PB_SET(t->arena, d->uid, nri__optional_uint32, from->uid);
	if (from->gid != RP_OWNER_NOT_SET)
		PB_SET(t->arena, d->gid, nri__optional_uint32, from->gid);
	d->path = encode_borrow(from->path);
	d->type = encode_borrow(from->type);
	d->major = from->major;
	d->minor = from->minor;
}

static void add_cdi(struct target *t, const struct extra *e)
{
	Nri__CDIDevice *d = PB_ADD(t->arena, t->adj, cdi_devices, nri__cdidevice);
	if (d)
		d->name = encode_borrow(e->key);
}

/* Names the group only: schemata and monitoring are the controller's. */
static void add_rdt_group(struct target *t, const struct extra *e)
{
	if (PB_PART(t->arena, t->lnx->rdt, nri__linux_rdt))
		PB_SET(t->arena, t->lnx->rdt->clos_id, nri__optional_string,
		       encode_borrow(e->text));
}

static void add_extra(struct target *t, const struct extra *e)
{
	switch (e->field) {
	case EXTRA_MOUNT:
		add_mount(t, e->mount);
		break;
	case EXTRA_DEVICE:
		add_device(t, e->device);
		break;
	case EXTRA_CDI:
		add_cdi(t, e);
		break;
	case RP_F_ENV:
		ADD_PAIR(t, t->adj, env, nri__key_value, e);
		break;
	case RP_F_ANNOTATION:
		ADD_PAIR(t, t->adj, annotations, nri__container_adjustment__annotations_entry, e);
		break;
	case RP_F_UNIFIED:
		add_unified(t, e);
		break;
	case RP_F_HUGEPAGES:
		add_hugepages(t, e);
		break;
	case RP_F_SWAP:
		add_swap(t, e);
		break;
	case RP_F_IO_CLASS:
	case RP_F_IO_PRIORITY:
		add_io(t, e);
		break;
	case RP_F_OOM_SCORE_ADJ:
		PB_SET(t->arena, t->lnx->oom_score_adj, nri__optional_int, e->number);
		break;
	case RP_F_RDT_GROUP:
		add_rdt_group(t, e);
		break;
	case RP_F_MEMPOLICY_MODE:
	case RP_F_MEMPOLICY_NODES:
	case RP_F_MEMPOLICY_FLAGS:
		add_mempolicy(t, e);
		break;
	default:
		add_sched(t, e);
	}
}

static void add_classes(struct target *t, const struct blob *rdt, const struct blob *blockio)
{
	Nri__LinuxResources *res = rdt || blockio ? resources_of(t) : NULL;
	if (res && rdt)
		PB_SET(t->arena, res->rdt_class, nri__optional_string, encode_borrow(rdt->data));
	if (res && blockio)
		PB_SET(t->arena, res->blockio_class, nri__optional_string,
		       encode_borrow(blockio->data));
}

static void add_data_dir(struct target *t, const char *source)
{
	const struct rp_mount m = {.read_only = 1,
				   .source = source,
				   .destination = RP_DATA_DIR,
				   .type = "bind",
				   .options = "bind,rslave"};
	add_mount(t, &m);
}

Nri__ContainerAdjustment *encode_adjustment(struct arena *a, const struct reply *reply,
					    bool *ret_empty)
{
	const struct decision *d = &reply->created->cur;
	static const struct extras none;
	const struct extras *x = reply->extras ? reply->extras : &none;
	struct target t = {.arena = a};
	const struct blob *rdt = reply->taken & RP_TAKES_RDT_CLASS ? NULL : decision_rdt(d),
			  *blockio = reply->taken & RP_TAKES_BLOCKIO_CLASS ? NULL
									   : decision_blockio(d);
	t.adj = pb_build(a, &nri__container_adjustment__descriptor);
	*ret_empty =
		!reply->created_fields && !x->n && !x->args && !rdt && !blockio && !reply->data_dir;
	if (!t.adj || *ret_empty)
		return t.adj;
	t.lnx = PB_PART(a, t.adj->lnx, nri__linux_container_adjustment);
	if (!t.lnx)
		return NULL;
	if (reply->created_fields) {
		const struct values v = ctr_decided(reply->created);
		t.lnx->resources = encode_resources(a, reply->created_fields, &v);
	}
	add_classes(&t, rdt, blockio);
	for (uint32_t i = 0; i < x->n; i++)
		add_extra(&t, &x->list[i]);
	if (reply->data_dir)
		add_data_dir(&t, reply->data_path);
	t.adj->args = (char **)(uintptr_t)x->args;
	t.adj->n_args = x->n_args;
	return arena_failed(a) ? NULL : t.adj;
}
