/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

/* ---- any message ----------------------------------------------------------------------------- */

static const void *check_member(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (const char *)m + f->offset;
}

static bool text_valid(const char *s)
{
	return !s || utf8_valid(s, strlen(s));
}

static bool message_valid(const ProtobufCMessage *m);

static bool field_valid(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	bool text = f->type == PROTOBUF_C_TYPE_STRING;
	if (!text && f->type != PROTOBUF_C_TYPE_MESSAGE)
		return true;
	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		const void *one = *(void *const *)check_member(m, f);
		return !one || (text ? text_valid(one) : message_valid(one));
	}
	size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
	void *const *list = *(void *const *const *)check_member(m, f);
	for (size_t i = 0; i < n; i++)
		if (!(text ? text_valid(list[i]) : message_valid(list[i])))
			return false;
	return true;
}

static bool message_valid(const ProtobufCMessage *m)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++)
		if (!field_valid(m, &m->descriptor->fields[i]))
			return false;
	return true;
}

int check_message(struct sim *s, const ProtobufCMessage *m, const char *what)
{
	if (m->n_unknown_fields)
		sim_problem(s, "%s: a field unknown to NRI", what);
	if (message_valid(m))
		return 0;
	sim_problem(s, "%s: text that is not UTF-8: the whole message is lost", what);
	return -EINVAL;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static int check_twice(struct sim *s, const char *what, const char *key, struct err *err)
{
	sim_problem(s, "%s \"%s\" is set twice in one reply", what, key);
	return err_set(err, -EINVAL, "plugins of the same name both tried to set %s \"%s\"", what,
		       key);
}

/* Fails if two elements of a list have the same key. The removal "-KEY" differs from "KEY". */
#define CHECK_KEYS(s, list, n, member, what, err)                                                  \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (n); i_++)                                                \
			for (size_t k_ = 0; k_ < i_; k_++)                                         \
				if (str_eq((list)[i_]->member, (list)[k_]->member))                \
					return check_twice((s), (what), (list)[i_]->member,        \
							   (err));                                 \
	} while (0)

int check_adjustment(struct sim *s, const Nri__ContainerAdjustment *m, struct err *err)
{
	CHECK_KEYS(s, m->annotations, m->n_annotations, key, "annotation", err);
	CHECK_KEYS(s, m->env, m->n_env, key, "env", err);
	CHECK_KEYS(s, m->mounts, m->n_mounts, destination, "mount", err);
	CHECK_KEYS(s, m->rlimits, m->n_rlimits, type, "rlimit", err);
	CHECK_KEYS(s, m->cdi_devices, m->n_cdi_devices, name, "CDI device", err);
	const Nri__LinuxContainerAdjustment *l = m->lnx;
	if (!l)
		return 0;
	CHECK_KEYS(s, l->devices, l->n_devices, path, "device", err);
	CHECK_KEYS(s, l->sysctl, l->n_sysctl, key, "sysctl", err);
	const Nri__LinuxResources *r = l->resources;
	if (!r)
		return 0;
	CHECK_KEYS(s, r->unified, r->n_unified, key, "unified", err);
	CHECK_KEYS(s, r->hugepage_limits, r->n_hugepage_limits, page_size, "hugepage limit", err);
	return 0;
}

static const Nri__LinuxCPU no_cpu = NRI__LINUX_CPU__INIT;

static const Nri__LinuxCPU *cpu_of(const Nri__ContainerUpdate *u)
{
	return u->lnx && u->lnx->resources && u->lnx->resources->cpu ? u->lnx->resources->cpu
								     : &no_cpu;
}

static bool sets_limit(const Nri__ContainerUpdate *u)
{
	return u->lnx && u->lnx->resources && u->lnx->resources->memory &&
	       u->lnx->resources->memory->limit;
}

static const char *claimed_by_both(const Nri__ContainerUpdate *a, const Nri__ContainerUpdate *b)
{
	const Nri__LinuxCPU *ca = cpu_of(a), *cb = cpu_of(b);
	if (*ca->cpus && *cb->cpus)
		return "CPUs of";
	if (*ca->mems && *cb->mems)
		return "memory nodes of";
	if (ca->shares && cb->shares)
		return "CPU shares of";
	if (ca->quota && cb->quota)
		return "CPU quota of";
	if (ca->period && cb->period)
		return "CPU period of";
	return sets_limit(a) && sets_limit(b) ? "memory limit of" : NULL;
}

struct by_id {
	const char *id;
	size_t at;
};

static int compare_ids(const void *pa, const void *pb)
{
	const struct by_id *a = pa, *b = pb;
	int r = strcmp(a->id, b->id);
	return r ? r : a->at < b->at ? -1 : 1;
}

int check_claims(struct sim *s, Nri__ContainerUpdate *const *list, size_t n, struct err *err)
{
	_free_ struct by_id *sorted = calloc(n + 1, sizeof *sorted);
	if (!sorted)
		return err_errno(err, -ENOMEM, "updates");
	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct by_id){list[i]->container_id, i};
	qsort(sorted, n, sizeof *sorted, compare_ids);
	for (size_t i = 1; i < n; i++) {
		if (!str_eq(sorted[i].id, sorted[i - 1].id))
			continue;
		const char *field = claimed_by_both(list[sorted[i - 1].at], list[sorted[i].at]);
		if (field)
			return check_twice(s, field, sorted[i].id, err);
		sim_problem(s, "two updates of container %s in one message", sorted[i].id);
	}
	return 0;
}

/* ---- requested values ------------------------------------------------------------------------ */

static int check_set(const char *text, uint32_t max, struct rp_ids allowed, const char *what,
		     const char *lack, struct err *err)
{
	struct rp_idset set;
	if (!*text)
		return 0;
	if (rp_idset_parse(&set, text, max))
		return err_set(err, -EINVAL, "%s \"%s\": not a list", what, text);
	if (rp_ids_empty(rp_ids_of(&set)))
		return err_set(err, -EINVAL, "%s \"%s\": empty", what, text);
	if (!rp_ids_subset(rp_ids_of(&set), allowed))
		return err_set(err, -EINVAL, "%s %s: some %s", what, text, lack);
	return 0;
}

int check_sets(const struct sim *s, const char *cpus, const char *mems, struct err *err)
{
	int r = check_set(cpus, RP_CPUS_MAX, topo_ids(s->topo, RP_CPUS_ONLINE), "CPUs",
			  "are not online", err);
	if (r)
		return r;
	return check_set(mems, RP_NODES_MAX, sim_memory(s), "memory nodes", "have no memory", err);
}

void check_ignored(struct sim *s, const Nri__LinuxResources *m, bool update, const char *whose)
{
	const Nri__LinuxMemory *mem = m->memory;
	if (mem && (mem->reservation || mem->swap || mem->kernel || mem->kernel_tcp ||
		    mem->swappiness || mem->disable_oom_killer || mem->use_hierarchy))
		sim_problem(s, "%s: a memory setting that runtimes ignore", whose);
	if (update && (m->rdt_class || m->blockio_class))
		sim_problem(s, "%s: runtimes ignore classes in updates", whose);
	if (update && m->pids)
		sim_problem(s, "%s: runtimes ignore pids in updates", whose);
}
