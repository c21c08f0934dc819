/* SPDX-License-Identifier: Apache-2.0 */
/* Reports zones, metrics, saved state, extended resources and explanations. */
#include <string.h>

#include "modules/balloons/balloons.h"
#include "modules/balloons/report.h"
#include "modules/balloons/stage.h"
#include "modules/lib/private/line.h"
#include <nri-rp/lib/text.h>
#include <nri-rp/lib/zones.h>

/* ---- explanations ---------------------------------------------------------------------------- */

void report_placed(struct rp_instance *inst, const struct rp_ctr_info *info, const struct choice *c)
{
	const struct modhost *h = &inst->h;
	const struct balloon *b = c->balloon;
	struct line l = {0};
	char cpus[200];
	if (!h->explain)
		return;
	modhost_decided_line(h, info->ctr, c->decided_at, c->text);
	line_say(&l, b->type->name);
	line_say(&l, "[");
	line_number(&l, b->instance);
	line_say(&l, "]: ");
	line_say(&l, c->method);
	line_say(&l, "; CPUs ");
	line_say(&l, modhost_set_text(rp_ids_of(&b->cpus), cpus, sizeof cpus));
	line_say(&l, "; ");
	line_number(&l, b->request);
	line_say(&l, "m of ");
	line_number(&l, balloon_avail(b));
	line_say(&l, "m requested");
	modhost_note_line(h, info->ctr, l.text);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static void put_parts(struct text *o, const struct balloon *b)
{
	text_put(o, "{");
	if (!b->n_parts)
		text_put_set(o, rp_ids_of(&b->cpus));
	for (uint32_t i = 0; i < b->n_parts; i++) {
		if (i)
			text_put(o, ", ");
		put_parts(o, b->parts[i]);
	}
	text_put(o, "}");
}

static void container_zone(struct rp_instance *inst, const struct rp_zone_sink *sink,
			   const struct member *m, const char *parent)
{
	const struct modhost *h = &inst->h;
	struct rp_ctr_info info = {.size = sizeof info};
	char name[1024];
	if (h->cache->get_ctr(h->ctx, m->ctr, &info))
		return;
	(void)snprintf(name, sizeof name, "%s/%s/%s", info.pod_namespace, info.pod_name, info.name);
	struct rp_ids all = rp_ids_of(&inst->plan->machine->online);
	int64_t cpus = 1000 * (int64_t)rp_ids_count(rp_ids_empty(info.cpus) ? all : info.cpus);
	int64_t capacity = info.cpu_limit > 0 && info.cpu_limit < cpus ? info.cpu_limit : cpus;
	sink->zone(sink->ctx, name, "allocation for container", parent);
	sink->resource(sink->ctx, "cpu", capacity, info.cpu_request, 0);
	zones_attribute(sink, "cpuset", info.cpus);
	zones_attribute(sink, "memory set", info.mems);
}

static void balloon_zone(struct rp_instance *inst, const struct rp_zone_sink *sink,
			 const struct balloon *b, struct text *o)
{
	const struct rp_plan *p = inst->plan;
	const struct type *t = b->type;
	char name[BALLOON_NAME_MAX], excess[32];
	balloon_name(b, name, sizeof name);
	int64_t start = p->idle_at_start + (t->min_balloons > 0 ? t->min_cpus : 0);
	int64_t most = t->max_cpus == 0 || t->max_cpus > start ? start : t->max_cpus;
	sink->zone(sink->ctx, name, "balloon", "");
	sink->resource(sink->ctx, "cpu",
		       1000 * (int64_t)rp_ids_count(rp_ids_of(&p->machine->online)),
		       most > 0 ? 1000 * most : 0, balloon_max_avail(inst->state, b) - b->request);
	zones_attribute(sink, "cpuset", rp_ids_of(&b->cpus));
	zones_attribute(sink, "shared cpuset", rp_ids_of(&b->shared));
	(void)snprintf(excess, sizeof excess, "%lldm", (long long)(balloon_avail(b) - b->request));
	sink->attribute(sink->ctx, "excess cpus", excess);
	text_clear(o);
	put_parts(o, b);
	if (b->n_parts && !o->failed)
		sink->attribute(sink->ctx, "component cpusets", text_of(o));
	for (uint32_t i = 0; t->show_containers && i < b->n_members; i++)
		container_zone(inst, sink, b->members[i], name);
}

static int32_t report_zones(struct rp_instance *inst, const struct rp_zone_sink *sink)
{
	struct text o = {0};
	for (uint32_t i = 0; inst->state && i < inst->state->n; i++)
		balloon_zone(inst, sink, inst->state->list[i], &o);
	text_fini(&o);
	return 0;
}

const struct rp_zones balloons_zones = {.size = sizeof(struct rp_zones), .zones = report_zones};

/* ---- metrics --------------------------------------------------------------------------------- */

static void label_units(struct text *o, const struct plan_machine *m, enum tree_level level,
			const char *name, const char *count, struct rp_ids cpus)
{
	struct text list = {0};
	uint32_t n = 0, last = UINT32_MAX;
	struct rp_idset seen;
	rp_idset_clear(&seen);
	text_clear(&list);
	RP_IDS_EACH (cpu, cpus) {
		uint32_t at = m->at[level][cpu], first = m->plain.nodes[at].first;
		char unit[64];
		if (at == last || rp_ids_has(rp_ids_of(&seen), first))
			continue;
		last = at;
		rp_idset_add(&seen, first);
		plan_machine_name(m, level, cpu, unit, sizeof unit);
		text_put(&list, n++ ? "," : "");
		text_put(&list, unit);
	}
	text_label(o, name, text_of(&list));
	text_label_number(o, count, n);
	text_fini(&list);
}

static int text_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the texts as one label, sorted and without duplicates. */
static void label_sorted(struct text *o, const char *name, char **texts, uint32_t n)
{
	struct text list = {0};
	text_clear(&list);
	if (n)
		qsort(texts, n, sizeof *texts, text_cmp);
	for (uint32_t i = 0; i < n; i++) {
		if (i && strcmp(texts[i - 1], texts[i]) == 0)
			continue;
		text_put(&list, i ? "," : "");
		text_put(&list, texts[i]);
	}
	text_label(o, name, text_of(&list));
	text_fini(&list);
}

static void label_groups(struct text *o, const struct balloon *b)
{
	char **texts = calloc(b->n_members + 1u, sizeof *texts);
	uint32_t n = 0;
	for (uint32_t i = 0; texts && i < b->n_members; i++)
		if (b->members[i]->group)
			texts[n++] = b->members[i]->group;
	label_sorted(o, "groups", texts, n);
	free(texts);
}

static void label_containers(struct text *o, struct rp_instance *inst, const struct balloon *b)
{
	char **names = calloc(b->n_members + 1u, sizeof *names);
	uint32_t n = 0;
	for (uint32_t i = 0; names && i < b->n_members; i++) {
		struct rp_ctr_info info;
		if (ctr_info(&inst->h, b->members[i]->ctr, &info))
			continue;
		size_t size =
			strlen(info.pod_namespace) + strlen(info.pod_name) + strlen(info.name) + 3;
		names[n] = malloc(size);
		if (names[n])
			(void)snprintf(names[n++], size, "%s/%s/%s", info.pod_namespace,
				       info.pod_name, info.name);
	}
	label_sorted(o, "containers", names, n);
	while (n)
		free(names[--n]);
	free(names);
}

static void balloon_labels(struct rp_instance *inst, const struct balloon *b, struct text *o)
{
	const struct rp_plan *p = inst->plan;
	const struct plan_machine *m = p->machine;
	struct rp_ids cpus = rp_ids_of(&b->cpus);
	struct rp_idset allowed, mems;
	char name[BALLOON_NAME_MAX];
	balloon_name(b, name, sizeof name);
	pin_pinnable(b, &allowed);
	/* Reports the nodes near the CPUs, even if memory is not pinned. */
	rp_idset_clear(&mems);
	RP_IDS_EACH (cpu, rp_ids_of(&allowed))
		rp_idset_add(&mems, m->node_of[cpu]);
	o->len = 0;
	text_label(o, "balloon", name);
	if (b->whole) {
		balloon_name(b->whole, name, sizeof name);
		text_label(o, "component_of", name);
	}
	text_label(o, "balloon_type", b->type->name);
	text_label(o, "cpu_class",
		   b->type->cpu_class == CPUCLASS_NONE ? b->type->cpu_class_name
						       : p->classes.list[b->type->cpu_class].name);
	text_label_number(o, "cpus_min", b->type->min_cpus);
	text_label_number(o, "cpus_max", b->type->max_cpus);
	label_groups(o, b);
	text_label_set(o, "cpus", "cpus_count", cpus);
	label_units(o, m, TREE_NUMA, "numas", "numas_count", cpus);
	label_units(o, m, TREE_DIE, "dies", "dies_count", cpus);
	label_units(o, m, TREE_PACKAGE, "packages", "packages_count", cpus);
	text_label_set(o, "sharedidlecpus", "sharedidlecpus_count", rp_ids_of(&b->shared));
	text_label_set(o, "cpus_allowed", "cpus_allowed_count", rp_ids_of(&allowed));
	text_label_set(o, "mems", NULL, rp_ids_of(&mems));
	label_containers(o, inst, b);
	text_label_number(o, "tot_req_millicpu", b->request);
}

static void outside_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct cpuclass_stats c;
	struct irq_stats q;
	cpuclass_stats(inst->classes, &c);
	irq_stats(inst->irq, &q);
	const struct {
		const char *name, *help;
		uint64_t value;
	} counters[] = {
		{"policy_balloons_placements_total", "Containers placed.", inst->counters.placed},
		{"policy_balloons_refusals_total", "Containers and resizes refused.",
		 inst->counters.refused},
		{"policy_balloons_rebalanced_total", "Containers moved to a better place.",
		 inst->counters.rebalanced},
		{"policy_balloons_cpuclass_writes_total", "CPU settings written.", c.writes},
		{"policy_balloons_cpuclass_failures_total",
		 "CPU settings that could not be written.", c.failures},
		{"policy_balloons_irq_writes_total", "Affinities of interrupts written.", q.writes},
		{"policy_balloons_irq_failures_total",
		 "Affinities of interrupts that could not be written.", q.failures},
	};
	relief_report(&inst->relief.counters, sink);
	for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
		sink->counter(sink->ctx, counters[i].name, counters[i].help, "",
			      (double)counters[i].value);
}

/* Reports a balloon and then its components. */
static void balloon_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink,
			    const struct balloon *b, struct text *o)
{
	balloon_labels(inst, b, o);
	if (o->failed)
		return;
	sink->gauge(sink->ctx, "policy_balloons_cores", "CPUs of a balloon.", text_of(o),
		    rp_ids_count(rp_ids_of(&b->cpus)));
	for (uint32_t i = 0; i < b->n_parts; i++)
		balloon_metrics(inst, sink, b->parts[i], o);
}

static int32_t report_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink)
{
	struct text o = {0};
	for (uint32_t i = 0; inst->state && i < inst->state->n; i++)
		balloon_metrics(inst, sink, inst->state->list[i], &o);
	text_fini(&o);
	outside_metrics(inst, sink);
	return 0;
}

const struct rp_metrics balloons_metrics = {
	.size = sizeof(struct rp_metrics),
	.collect = report_metrics,
};

/* ---- saved state ----------------------------------------------------------------------------- */

static int32_t state_save_image(struct rp_instance *inst, const void **ret_data, uint32_t *ret_size)
{
	struct state *s = inst->state;
	int32_t r = 0;
	if (s && s->image_stale)
		r = image_write(s, &inst->image);
	else if (!s && inst->plan)
		r = image_renew(inst->plan, &inst->before, &inst->image);
	if (r)
		return modhost_fail(&inst->h, r, "out of memory");
	if (s)
		s->image_stale = false;
	const struct bytes *im = inst->plan ? &inst->image : &inst->before;
	*ret_data = im->data ? (const void *)im->data : "";
	*ret_size = im->size;
	return 0;
}

static int32_t state_load_image(struct rp_instance *inst, const void *data, uint32_t size)
{
	if (!image_valid(data, size))
		return modhost_fail(&inst->h, -RP_EINVAL, "saved state has another version");
	struct bytes copy = {0};
	if (bytes_put(&copy, data, size))
		return modhost_no_memory(&inst->h);
	free(inst->before.data);
	inst->before = copy;
	return 0;
}

const struct rp_state balloons_state = {
	.size = sizeof(struct rp_state),
	.save = state_save_image,
	.load = state_load_image,
};

/* ---- extended resources: possible CPUs of a class -------------------------------------------- */

/* Adds to *ret the CPUs of balloons that have another CPU class. */
static void add_held(const struct balloon *b, uint32_t class, struct rp_idset *ret)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		add_held(b->parts[i], class, ret);
	if (!b->n_parts && b->type->cpu_class != class)
		rp_idset_or(ret, rp_ids_of(ret), rp_ids_of(&b->cpus));
}

static void report_held(void *arg, uint32_t class, struct rp_idset *ret)
{
	const struct state *s = arg;
	for (uint32_t i = 0; i < s->n; i++)
		add_held(s->list[i], class, ret);
}

static int32_t report_extended(struct rp_instance *inst, const struct rp_extended_sink *sink)
{
	bool ready = inst->plan && inst->state;
	cpuclass_extended(inst->classes, ready ? &inst->plan->classes : NULL, sink,
			  "cpuclass.balloons.nri.io/", report_held, inst->state);
	return 0;
}

const struct rp_extended balloons_extended = {
	.size = sizeof(struct rp_extended),
	.extended = report_extended,
};
