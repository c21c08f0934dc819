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
#include <stdlib.h>

#include <nri-rp/controller.h>

#include "modules/lib/private/cpuclass.h"
#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/ctl_table.h"
#include <nri-rp/lib/section.h>

#define CLASS_KEY "cpuclass.resource-policy.nri.io"

struct rp_plan {
	struct cpuclass_defs defs;
	bool enable;
};

struct rp_instance {
	struct modhost h;
	struct rp_plan *plan; /* active plan */
	struct cpuclass *classes;
	struct ctl_table with_class; /* containers with a class */
	struct rp_idset taken, shared; /* scratch of give_out() */
	uint32_t n_failing; /* containers that are stale: not all of their CPUs have their class */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int64_t cpu_freq(const struct modhost *h, rp_cfg node, const char *key)
{
	return h->config->value(h->ctx, section_get(h, node, key), RP_T_FREQ, 0);
}

static int32_t read_old_class(const struct modhost *h, rp_cfg list, uint32_t i,
			      struct cpuclass_defs *defs)
{
	rp_cfg node = h->config->item(h->ctx, list, i),
	       states = section_get(h, node, "disabledCstates");
	const char *name = h->config->key(h->ctx, list, i);
	uint32_t n_states = h->config->count(h->ctx, states);
	if (!*name || strlen(name) >= CPUCLASS_NAME_MAX ||
	    cpuclass_find(defs, name) != CPUCLASS_NONE)
		return modhost_fail_at(
			h, node, -RP_EINVAL,
			"the name of a CPU class has 1 to %u bytes and is given once",
			CPUCLASS_NAME_MAX - 1);
	if (defs->n == CPUCLASS_MAX || n_states > CPUCLASS_CSTATES_MAX)
		return modhost_fail_at(h, node, -RP_EINVAL, "too many classes or idle states");
	struct cpuclass_def *d = &defs->list[defs->n++];
	*d = (struct cpuclass_def){
		.name = name,
		.min_khz = cpu_freq(h, node, "minFreq"),
		.max_khz = cpu_freq(h, node, "maxFreq"),
		.uncore_min_khz = cpu_freq(h, node, "uncoreMinFreq"),
		.uncore_max_khz = cpu_freq(h, node, "uncoreMaxFreq"),
		.governor = section_text(h, node, "freqGovernor", ""),
		.epp = section_int(h, node, "energyPerformancePreference", 0),
		.pct_high = -1,
		.clos = -1,
		.n_disabled_cstates = n_states,
	};
	for (uint32_t s = 0; s < n_states; s++)
		d->disabled_cstates[s] =
			h->config->text(h->ctx, h->config->item(h->ctx, states, s), "");
	if (d->min_khz > 0 && d->max_khz > 0 && d->min_khz > d->max_khz)
		return modhost_fail_at(h, node, -RP_EINVAL, "minFreq is higher than maxFreq");
	return 0;
}

static int32_t cpu_prepare(struct rp_instance *inst, rp_cfg cfg, struct rp_plan **ret_plan)
{
	const struct modhost *h = &inst->h;
	rp_cfg old = section_get(h, cfg, "classes");
	struct rp_plan *p = calloc(1, sizeof *p);
	if (!p)
		return modhost_no_memory(h);
	p->enable = section_bool(h, cfg, "enable", true);
	int32_t r = cpuclass_read(h, cfg, &p->defs);
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, old); i++)
		r = read_old_class(h, old, i, &p->defs);
	if (r)
		free(p);
	else
		*ret_plan = p;
	return r;
}

static void cpu_abort(struct rp_instance *inst, struct rp_plan *plan)
{
	(void)inst;
	free(plan);
}

/* ---- assignment of classes ------------------------------------------------------------------- */

static const struct ctl_entry *class_entry(const struct rp_instance *inst, rp_ctr ctr)
{
	return ctl_table_find(&inst->with_class, ctr);
}

/* Puts those CPUs into a class that are not taken yet. Exclusive CPUs are assigned before shared
 * ones. */
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
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPUs lose their classes: out of memory");
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
	struct ctl_entry *e = ctl_table_find(&inst->with_class, ctr);
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
	struct rp_ctr_info info = {.size = sizeof info};
	const char *source;
	if (h->cache->get_ctr(h->ctx, ctr, &info) || info.state == RP_STATE_EXITED ||
	    info.state == RP_STATE_CREATING)
		return false;
	const char *class = ctl_class_of(h, ctr, RP_F_CPU_CLASS, CLASS_KEY, &source);
	if (!class || !*class) {
		bool had = class_entry(inst, ctr) != NULL;
		ctl_table_del(&inst->with_class, ctr);
		return had;
	}
	if (cpuclass_find(&inst->plan->defs, class) == CPUCLASS_NONE) {
		char why[2 * CTL_CLASS_MAX];
		(void)snprintf(why, sizeof why, "there is no CPU class %.*s", CTL_CLASS_MAX, class);
		h->work->report(h->ctx, ctr, RP_APPLY_FAILED, why);
		bool had = class_entry(inst, ctr) != NULL;
		ctl_table_del(&inst->with_class, ctr);
		return had;
	}
	struct ctl_entry *e = ctl_table_put(&inst->with_class, ctr);
	if (!e) {
		h->work->report(h->ctx, ctr, RP_APPLY_FAILED, "out of memory");
		return false;
	}
	(void)snprintf(e->class, sizeof e->class, "%s", class);
	h->work->report(h->ctx, ctr, RP_APPLY_DONE, "");
	return true;
}

static int32_t cpu_pre_create(struct rp_instance *inst, rp_txn txn, rp_ctr ctr)
{
	const char *source;
	(void)txn;
	if (!inst->plan->enable)
		return 0;
	const char *class = ctl_class_of(&inst->h, ctr, RP_F_CPU_CLASS, CLASS_KEY, &source);
	if (!class || !*class)
		return 0;
	if (cpuclass_find(&inst->plan->defs, class) == CPUCLASS_NONE)
		return modhost_fail(&inst->h, -RP_EINVAL, "there is no CPU class \"%s\" (%s)",
				    class, source);
	modhost_note(&inst->h, ctr, "CPU class %s, %s", class, source);
	return 0;
}

static int32_t cpu_post_start(struct rp_instance *inst, rp_ctr ctr)
{
	if (inst->plan->enable && take_class(inst, ctr))
		give_out(inst);
	return 0;
}

static int32_t cpu_post_update(struct rp_instance *inst, rp_ctr ctr, uint32_t changed)
{
	if (changed & (RP_CHANGED_CLASS | RP_CHANGED_CPUS))
		return cpu_post_start(inst, ctr);
	return 0;
}

static int32_t cpu_post_stop(struct rp_instance *inst, rp_ctr ctr)
{
	if (!class_entry(inst, ctr))
		return 0;
	ctl_table_del(&inst->with_class, ctr);
	give_out(inst);
	return 0;
}

static void take_one(void *arg, rp_ctr ctr)
{
	(void)take_class(arg, ctr);
}

static void cpu_sync(struct rp_instance *inst)
{
	struct rp_idset online;
	if (!inst->plan || !inst->plan->enable)
		return;
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	int32_t r = cpuclass_configure(inst->classes, &inst->plan->defs, rp_ids_of(&online));
	ctl_table_sweep(&inst->with_class, &inst->h);
	if (!r)
		r = ctl_each_container(&inst->h, take_one, inst);
	if (r)
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes are not followed: %s",
			    r == -RP_ENOMEM ? "out of memory" : "they cannot be configured");
	else
		give_out(inst);
}

/* Removes all classes, so that the original state is restored. */
static void put_all_back(struct rp_instance *inst)
{
	static const struct cpuclass_defs none;
	struct rp_idset online;
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	if (cpuclass_configure(inst->classes, &none, rp_ids_of(&online)))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes cannot be taken back");
	cpuclass_use(inst->classes, CPUCLASS_NONE, rp_ids_of(&online));
	cpuclass_commit(inst->classes);
}

static void cpu_commit(struct rp_instance *inst, struct rp_plan *plan)
{
	struct rp_idset online;
	struct rp_plan *former = inst->plan;
	inst->plan = plan;
	modhost_set(&inst->h, RP_CPUS_ONLINE, &online);
	if (plan->enable && cpuclass_configure(inst->classes, &plan->defs, rp_ids_of(&online)))
		modhost_log(&inst->h, RP_LOG_ERROR, 0, "CPU classes cannot be configured");
	else if (!plan->enable && former && former->enable)
		put_all_back(inst);
	free(former); /* the texts belonged to the previous configuration */
}

static int32_t cpu_start(struct rp_instance *inst)
{
	cpuclass_retry(inst->classes, CTL_AGAIN_COOKIE, tell_all, inst);
	return 0;
}

static void cpu_stop(struct rp_instance *inst)
{
	/* Later results of the worker are not reported, since the configuration with the names may
	 * be gone by then. */
	cpuclass_retry(inst->classes, 0, NULL, NULL);
	cpuclass_stop(inst->classes);
}

static int32_t cpu_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct cpuclass_stats s;
	cpuclass_stats(inst->classes, &s);
	sink->gauge(sink->ctx, "containers", "Containers with a CPU class.", "",
		    inst->with_class.n);
	sink->counter(sink->ctx, "writes_total", "Writes of frequencies and idle states.", "",
		      (double)s.writes);
	sink->counter(sink->ctx, "write_failures_total", "Writes that failed.", "",
		      (double)s.failures);
	sink->gauge(sink->ctx, "failing", "CPUs that are not what their class says.", "",
		    cpuclass_n_failing(inst->classes));
	sink->counter(sink->ctx, "writes_differing_total",
		      "Writes of which the kernel has made something else.", "",
		      (double)s.differing);
	return 0;
}

/* ---- module definition ----------------------------------------------------------------------- */

static const struct rp_key keys[] = {
	{.path = "enable", .type = RP_T_BOOL, .fallback = "true", .doc = "Do anything at all."},
	CPUCLASS_KEYS,
	{.path = "classes",
	 .type = RP_T_MAP,
	 .doc = "The older form of cpuClasses: a map by name."},
	{.path = "classes.*", .type = RP_T_MAP, .doc = "A class."},
	{.path = "classes.*.minFreq", .type = RP_T_FREQ, .doc = "Lowest core frequency."},
	{.path = "classes.*.maxFreq", .type = RP_T_FREQ, .doc = "Highest core frequency."},
	{.path = "classes.*.uncoreMinFreq", .type = RP_T_FREQ, .doc = "Lowest uncore frequency."},
	{.path = "classes.*.uncoreMaxFreq", .type = RP_T_FREQ, .doc = "Highest uncore frequency."},
	{.path = "classes.*.energyPerformancePreference",
	 .type = RP_T_INT,
	 .max = 255,
	 .fallback = "0",
	 .doc = "1, performance, to 255, power saving; 0 leaves it alone."},
	{.path = "classes.*.freqGovernor", .type = RP_T_STRING, .doc = "Frequency governor."},
	{.path = "classes.*.disabledCstates",
	 .type = RP_T_LIST,
	 .doc = "Names of idle states that are off."},
	{.path = "classes.*.disabledCstates[]",
	 .type = RP_T_STRING,
	 .doc = "As in cpuidle/state*/name."},
};

static const struct rp_schema schema = {
	.size = sizeof(struct rp_schema),
	.keys = keys,
	.n_keys = sizeof keys / sizeof keys[0],
	.key_size = sizeof(struct rp_key),
};

static const struct rp_controller controller = {
	.size = sizeof(struct rp_controller),
	.prepare = cpu_prepare,
	.commit = cpu_commit,
	.abort = cpu_abort,
	.start = cpu_start,
	.stop = cpu_stop,
	.pre_create = cpu_pre_create,
	.post_start = cpu_post_start,
	.post_update = cpu_post_update,
	.post_stop = cpu_post_stop,
	.timer = cpu_timer,
	.sync = cpu_sync,
};

static const struct rp_metrics metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = cpu_collect,
};

static void cpu_destroy(struct rp_instance *inst)
{
	inst->classes = cpuclass_free(inst->classes);
	ctl_table_fini(&inst->with_class);
	free(inst->plan);
	free(inst);
}

static int32_t cpu_create(const struct rp_host *host, struct rp_instance **ret_inst)
{
	struct rp_instance *inst = calloc(1, sizeof *inst);
	if (!inst)
		return host->fail(host->ctx, -RP_ENOMEM, "out of memory");
	int32_t r = modhost_init(&inst->h, host, MODHOST_POLICY | MODHOST_WORK);
	if (!r) {
		inst->classes = cpuclass_new(&inst->h);
		if (!inst->classes)
			r = modhost_no_memory(&inst->h);
	}
	if (r) {
		free(inst);
		return r;
	}
	*ret_inst = inst;
	return 0;
}

static const void *cpu_service(struct rp_instance *inst, const char *id)
{
	(void)inst;
	if (strcmp(id, RP_SCHEMA_1) == 0)
		return &schema;
	if (strcmp(id, RP_CONTROLLER_1) == 0)
		return &controller;
	return strcmp(id, RP_METRICS_1) == 0 ? &metrics : NULL;
}

RP_MODULE_DEFINE("cpu", "1.0", RP_KIND_CONTROLLER,
		 .summary = "frequencies and idle states of containers' CPUs",
		 .licence = "Apache-2.0", .create = cpu_create, .destroy = cpu_destroy,
		 .service = cpu_service);
