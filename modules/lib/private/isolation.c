/* SPDX-License-Identifier: Apache-2.0 */
/* Isolation of exclusive CPUs: the keys, the CPU quota, and the wanted state for the worker
 * (isolation_files.c). */
#include "modules/lib/private/isolation.h"

#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/irq.h"
#include "modules/lib/private/isolation_files.h"

#define CGROUP "/sys/fs/cgroup/"

/* ---- keys ------------------------------------------------------------------------------------ */

static bool isolation_has(const struct modhost *h, const char *path)
{
	char text[256];
	int32_t r = h->work ? h->work->read_file(h->ctx, path, text, sizeof text) : 0;
	return r >= 0 || r == -RP_E2BIG;
}

static bool isolation_is(const struct modhost *h, rp_cfg section, const char *path,
			 const char *word)
{
	return strcmp(section_text(h, section, path, ""), word) == 0;
}

static int32_t isolation_read_slices(const struct modhost *h, rp_cfg section,
				     struct isolation_keys *k)
{
	rp_cfg list = section_get(h, section, "isolation.hostSlices"), item;
	if (!list) {
		(void)strcpy(k->slices[0], "system.slice");
		(void)strcpy(k->slices[1], "user.slice");
		k->n_slices = 2;
		return 0;
	}
	for (uint32_t i = 0; (item = h->config->item(h->ctx, list, i)); i++) {
		const char *name = h->config->text(h->ctx, item, "");
		size_t len = strlen(name);
		if (i == ISOLATION_SLICES_MAX)
			return modhost_refuse(h, item, "more than %u cgroups",
					      ISOLATION_SLICES_MAX);
		if (!len || len >= ISOLATION_SLICE_MAX || *name == '.' || strchr(name, '/') ||
		    strncmp(name, "kubepods", 8) == 0)
			return modhost_refuse(h, item,
					      "\"%.64s\" is no cgroup of the host below the root: "
					      "expected a name such as system.slice",
					      name);
		memcpy(k->slices[k->n_slices++], name, len + 1);
	}
	return 0;
}

static int32_t isolation_check(const struct modhost *h, rp_cfg section,
			       const struct isolation_keys *k)
{
	static const char *const keys[] = {"isolation.hostTasks", "isolation.partition",
					   "isolation.bestEffort"};
	const bool wanted[] = {k->host_away, k->partition, k->idle};
	bool v2 = isolation_has(h, CGROUP "cgroup.controllers");
	for (uint32_t i = 0; i < 3; i++)
		if (wanted[i] && !v2)
			return modhost_fail_at(h, section_get(h, section, keys[i]), -RP_ENOTSUP,
					       "needs cgroup v2, which this node does not have");
	if (k->partition && !isolation_has(h, CGROUP "cpuset.cpus.isolated"))
		return modhost_fail_at(h, section_get(h, section, keys[1]), -RP_ENOTSUP,
				       "the kernel of this node has no partitions below cgroups of "
				       "other programs (" CGROUP "cpuset.cpus.isolated): Linux 6.8 "
				       "or later is needed");
	return 0;
}

/* Calls `each` for the CPUs of each core with at least `threads` CPUs. Returns the largest number
 * of CPUs of a core. */
static uint32_t isolation_each_core(const struct modhost *h, uint32_t threads,
				    void (*each)(struct rp_ids core, void *arg), void *arg)
{
	uint32_t n = h->topology->n_units(h->ctx, RP_LEVEL_CORE), most = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		if (h->topology->unit(h->ctx, RP_LEVEL_CORE, i, &unit))
			continue;
		uint32_t count = rp_ids_count(unit.cpus);
		if (each && count >= threads)
			each(unit.cpus, arg);
		most = count > most ? count : most;
	}
	return most;
}

struct narrowing {
	struct rp_ids from;
	struct rp_idset whole;
};

static void isolation_narrow_core(struct rp_ids core, void *arg)
{
	struct narrowing *n = arg;
	if (rp_ids_subset(core, n->from))
		rp_idset_or(&n->whole, rp_ids_of(&n->whole), core);
}

void isolation_narrow(const struct modhost *h, const struct isolation_keys *k,
		      struct rp_idset *cpus)
{
	struct narrowing n = {.from = rp_ids_of(cpus)};
	if (k->threads < 2)
		return;
	(void)isolation_each_core(h, k->threads, isolation_narrow_core, &n);
	rp_idset_copy(cpus, rp_ids_of(&n.whole));
}

bool isolation_permits(const struct modhost *h, const struct isolation_keys *k, struct rp_ids cpus)
{
	struct rp_idset whole;
	rp_idset_copy(&whole, cpus);
	isolation_narrow(h, k, &whole);
	return rp_ids_equal(rp_ids_of(&whole), cpus);
}

int32_t isolation_check_number(const struct modhost *h, const struct isolation_keys *k,
			       const char *whose, int64_t n)
{
	if (n == isolation_cores(k, n))
		return 0;
	return modhost_fail(h, -RP_ENOSPC,
			    "%s%lld CPUs are not whole cores of %u CPUs, and isolation.siblings is "
			    "own: request a multiple of %u CPUs",
			    whose, (long long)n, k->threads, k->threads);
}

int32_t isolation_check_named(const struct modhost *h, const struct isolation_keys *k,
			      const char *annotation, struct rp_ids cpus)
{
	if (isolation_permits(h, k, cpus))
		return 0;
	return modhost_fail(h, -RP_EINVAL,
			    "annotation %s: names parts of cores, and isolation.siblings is own: "
			    "name all CPUs of each core",
			    annotation);
}

int32_t isolation_read(const struct modhost *h, rp_cfg section, struct isolation_keys *ret)
{
	struct isolation_keys k = {
		.no_quota = !section_bool(h, section, "isolation.quota", true),
		.host_away = isolation_is(h, section, "isolation.hostTasks", "away"),
		.partition = isolation_is(h, section, "isolation.partition", "isolated"),
		.kernel_away = isolation_is(h, section, "isolation.kernelWork", "away"),
		.idle = isolation_is(h, section, "isolation.bestEffort", "idle"),
	};
	int32_t r = isolation_read_slices(h, section, &k);
	if (!r)
		r = isolation_check(h, section, &k);
	if (isolation_is(h, section, "isolation.siblings", "own"))
		k.threads = isolation_each_core(h, 0, NULL, NULL);
	if (!r)
		*ret = k;
	return r;
}

/* ---- state ----------------------------------------------------------------------------------- */

struct isolation {
	struct isolation_files *files;
	struct irq *irq; /* affinity of interrupts; NULL: not used */
	struct rp_idset away; /* CPUs that interrupts leave */
	struct rp_idset told; /* `away` at the last isolation_interrupts() */
	struct ctr_list list;
	bool lifted; /* quotas of containers may have been lifted */
	bool used; /* files of cgroups may have been written */
};

static struct life *isolation_life(struct rp_instance *inst)
{
	return (struct life *)inst;
}

static const struct isolation_keys *isolation_keys_of(struct rp_instance *inst)
{
	static const struct isolation_keys off = {0};
	const struct life *l = isolation_life(inst);
	const void *keys = l->plan ? (const char *)l->plan + l->ops->isolation : NULL;
	return keys ? keys : &off;
}

/* Returns the state, which exists as soon as a key is on; NULL: none, or no memory. */
static struct isolation *isolation_state(struct rp_instance *inst, bool make)
{
	struct life *l = isolation_life(inst);
	if (!l->part && make)
		l->part = calloc(1, sizeof(struct isolation));
	return l->part;
}

/* Describes a container. False: the container is ending and is no longer counted. */
static bool isolation_look(struct rp_instance *inst, rp_ctr ctr, struct rp_ctr_info *ret)
{
	const struct life *l = isolation_life(inst);
	return ctr != l->leaving && ctr_info(&l->h, ctr, ret) == 0 &&
	       ret->state <= RP_STATE_RUNNING;
}

/* ---- CPU quota ------------------------------------------------------------------------------- */

/* Returns true if the container's CPUs alone bound its usage by its limit. */
static bool isolation_owns_all(const struct rp_ctr_info *info)
{
	return !rp_ids_empty(info->exclusive) && rp_ids_equal(info->cpus, info->exclusive) &&
	       (int64_t)rp_ids_count(info->cpus) * 1000 <= info->cpu_limit;
}

/* Lifts or restores the quota of a container that has one. */
static int32_t isolation_stage_quota(struct rp_instance *inst, rp_txn txn,
				     const struct isolation_keys *k, const struct rp_ctr_info *info)
{
	const struct modhost *h = &isolation_life(inst)->h;
	bool follows = k->follows && !rp_ids_empty(info->exclusive) && k->follows(inst, info),
	     lift = follows || (k->no_quota && isolation_owns_all(info));
	if (info->asked_quota <= 0 || lift == (info->quota == -1))
		return 0;
	int32_t r =
		lift ? 0
		     : h->cache->set_int(h->ctx, txn, info->ctr, RP_F_PERIOD, info->asked_period);
	if (!r)
		r = h->cache->set_int(h->ctx, txn, info->ctr, RP_F_QUOTA,
				      lift ? -1 : info->asked_quota);
	return r == -RP_EBUSY ? 0 : r; /* the quota is another module's */
}

static int32_t isolation_stage(struct rp_instance *inst, rp_txn txn, bool all)
{
	const struct modhost *h = &isolation_life(inst)->h;
	const struct isolation_keys *k = isolation_keys_of(inst);
	bool lifts = k->no_quota || k->follows;
	struct isolation *s = isolation_state(inst, lifts);
	struct ctr_list own = {0}, *list = s ? &s->list : &own;
	int32_t r = 0;
	if (k->own_quota)
		return 0;
	/* A sync also restores quotas that an earlier process lifted. */
	if (!lifts && !(s && s->lifted) && !all)
		return 0;
	int32_t n = ctr_list(h, list, RP_ORDER_CREATED);
	for (int32_t i = 0; i < n && !r; i++) {
		struct rp_ctr_info info;
		if (isolation_look(inst, list->ctrs[i], &info))
			r = isolation_stage_quota(inst, txn, k, &info);
	}
	if (s)
		s->lifted = lifts;
	ctr_list_free(&own);
	return n < 0 ? n : r;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Adds the needs of one container to the order. Returns 0 or -RP_ENOMEM. */
static int32_t isolation_add(const struct modhost *h, const struct isolation_keys *k,
			     const struct rp_ctr_info *info, struct isolation_order *o)
{
	char ref[RP_CGROUP_REF_MAX];
	bool own = !rp_ids_empty(info->exclusive),
	     part = k->partition && own && rp_ids_equal(info->cpus, info->exclusive),
	     idle = k->idle && info->qos == RP_QOS_BEST_EFFORT;
	if (own)
		rp_idset_or(&o->exclusive, rp_ids_of(&o->exclusive), info->exclusive);
	if ((!part && !idle) || info->state != RP_STATE_RUNNING ||
	    h->work->cgroup_ref(h->ctx, info->ctr, ref, sizeof ref) < 0)
		return 0;
	return isolation_order_add(o, ref, part ? info->cpus : rp_ids_none());
}

static void isolation_commit_irq(struct rp_instance *inst, struct isolation *s)
{
	const struct life *l = isolation_life(inst);
	struct rp_idset online;
	bool active = !rp_ids_empty(rp_ids_of(&s->away));
	if (l->ops->own_interrupts || (!s->irq && !active))
		return;
	modhost_set(&l->h, RP_CPUS_ONLINE, &online);
	struct irq_rules *r = irq_rules_new(active, rp_ids_of(&online));
	if (r)
		rp_idset_copy(&r->isolate, rp_ids_of(&s->away));
	irq_commit(&s->irq, &l->h, r);
}

static void isolation_done(struct rp_instance *inst)
{
	const struct modhost *h = &isolation_life(inst)->h;
	const struct isolation_keys *k = isolation_keys_of(inst);
	bool wanted = k->host_away || k->partition || k->kernel_away || k->idle;
	struct isolation *s = isolation_state(inst, wanted);
	int32_t r = 0;
	if (!s || (!wanted && !s->used) || !h->work)
		return;
	struct isolation_order *o = isolation_order_new(k);
	int32_t n = o ? ctr_list(h, &s->list, RP_ORDER_CREATED) : -RP_ENOMEM;
	for (int32_t i = 0; i < n && !r; i++) {
		struct rp_ctr_info info;
		if (isolation_look(inst, s->list.ctrs[i], &info))
			r = isolation_add(h, k, &info, o);
	}
	if (!s->files)
		s->files = isolation_files_new(h);
	if (n < 0 || r || !s->files) {
		isolation_order_free(o);
		(void)modhost_no_memory(h);
		return;
	}
	s->used = true;
	rp_idset_clear(&s->away);
	if (k->kernel_away)
		rp_idset_copy(&s->away, rp_ids_of(&o->exclusive));
	modhost_set(h, RP_CPUS_ONLINE, &o->online);
	isolation_commit(s->files, o);
	isolation_commit_irq(inst, s);
}

bool isolation_interrupts(struct rp_instance *inst, struct rp_idset *ret)
{
	struct isolation *s = isolation_state(inst, false);
	rp_idset_clear(ret);
	if (!s)
		return false;
	bool changed = !rp_ids_equal(rp_ids_of(&s->away), rp_ids_of(&s->told));
	rp_idset_copy(ret, rp_ids_of(&s->away));
	s->told = s->away;
	return changed;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void isolation_stop(struct rp_instance *inst)
{
	static const struct isolation_keys off = {0};
	struct isolation *s = isolation_state(inst, false);
	struct isolation_order *o = s && s->files ? isolation_order_new(&off) : NULL;
	if (o)
		isolation_commit(s->files, o);
	if (s)
		irq_stop(s->irq);
}

static void isolation_fini(struct rp_instance *inst)
{
	struct isolation *s = isolation_state(inst, false);
	if (!s)
		return;
	isolation_files_free(s->files);
	irq_free(s->irq);
	ctr_list_free(&s->list);
	free(s);
}

const struct life_part isolation_part = {
	.stage = isolation_stage,
	.done = isolation_done,
	.stop = isolation_stop,
	.fini = isolation_fini,
};
