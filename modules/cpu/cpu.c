/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.so: frequencies, governor and idle states of the CPUs on which containers run, by the CPU
 * class of the container.
 *
 * A CPU has the class of the container that owns it exclusively, else that of the oldest container
 * with a class that may run on it. cpuclass.h applies classes; this module determines
 * the class of each CPU, and reports to containers whose CPUs could not be written. Containers
 * without a class cost a look-up.
 */
#include <nri-rp/lib/section.h>
#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/ctl_table.h"

#define CLASS_KEY "cpuclass.resource-policy.nri.io"

struct rp_plan {
	CTL_PLAN;
	struct cpuclass_defs defs;
};

struct rp_instance {
	CTL_LIFE; /* base; its table has the containers with a class */
	struct cpuclass *classes;
	struct rp_idset taken, shared; /* scratch of give_out() */
	uint32_t n_failing; /* containers that are stale: not all of their CPUs have their class */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t read_old_class(const struct modhost *h, rp_cfg list, uint32_t i,
			      struct cpuclass_defs *defs)
{
	rp_cfg node = h->config->item(h->ctx, list, i);
	const char *name = h->config->key(h->ctx, list, i);
	if (cpuclass_find(defs, name) != CPUCLASS_NONE)
		return modhost_refuse(h, node, "two CPU classes are named \"%s\"", name);
	if (defs->n == CPUCLASS_MAX)
		return modhost_refuse(h, node, "more than %u CPU classes", CPUCLASS_MAX);
	return cpuclass_read_one(h, node, name, &defs->list[defs->n++]);
}

static int32_t cpu_plan(struct rp_instance *inst, rp_cfg cfg, struct rp_plan *p)
{
	const struct modhost *h = &inst->h;
	rp_cfg old = section_get(h, cfg, "classes");
	int32_t r = cpuclass_read(h, cfg, &p->defs);
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, old); i++)
		r = read_old_class(h, old, i, &p->defs);
	return r;
}

/* ---- assignment of classes ------------------------------------------------------------------- */

static const struct ctl_entry *class_entry(const struct rp_instance *inst, rp_ctr ctr)
{
	return ctl_table_find(inst->table, ctr);
}

/* Assigns CPUs to a class, except those that already have one in this round. Exclusive CPUs are
 * assigned before shared CPUs. */
static void cpu_give(struct rp_instance *inst, uint32_t class, struct rp_ids cpus)
{
	rp_idset_andnot(&inst->shared, cpus, rp_ids_of(&inst->taken));
	cpuclass_use(inst->classes, class, rp_ids_of(&inst->shared));
	rp_idset_or(&inst->taken, rp_ids_of(&inst->taken), rp_ids_of(&inst->shared));
}

struct round {
	struct rp_instance *inst;
	bool exclusive;
};

static void give_to(void *arg, rp_ctr ctr)
{
	const struct round *round = arg;
	struct rp_instance *inst = round->inst;
	const struct ctl_entry *e = class_entry(inst, ctr);
	struct rp_ctr_info info = {.size = sizeof info};
	if (!e || inst->h.cache->get_ctr(inst->h.ctx, ctr, &info))
		return;
	uint32_t class = cpuclass_find(&inst->plan->defs, e->class);
	if (class != CPUCLASS_NONE)
		cpu_give(inst, class, round->exclusive ? info.exclusive : info.cpus);
}

/* Assigns classes to all CPUs; cpuclass writes only differences. */
static void give_out(struct rp_instance *inst)
{
	struct round round = {inst, true};
	struct rp_idset online;
	rp_idset_clear(&inst->taken);
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	cpuclass_use(inst->classes, CPUCLASS_NONE, rp_ids_of(&online));
	int32_t r = ctl_each_container(&inst->h, give_to, &round);
	round.exclusive = false;
	if (!r)
		r = ctl_each_container(&inst->h, give_to, &round);
	if (r)
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: CPUs lose their classes");
	cpuclass_commit(inst->classes);
}

/* ---- results --------------------------------------------------------------------------------- */

/* Counts the container's CPUs that have its class, and those of them that failed. */
static void count_cpus(const struct rp_instance *inst, const struct rp_ctr_info *info,
		       uint32_t class, uint32_t *ret_n, uint32_t *ret_failing)
{
	*ret_n = *ret_failing = 0;
	RP_IDS_EACH (cpu, info->cpus) {
		if (cpuclass_of(inst->classes, cpu) != class)
			continue;
		++*ret_n;
		*ret_failing += cpuclass_fails(inst->classes, cpu);
	}
}

static void cpu_tell(void *arg, rp_ctr ctr)
{
	struct rp_instance *inst = arg;
	const struct modhost *h = &inst->h;
	struct ctl_entry *e = ctl_table_find(inst->table, ctr);
	struct rp_ctr_info info = {.size = sizeof info};
	uint32_t n, n_failing;
	if (!e || h->cache->get_ctr(h->ctx, ctr, &info))
		return;
	count_cpus(inst, &info, cpuclass_find(&inst->plan->defs, e->class), &n, &n_failing);
	if (n_failing)
		h->work->report(h->ctx, ctr, n_failing < n ? RP_APPLY_PARTIAL : RP_APPLY_FAILED,
				cpuclass_why(inst->classes));
	else if (e->stale)
		h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
	e->stale = n_failing > 0;
	inst->n_failing += n_failing > 0;
}

/* Reports results after the worker has finished a commit. */
static void tell_all(void *arg)
{
	struct rp_instance *inst = arg;
	if (!inst->plan || (!inst->n_failing && !cpuclass_n_failing(inst->classes)))
		return;
	inst->n_failing = 0;
	if (ctl_each_container(&inst->h, cpu_tell, inst))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "out of memory: results are not reported");
}

static void cpu_timer(struct rp_instance *inst, uint64_t cookie)
{
	cpuclass_timer(inst->classes, cookie);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Determines the class of a container. Returns true if it has changed. */
static bool take_class(struct rp_instance *inst, rp_ctr ctr)
{
	const struct modhost *h = &inst->h;
	const char *source;
	const char *class = ctl_class_of(h, ctr, RP_F_CPU_CLASS, CLASS_KEY, &source);
	bool none = !class || !*class;
	bool unknown = !none && cpuclass_find(&inst->plan->defs, class) == CPUCLASS_NONE;
	if (unknown) {
		char why[2 * CTL_CLASS_MAX];
		(void)snprintf(why, sizeof why, "unknown CPU class %.*s", CTL_CLASS_MAX, class);
		h->work->report(h->ctx, ctr, RP_APPLY_FAILED, why);
	}
	if (none || unknown) {
		bool had = class_entry(inst, ctr) != NULL;
		ctl_table_del(inst->table, ctr);
		return had;
	}
	struct ctl_entry *e = ctl_table_put(inst->table, ctr);
	if (!e) {
		h->work->report(h->ctx, ctr, RP_APPLY_FAILED, "out of memory");
		return false;
	}
	(void)snprintf(e->class, sizeof e->class, "%s", class);
	h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
	return true;
}

static int32_t cpu_pre_create(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const char *source;
	const char *class = ctl_class_of(&inst->h, info->ctr, RP_F_CPU_CLASS, CLASS_KEY, &source);
	if (!class || !*class)
		return 0;
	if (cpuclass_find(&inst->plan->defs, class) == CPUCLASS_NONE)
		return modhost_fail(&inst->h, -RP_EINVAL, "unknown CPU class \"%s\" (%s)", class,
				    source);
	modhost_note(&inst->h, info->ctr, "CPU class %s, %s", class, source);
	return 0;
}

static int32_t cpu_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
			 enum ctl_cause cause)
{
	if (take_class(inst, info->ctr) && cause != CTL_SYNC)
		give_out(inst);
	return 0;
}

static void cpu_gone(struct rp_instance *inst, rp_ctr ctr)
{
	if (!class_entry(inst, ctr))
		return;
	ctl_table_del(inst->table, ctr);
	give_out(inst);
}

/* Configures classes for the online CPUs, which are stored. Returns false, and logs why, without
 * memory. */
static bool cpu_configure(struct rp_instance *inst, const struct cpuclass_defs *defs,
			  struct rp_idset *ret_online)
{
	modhost_set(&inst->h, RP_CPUS_ONLINE, ret_online);
	bool failed = cpuclass_configure(inst->classes, defs, rp_ids_of(ret_online));
	if (failed)
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes cannot be %s",
			    defs->n ? "configured" : "removed");
	return !failed;
}

static void cpu_sync(struct rp_instance *inst)
{
	struct rp_idset online;
	if (!cpu_configure(inst, &inst->plan->defs, &online))
		return;
	ctl_life_apply_all(inst);
	give_out(inst);
}

/* Removes all classes, so that the original values are restored. */
static void put_all_back(struct rp_instance *inst)
{
	static const struct cpuclass_defs none;
	struct rp_idset online;
	(void)cpu_configure(inst, &none, &online);
	cpuclass_use(inst->classes, CPUCLASS_NONE, rp_ids_of(&online));
	cpuclass_commit(inst->classes);
}

static void cpu_commit(struct rp_instance *inst, const struct rp_plan *former)
{
	struct rp_idset online;
	if (inst->plan->enable)
		(void)cpu_configure(inst, &inst->plan->defs, &online);
	else if (former && former->enable)
		put_all_back(inst);
}

static int32_t cpu_start(struct rp_instance *inst)
{
	cpuclass_retry(inst->classes, CTL_AGAIN_COOKIE, tell_all, inst);
	return 0;
}

static void cpu_stop(struct rp_instance *inst)
{
	/* Later results of the worker are not reported, because the configuration with the names of
	 * classes may have been freed. */
	cpuclass_retry(inst->classes, 0, NULL, NULL);
	cpuclass_stop(inst->classes);
}

static int32_t cpu_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct cpuclass_stats s;
	cpuclass_stats(inst->classes, &s);
	sink->gauge(sink->ctx, "containers", "Containers with a CPU class.", "",
		    inst->table->entries.n);
	sink->counter(sink->ctx, "writes_total", "Writes of frequencies and idle states.", "",
		      (double)s.writes);
	sink->counter(sink->ctx, "write_failures_total", "Writes that failed.", "",
		      (double)s.failures);
	sink->gauge(sink->ctx, "failing", "CPUs whose settings differ from their class.", "",
		    cpuclass_n_failing(inst->classes));
	sink->counter(sink->ctx, "writes_differing_total", "Writes whose value the kernel changed.",
		      "", (double)s.differing);
	return 0;
}

static int32_t cpu_init(struct rp_instance *inst)
{
	inst->classes = cpuclass_new(&inst->h);
	return inst->classes ? 0 : modhost_no_memory(&inst->h);
}

static void cpu_fini(struct rp_instance *inst)
{
	inst->classes = cpuclass_free(inst->classes);
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true", "Switch the controller on."),
	CPUCLASS_KEYS,
	CPUCLASS_OLD_KEYS("classes"),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct ctl_life_ops ops = {
	.need = MODHOST_TOPOLOGY,
	.changes = RP_CHANGED_CLASS | RP_CHANGED_CPUS,
	.plan_size = sizeof(struct rp_plan),
	.init = cpu_init,
	.fini = cpu_fini,
	.plan = cpu_plan,
	.commit = cpu_commit,
	.start = cpu_start,
	.stop = cpu_stop,
	.pre_create = cpu_pre_create,
	.apply = cpu_apply,
	.gone = cpu_gone,
	.sync = cpu_sync,
	.timer = cpu_timer,
	.collect = cpu_collect,
	.schema = &schema,
};

CTL_MODULE("cpu", "1.0", ops, .summary = "frequencies and idle states of containers' CPUs",
	   .licence = "Apache-2.0");
