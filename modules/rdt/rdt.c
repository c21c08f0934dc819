/* SPDX-License-Identifier: Apache-2.0 */
/* The module rdt: chooses the class of each container and queues work. All access to resctrl
 * happens in items for the worker. */
#include <stdlib.h>

#include "modules/lib/private/ctl_queue.h"
#include "modules/lib/private/table.h"

#include "modules/rdt/rdt.h"
#include <nri-rp/lib/section.h>
#include <nri-rp/lib/text.h>

#define CLASS_KEY "rdtclass.resource-policy.nri.io"
/* value of the annotation that selects the class of the container's QoS */
#define QOS_CLASS "/PodQos"
#define STATE_HEAD "rdt 1\n"

struct rp_plan {
	CTL_PLAN;
	struct rdt_config config;
	struct rdt_machine machine;
};

/* The last assignment of a container. */
struct known {
	rp_ctr ctr;
	char class[RDT_NAME_MAX], monitor[RDT_NAME_MAX];
	bool stale; /* the configuration has changed since */
	bool counted[2]; /* occupancy and traffic: the value was in the last reading */
	uint64_t sum[2];
};

enum { KIND_ASSIGN, KIND_SETUP, KIND_READ };

struct setup_item {
	struct ctl_item item;
	struct rdt_setup setup;
	bool last; /* queued behind the containers, when freed groups can be reused */
	bool sweep_monitors;
	struct rdt_names monitors;
};

struct read_item {
	struct ctl_item item;
	struct rdt_readings readings;
};

struct rp_instance {
	CTL_LIFE;
	struct table known; /* struct known, by container */
	struct rdt_names usable; /* groups in which containers can begin */
	struct rdt_names owned; /* groups without a class that still exist */
	char *state; /* state saved last */
	bool reading;
	bool measure; /* the host wants the figures of the next reading */
	struct rdt_readings readings;
	uint64_t n_moved, n_setup_failures;
	struct rdt_groups groups; /* used by the worker only */
};

/* ---- configuration --------------------------------------------------------------------------- */

static int32_t rdt_plan(struct rp_instance *inst, rp_cfg section, struct rp_plan *ret)
{
	int32_t r = rdt_config_read(&inst->h, section, &ret->config);
	if (!r && ret->enable)
		r = rdt_machine_read(&inst->h, &ret->machine);
	if (!r && ret->enable)
		r = rdt_resolve(&inst->h, &ret->config, &ret->machine);
	/* Claims of an earlier run do not refuse the start. */
	return r || !inst->plan ? r : rdt_claims_check(&inst->h, &ret->config);
}

static void rdt_plan_fini(struct rp_plan *p)
{
	rdt_config_fini(&p->config);
}

static void setup_fini(struct setup_item *s)
{
	for (uint32_t i = 0; s->setup.want && i < s->setup.n_want; i++)
		free(s->setup.want[i].schemata);
	free(s->setup.want);
	rdt_names_fini(&s->setup.owned);
	rdt_names_fini(&s->setup.usable);
	rdt_names_fini(&s->monitors);
}

static int32_t fill_setup(const struct rp_instance *inst, struct setup_item *s)
{
	const struct rdt_config *c = &inst->plan->config;
	const struct known *k;
	s->setup.want = calloc(c->n_classes + 1, sizeof *s->setup.want);
	if (!s->setup.want)
		return -RP_ENOMEM;
	for (; s->setup.n_want < c->n_classes; s->setup.n_want++) {
		struct rdt_want *w = &s->setup.want[s->setup.n_want];
		memcpy(w->name, c->classes[s->setup.n_want].name, sizeof w->name);
		w->schemata = strdup(c->classes[s->setup.n_want].schemata);
		if (!w->schemata)
			return -RP_ENOMEM;
	}
	for (uint32_t i = 0; i < inst->owned.n; i++)
		if (rdt_names_add(&s->setup.owned, inst->owned.list[i]))
			return -RP_ENOMEM;
	TABLE_EACH (k, &inst->known)
		if (s->last && rdt_names_add(&s->monitors, k->monitor))
			return -RP_ENOMEM;
	s->setup.force = c->force;
	s->setup.discovery = c->discovery;
	memcpy(s->setup.root, inst->plan->machine.root, sizeof s->setup.root);
	return 0;
}

static void queue_setup(struct rp_instance *inst, bool last)
{
	struct setup_item *s = ctl_life_item(inst, 0, KIND_SETUP, sizeof *s);
	if (s)
		s->last = s->sweep_monitors = last;
	if (s && !fill_setup(inst, s)) {
		ctl_life_add(inst, &s->item);
		return;
	}
	if (s) {
		setup_fini(s);
		ctl_life_drop(inst, &s->item);
	}
	modhost_log(&inst->h, RP_LOG_ERROR, 0, "the groups are not set up: out of memory");
}

/* Adds the groups of removed classes to the record until they are removed. */
static void keep_record(struct rp_instance *inst, const struct rdt_config *former)
{
	const struct rdt_config *c = &inst->plan->config;
	for (uint32_t i = 0; i < former->n_classes; i++)
		if (former->classes[i].name[0] && !rdt_config_class(c, former->classes[i].name))
			(void)rdt_names_add(&inst->owned, former->classes[i].name);
}

static void mark_stale(struct rp_instance *inst)
{
	struct known *k;
	TABLE_EACH (k, &inst->known)
		k->stale = true;
}

static void rdt_commit(struct rp_instance *inst, const struct rp_plan *former)
{
	if (former && former->enable)
		keep_record(inst, &former->config);
	mark_stale(inst);
	if (inst->plan->enable)
		queue_setup(inst, false);
}

/* ---- containers ------------------------------------------------------------------------------ */

struct choice {
	char class[RDT_NAME_MAX];
	const char *source; /* source of the class, for people */
	bool known, mild;
};

static void rdt_choose(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *ret)
{
	const struct modhost *h = &inst->h;
	const struct rdt_config *c = &inst->plan->config;
	const char *class = h->cache->get_text(h->ctx, info->ctr, RP_F_RDT_CLASS);
	*ret = (struct choice){.source = "decided by the policy or an adjustment"};
	if (!class || !*class) {
		class = h->cache->annotation(h->ctx, info->ctr, CLASS_KEY, NULL);
		ret->source = "from annotation " CLASS_KEY;
	}
	if ((!class && c->qos_default) || (class && strcmp(class, QOS_CLASS) == 0)) {
		class = ctl_qos_name(info->qos);
		ret->source = "by its QoS class";
		ret->mild = true;
		if (!c->discovery && !rdt_config_class(c, class))
			class = "";
	}
	if (!class) {
		class = "";
		ret->source = "by default";
	}
	ret->known = rdt_is_root(class) || (c->discovery ? !strchr(class, '/') && class[0] != '.'
							 : rdt_config_class(c, class) != NULL);
	ret->known = ret->known && strlen(class) < sizeof ret->class;
	(void)snprintf(ret->class, sizeof ret->class, "%s", rdt_is_root(class) ? "" : class);
}

/* Returns true if another container has the same monitoring group: one of its pod. */
static bool is_shared(const struct rp_instance *inst, const struct known *k)
{
	const struct known *o;
	TABLE_EACH (o, &inst->known)
		if (k && *k->monitor && o != k && strcmp(o->monitor, k->monitor) == 0 &&
		    strcmp(o->class, k->class) == 0)
			return true;
	return false;
}

/* Names the monitoring group of a container, or of its pod as its cgroup is named; "": none. */
static void rdt_name_monitor(const struct rp_instance *inst, const struct rp_ctr_info *info,
			     char ret[RDT_NAME_MAX])
{
	const struct modhost *h = &inst->h;
	enum rdt_monitoring m = inst->plan->config.monitoring;
	struct rp_pod_info pod = {.size = sizeof pod};
	ret[0] = '\0';
	if (!inst->plan->machine.monitors)
		return;
	if (m == RDT_MONITOR_CONTAINERS)
		(void)snprintf(ret, RDT_NAME_MAX, "%s", info->id);
	else if (m == RDT_MONITOR_PODS && h->cache->get_pod(h->ctx, info->pod, &pod) == 0 &&
		 *pod.uid && !strchr(pod.uid, '/'))
		(void)snprintf(ret, RDT_NAME_MAX, "pod%s", pod.uid);
}

/* Assigns a container to its class. */
static int32_t rdt_apply(struct rp_instance *inst, const struct rp_ctr_info *info,
			 enum ctl_cause cause)
{
	const struct modhost *h = &inst->h;
	struct choice choice;
	rdt_choose(inst, info, &choice);
	char monitor[RDT_NAME_MAX];
	rdt_name_monitor(inst, info, monitor);
	const struct known *was = table_get(&inst->known, info->ctr);
	if (cause < CTL_START && was && !was->stale && strcmp(was->class, choice.class) == 0)
		return 0;
	if (!choice.class[0] && choice.known && !was && !monitor[0] && !inst->owned.n) {
		h->work->report(h->ctx, info->ctr, RP_APPLY_DONE,
				""); /* there is nothing to undo */
		return 0;
	}
	struct rdt_assign *a = ctl_life_item(inst, info->ctr, KIND_ASSIGN, sizeof *a);
	struct known *k = a ? table_make(&inst->known, info->ctr, sizeof *k) : NULL;
	if (!k) {
		if (a)
			ctl_life_drop(inst, &a->item);
		return modhost_no_memory(h);
	}
	memcpy(a->class, choice.class, sizeof a->class);
	memcpy(a->former, was ? was->class : choice.class, sizeof a->former);
	a->known = choice.known;
	a->mild = choice.mild;
	a->shared = is_shared(inst, was);
	memcpy(a->monitor, monitor, sizeof a->monitor);
	memcpy(k->class, choice.class, sizeof k->class);
	memcpy(k->monitor, a->monitor, sizeof k->monitor);
	k->ctr = info->ctr;
	k->stale = false;
	ctl_life_add(inst, &a->item);
	return 0;
}

static int32_t rdt_pre_create(struct rp_instance *inst, rp_txn txn, const struct rp_ctr_info *info)
{
	const struct modhost *h = &inst->h;
	struct choice choice;
	char group[RDT_NAME_MAX + sizeof RDT_PREFIX];
	rdt_choose(inst, info, &choice);
	if (!choice.known)
		return modhost_fail(h, -RP_EINVAL, "unknown RDT class \"%s\" (%s)", choice.class,
				    choice.source);
	if (choice.class[0])
		modhost_note(h, info->ctr, "RDT class %s, %s", choice.class, choice.source);
	if (!choice.class[0] || !rdt_names_has(&inst->usable, choice.class) || !h->runtime ||
	    !(h->runtime->flags(h->ctx) & RP_RUNTIME_CAN_RDT))
		return 0;
	/* The first process begins in the group, before the worker could move it. */
	(void)snprintf(group, sizeof group, RDT_PREFIX "%s", choice.class);
	int32_t r = h->cache->set_text(h->ctx, txn, info->ctr, RP_F_RDT_GROUP, group);
	return r == -RP_ENOTSUP ? 0 : r;
}

static void rdt_gone(struct rp_instance *inst, rp_ctr ctr)
{
	struct known *k = table_get(&inst->known, ctr);
	if (!k)
		return;
	struct rdt_assign *a =
		k->monitor[0] ? ctl_life_item(inst, 0, KIND_ASSIGN, sizeof *a) : NULL;
	if (a) {
		a->gone = true;
		a->shared = is_shared(inst, k);
		memcpy(a->former, k->class, sizeof a->former);
		memcpy(a->monitor, k->monitor, sizeof a->monitor);
		ctl_life_add(inst, &a->item);
	}
	table_del(&inst->known, ctr);
	free(k);
}

static void assign_all(struct rp_instance *inst)
{
	const struct modhost *h = &inst->h;
	const struct known *k;
	struct rp_ctr_info info = {.size = sizeof info};
	TABLE_EACH (k, &inst->known) {
		if (!h->cache->get_ctr(h->ctx, k->ctr, &info) && info.state != RP_STATE_EXITED)
			continue;
		ctl_queue_forget(inst->queue, k->ctr);
		rdt_gone(inst, k->ctr);
	}
	ctl_life_apply_all(inst);
}

static void rdt_sync(struct rp_instance *inst)
{
	assign_all(inst);
	queue_setup(inst, true);
}

/* ---- work ------------------------------------------------------------------------------------ */

static void rdt_run(struct rp_instance *inst, struct ctl_item *item)
{
	struct setup_item *s = (struct setup_item *)(void *)item;
	switch (item->kind) {
	case KIND_ASSIGN:
		rdt_assign_run(&inst->groups, (struct rdt_assign *)(void *)item);
		break;
	case KIND_SETUP:
		rdt_groups_set_up(&inst->groups, &s->setup);
		for (uint32_t i = 0; i < inst->groups.n; i++)
			if (inst->groups.list[i].there && inst->groups.list[i].right)
				(void)rdt_names_add(&s->setup.usable, inst->groups.list[i].name);
		if (s->sweep_monitors)
			rdt_monitor_sweep(&inst->groups, &s->monitors);
		break;
	default:
		rdt_monitor_read(&inst->groups, &((struct read_item *)(void *)item)->readings);
	}
}

static void setup_done(struct rp_instance *inst, struct setup_item *s, int ran)
{
	bool again = ran && s->last && s->setup.n_made && ctl_life_active(inst);
	if (ran) {
		rdt_names_fini(&inst->owned);
		inst->owned = s->setup.owned;
		s->setup.owned = (struct rdt_names){0};
		rdt_names_fini(&inst->usable);
		inst->usable = s->setup.usable;
		s->setup.usable = (struct rdt_names){0};
		inst->n_setup_failures += s->setup.n_failed;
		if (s->setup.text[0] && (s->last || s->setup.n_failed))
			modhost_log(&inst->h, RP_LOG_WARNING, 0, "%s", s->setup.text);
	}
	setup_fini(s);
	if (!again)
		return;
	/* Classes that had no group before have one now. */
	mark_stale(inst);
	assign_all(inst);
}

/* ---- figures --------------------------------------------------------------------------------- */

static int by_monitor(const void *a, const void *b)
{
	return strcmp((*(struct known *const *)a)->monitor, (*(struct known *const *)b)->monitor);
}

static int find_monitor(const void *name, const void *b)
{
	return strcmp(name, (*(struct known *const *)b)->monitor);
}

static void count_reading(struct known *k, const struct rdt_reading *v)
{
	static const unsigned part[2] = {0, 2}; /* indexes in a reading: occupancy, total traffic */
	for (unsigned i = 0; i < 2; i++) {
		k->counted[i] |= v->has[part[i]];
		k->sum[i] += v->has[part[i]] ? v->value[part[i]] : 0;
	}
}

/* Reports the figures of containers, which are sums over all caches. */
static void tell_figures(struct rp_instance *inst)
{
	static const uint32_t figures[2] = {RP_FIGURE_LLC, RP_FIGURE_TRAFFIC};
	const struct modhost *h = &inst->h;
	size_t n = 0;
	struct known *each, **list = calloc(inst->known.n + 1u, sizeof *list);
	if (!list)
		return;
	TABLE_EACH (each, &inst->known) {
		if (!each->monitor[0])
			continue;
		each->counted[0] = each->counted[1] = false;
		each->sum[0] = each->sum[1] = 0;
		list[n++] = each;
	}
	qsort(list, n, sizeof *list, by_monitor);
	for (uint32_t i = 0; i < inst->readings.n; i++) {
		const struct rdt_reading *v = &inst->readings.list[i];
		struct known **k = bsearch(v->monitor, list, n, sizeof *list, find_monitor);
		if (k)
			count_reading(*k, v);
	}
	for (size_t i = 0; i < n; i++)
		for (unsigned f = 0; f < 2; f++)
			if (list[i]->counted[f])
				h->work->figure(h->ctx, list[i]->ctr, figures[f], list[i]->sum[f]);
	free(list);
}

static int32_t queue_reading(struct rp_instance *inst)
{
	if (!ctl_life_active(inst) || inst->reading || !inst->plan->machine.monitors ||
	    inst->plan->config.monitoring == RDT_MONITOR_OFF)
		return 0;
	struct read_item *r = ctl_life_item(inst, 0, KIND_READ, sizeof *r);
	if (!r)
		return modhost_no_memory(&inst->h);
	inst->reading = true;
	ctl_life_add(inst, &r->item);
	return 0;
}

/* Starts a reading for the host's figures. A reading that a scrape has started serves as well. */
static void rdt_measure(struct rp_instance *inst)
{
	if (!RP_HAS(inst->h.work, figure) ||
	    inst->plan->config.monitoring != RDT_MONITOR_CONTAINERS)
		return;
	inst->measure = true;
	(void)queue_reading(inst);
}

static void rdt_done(struct rp_instance *inst, struct ctl_item *item, bool ran)
{
	struct read_item *read = (struct read_item *)(void *)item;
	switch (item->kind) {
	case KIND_ASSIGN:
		inst->n_moved += ran ? ((struct rdt_assign *)(void *)item)->n_moved : 0;
		break;
	case KIND_SETUP:
		setup_done(inst, (struct setup_item *)(void *)item, ran);
		break;
	default:
		if (ran) {
			free(inst->readings.list);
			inst->readings = read->readings;
			if (inst->measure)
				tell_figures(inst);
			inst->measure = false;
		} else {
			free(read->readings.list);
		}
		inst->reading = false;
	}
}

/* Handles the timer of repetitions. An item may have failed because its group could not be created,
 * so the groups are set up again first. */
static void rdt_timer(struct rp_instance *inst, uint64_t cookie)
{
	if (inst->plan->enable)
		queue_setup(inst, false);
}

/* Stops the controller. Dropped assignments are made at the next start. */
static void rdt_stop(struct rp_instance *inst)
{
	mark_stale(inst);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void put_reading(const struct rp_metric_sink *sink, const struct rdt_reading *v)
{
	struct text o = {0};
	text_label(&o, "rdt_class", v->class[0] ? v->class : RDT_ROOT_CLASS);
	text_label(&o, "rdt_mon_group", v->monitor);
	text_label_number(&o, "cache_id", v->cache_id);
	const char *labels = text_of(&o);
	if (v->has[0])
		sink->gauge(sink->ctx, "l3_llc_occupancy_bytes", "Cache in use by a group.", labels,
			    (double)v->value[0]);
	if (v->has[1])
		sink->counter(sink->ctx, "l3_mbm_local_bytes_total",
			      "Memory traffic with the local node.", labels, (double)v->value[1]);
	if (v->has[2])
		sink->counter(sink->ctx, "l3_mbm_bytes_total", "Memory traffic.", labels,
			      (double)v->value[2]);
	text_fini(&o);
}

/* Reports the figures of the last reading. Each scrape starts the next reading; without scrapes
 * nothing is read. */
static int32_t rdt_collect(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	for (uint32_t i = 0; i < inst->readings.n; i++)
		put_reading(sink, &inst->readings.list[i]);
	sink->counter(sink->ctx, "tasks_moved_total", "Tasks put into a group.", "",
		      (double)inst->n_moved);
	sink->counter(sink->ctx, "setup_failures_total", "Groups that could not be set up.", "",
		      (double)inst->n_setup_failures);
	return queue_reading(inst);
}

/* ---- saved state: the record of groups ------------------------------------------------------- */

static void append_name(char *text, size_t *len, const char *name)
{
	if (*name)
		*len += (size_t)snprintf(text + *len, RDT_NAME_MAX + 2, "%s\n", name);
}

static int32_t rdt_save(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	const struct rdt_config *c = inst->plan ? &inst->plan->config : NULL;
	uint32_t n_classes = c && inst->plan->enable && !c->discovery ? c->n_classes : 0;
	size_t len = sizeof STATE_HEAD - 1;
	char *text = malloc(len + (size_t)(n_classes + inst->owned.n) * (RDT_NAME_MAX + 2) + 1);
	if (!text)
		return modhost_no_memory(&inst->h);
	memcpy(text, STATE_HEAD, len + 1);
	for (uint32_t i = 0; i < n_classes; i++)
		append_name(text, &len, c->classes[i].name);
	for (uint32_t i = 0; i < inst->owned.n; i++)
		append_name(text, &len, inst->owned.list[i]);
	free(inst->state);
	inst->state = text;
	*ret_data = text;
	*ret_size = (uint32_t)len;
	return 0;
}

static int32_t rdt_load(struct rp_instance *inst, const void *data, uint32_t size)
{
	const size_t head = sizeof STATE_HEAD - 1;
	if (size < head || memcmp(data, STATE_HEAD, head) != 0)
		return modhost_fail(&inst->h, -RP_EINVAL, "not a record of groups");
	const char *at = (const char *)data + head, *end = (const char *)data + size;
	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		char name[RDT_NAME_MAX];
		if (!line || line == at || (size_t)(line - at) >= sizeof name ||
		    memchr(at, '/', (size_t)(line - at)))
			return modhost_fail(&inst->h, -RP_EINVAL, "the record is damaged");
		memcpy(name, at, (size_t)(line - at));
		name[line - at] = '\0';
		if (rdt_names_add(&inst->owned, name))
			return modhost_no_memory(&inst->h);
		at = line + 1;
	}
	return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static int32_t rdt_devices(struct rp_instance *inst, const struct rp_devices_sink *sink)
{
	return inst->plan && inst->plan->enable ? rdt_claims_devices(&inst->plan->config, sink) : 0;
}

static int32_t rdt_claim(struct rp_instance *inst, rp_txn txn, rp_ctr claim, const char *device)
{
	if (!inst->plan || !inst->plan->enable)
		return modhost_fail(&inst->h, -RP_ENOENT, "rdt is not enabled");
	return rdt_claims_allocate(&inst->h, &inst->plan->config, txn, claim, device);
}

/* Releases nothing: a claim has its class only as a staged value. */
static int32_t rdt_unclaim(struct rp_instance *inst, rp_txn txn, rp_ctr claim)
{
	(void)inst, (void)txn, (void)claim;
	return 0;
}

static const struct rp_devices devices = {.size = sizeof devices,
					  .devices = rdt_devices,
					  .allocate = rdt_claim,
					  .release = rdt_unclaim};

/* ---- module definition ----------------------------------------------------------------------- */

#define SHARES(prefix, what)                                                                       \
	{.path = prefix "l2Allocation",                                                            \
	 .type = RP_T_ANY,                                                                         \
	 .doc = what " of the second level cache: 50%, or a map from cache ids."},                 \
		{.path = prefix "l3Allocation",                                                    \
		 .type = RP_T_ANY,                                                                 \
		 .doc = what " of the third level cache: 50%, or a map from cache ids."},          \
	{                                                                                          \
		.path = prefix "mbAllocation", .type = RP_T_ANY,                                   \
		.doc = what " of the memory bandwidth: [50%, 1500MBps], or a map from cache ids."  \
	}

static const struct rp_key keys[] = {
	SECTION_BOOL("enable", "true",
		     "Apply classes to containers. Without options and partitions, existing groups "
		     "are used and never written."),
	SECTION_BOOL("usePodQoSAsDefaultClass", "false",
		     "By default, use the class named like the pod's QoS class: Guaranteed, "
		     "Burstable, BestEffort."),
	SECTION_BOOL("force", "false",
		     "Remove groups of removed classes even if they have tasks or no record."),
	SECTION_CHOICE("monitoring", "off|classes|containers|pods", "classes",
		       "Groups for which cache use and memory traffic are counted."),
	SECTION_MAP("options", "Features that the machine may lack."),
	SECTION_MAP("options.l2", "Second level cache."),
	SECTION_BOOL("options.l2.optional", "false",
		     "Ignore shares that the machine does not support."),
	SECTION_MAP("options.l3", "Third level cache."),
	SECTION_BOOL("options.l3.optional", "false",
		     "Ignore shares that the machine does not support."),
	SECTION_MAP("options.mb", "Memory bandwidth."),
	SECTION_BOOL("options.mb.optional", "false",
		     "Ignore shares that the machine does not support."),
	SECTION_MAP("partitions", "Exclusive parts of caches, by name."),
	SECTION_MAP("partitions.*", "A partition."),
	SHARES("partitions.*.", "Share"),
	SECTION_MAP("partitions.*.classes", "Classes of the partition, by name."),
	SECTION_MAP("partitions.*.classes.*", "A class."),
	SHARES("partitions.*.classes.*.", "The class's share of the partition's"),
	SECTION_BOOL("partitions.*.classes.*.allowClaims", "false",
		     "Pods can claim the class, as the device rdt-CLASS."),
	SECTION_NUMBER("partitions.*.classes.*.maxClaims", 1, 4096, "256",
		       "Largest number of claims that have the class at the same time."),
};

static const struct rp_schema schema = SECTION_SCHEMA(keys);

static const struct rp_state state = {
	.size = sizeof(struct rp_state),
	.save = rdt_save,
	.load = rdt_load,
};

static int32_t rdt_init(struct rp_instance *inst)
{
	inst->groups.h = &inst->h;
	return RP_HAS(inst->h.work, remove_dir) && inst->h.work->remove_dir
		       ? 0
		       : modhost_fail(&inst->h, -RP_ENOTSUP, "the host cannot make directories");
}

static void rdt_fini(struct rp_instance *inst)
{
	table_free(&inst->known);
	rdt_names_fini(&inst->owned);
	rdt_names_fini(&inst->usable);
	rdt_groups_fini(&inst->groups);
	free(inst->readings.list);
	free(inst->state);
}

static const struct ctl_life_ops ops = {
	.takes = RP_TAKES_RDT_CLASS,
	.changes = RP_CHANGED_CLASS,
	.retries = true,
	.plan_size = sizeof(struct rp_plan),
	.init = rdt_init,
	.fini = rdt_fini,
	.plan = rdt_plan,
	.plan_fini = rdt_plan_fini,
	.commit = rdt_commit,
	.stop = rdt_stop,
	.pre_create = rdt_pre_create,
	.apply = rdt_apply,
	.gone = rdt_gone,
	.sync = rdt_sync,
	.timer = rdt_timer,
	.measure = rdt_measure,
	.run = rdt_run,
	.done = rdt_done,
	.collect = rdt_collect,
	.schema = &schema,
	.state = &state,
	.devices = &devices,
};

CTL_MODULE("rdt", "1.0", ops, .summary = "cache ways and memory bandwidth by resctrl",
	   .licence = "Apache-2.0");
