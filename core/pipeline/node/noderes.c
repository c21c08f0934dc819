/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass: read the machine on the worker, add what the collector has read of containers, fill the
 * calculators' input, calculate, and put the result on the Node when it differs enough from what is
 * there, or was put there too long ago.
 *
 * Usage is the difference of two readings: until there are two of them after a start, nothing is
 * put on the Node, and nothing taken away.
 */
#include "core/pipeline/node/noderes.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/conf/fragment.h"
#include "core/host/noderes.h"
#include "core/noderes/classes.h"
#include "core/noderes/devices.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/node/forecast.h"
#include "core/pipeline/node/lending.h"
#include "core/pipeline/node/measure.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "node"

#define QOS_LABEL "koordinator.sh/qosClass"
#define RESERVATION_ANNOTATION "node.koordinator.sh/reservation"
#define RAW_ANNOTATION "node.koordinator.sh/raw-allocatable" /* before it was amplified */
#define PRIO_LABEL "koordinator.sh/priority-class"
#define FIRST_PASSES 2u /* as many as readings are needed */
#define FIRST_PASS_MS 2000u
#define SAMPLE_MS 15000u /* between two readings of the machine */
#define PACE_MS 10000u /* the least time between two passes, however often the Node changes */

struct noderes {
	struct loop_timer *timer;
	bool reading; /* a job is under way */
	struct series_reading read; /* its result */
	char error[ERR_TEXT_MAX];
	const char *inventory; /* the file of devices, the configuration's text; NULL: none */
	char *inventory_text; /* as it was read last */
	struct nr_devices devices;
	char devices_error[ERR_TEXT_MAX];
	struct measure measure;
	struct forecast forecast;
	struct forecast_limits limits;
	bool keep_on_error;
	struct strategy strategy;
	struct kv *labels, *annotations; /* texts are the configuration's */
	unsigned n_labels, n_annotations;
	int64_t capacity[RP_NR_AMOUNTS], allocatable[RP_NR_AMOUNTS];
	struct rp_nr_measured measured;
	struct nr_result result;
	struct lending lending;
	struct past past;
	uint64_t started_ms, due_ms; /* monotonic; due: of the timer */
	bool settled; /* since the start enough was measured, or is not to be waited for any more */
	struct err failed[NR_CALCULATORS_MAX];
	uint64_t gave_ms[NR_CALCULATORS_MAX]; /* monotonic; 0: in no pass yet */
	struct instance *calculators[NR_CALCULATORS_MAX];
	unsigned n_calculators;
	uint64_t passes, pass_ms; /* ms: monotonic; 0: never */
};

/* ---- configuration --------------------------------------------------------------------------- */

static struct kv *pairs_of(rp_cfg map, unsigned *ret_n)
{
	struct kv *list = calloc(conf_count(map) + 1u, sizeof *list);
	*ret_n = list ? conf_count(map) : 0;
	for (unsigned i = 0; i < *ret_n; i++)
		list[i] = (struct kv){conf_key(map, i), conf_text(conf_item(map, i), "")};
	return list;
}

static int at_place(rp_cfg node, int r, struct err *err)
{
	char where[CONF_PLACE_MAX];
	if (r)
		(void)err_prefix(err, "%s: ", conf_place(node, where, sizeof where));
	return r;
}

/* -EINVAL for what is not valid, whichever node it is for. */
static int merge_configs(const struct conf *conf, const struct kv *labels, unsigned n_labels,
			 struct strategy *ret, struct err *err)
{
	rp_cfg base = conf_get(conf_root(conf), "nodeResources.strategy");
	rp_cfg list = conf_get(conf_root(conf), "nodeResources.nodeConfigs");
	bool found = false;
	strategy_defaults(ret);
	int r = at_place(base, strategy_merge(ret, base, STRATEGY_CONFIG, err), err);
	for (uint32_t i = 0; !r && i < conf_count(list); i++) {
		rp_cfg one = conf_item(list, i), match = conf_get(one, "matchLabels");
		rp_cfg fields = conf_get(one, "strategy");
		struct strategy tried = *ret;
		r = conf_count(match) && conf_count(fields)
			    ? strategy_merge(&tried, fields, STRATEGY_NODE_CONFIG, err)
			    : err_set(err, -EINVAL, "an entry needs matchLabels and a strategy");
		r = at_place(one, r, err);
		if (r || found || !strategy_selects(match, labels, n_labels))
			continue;
		*ret = tried;
		found = true;
	}
	return r;
}

int noderes_check(const struct conf *conf, struct err *err)
{
	struct strategy s;
	return merge_configs(conf, NULL, 0, &s, err);
}

/* When this calculator has given something last, by the list that stands. */
static uint64_t gave_ms(const struct noderes *n, const struct instance *calculator)
{
	for (unsigned i = 0; i < n->n_calculators; i++)
		if (n->calculators[i] == calculator)
			return n->gave_ms[i];
	return 0;
}

static void take_calculators(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	struct instance *list[NR_CALCULATORS_MAX] = {NULL};
	uint64_t gave[NR_CALCULATORS_MAX] = {0};
	unsigned count = 0;
	for (unsigned i = 0; i < p->n_controllers && count < NR_CALCULATORS_MAX; i++) {
		struct controller *c = p->controllers[i];
		if (!c->instance || !controller_runs(c) ||
		    instance_role(c->instance) != RP_KIND_CALCULATOR)
			continue;
		gave[count] = gave_ms(n, c->instance);
		list[count++] = c->instance;
	}
	memcpy(n->calculators, list, sizeof list);
	memcpy(n->gave_ms, gave, sizeof gave);
	n->n_calculators = count;
}

static bool wants_forecast(const struct noderes *n)
{
	for (unsigned i = 0; i < n->n_calculators; i++)
		if (instance_wants_forecast(n->calculators[i]))
			return true;
	return false;
}

static uint64_t interval_ms(const struct noderes *n)
{
	return n->passes < FIRST_PASSES ? FIRST_PASS_MS
					: 1000 * (uint64_t)n->strategy.values[RP_NR_REPORT_SECONDS];
}

/* The machine is read more often than passes are due. */
static void arm(struct noderes *n, uint64_t now)
{
	uint64_t in = n->due_ms > now ? n->due_ms - now : 0;
	(void)loop_timer_arm(n->timer, in < SAMPLE_MS ? in : SAMPLE_MS);
}

static void schedule(struct noderes *n, uint64_t in_ms)
{
	uint64_t now = clock_ms();
	n->due_ms = now + in_ms;
	arm(n, now);
}

/* Labels and annotations of the Node in the cluster; without one, those of rp.conf. */
struct texts {
	const struct kv *labels, *annotations;
	unsigned n_labels, n_annotations;
};

static struct texts node_texts(const struct pipeline *p)
{
	const struct noderes *n = p->noderes;
	const struct node_object *node = p->env.node;
	if (node)
		return (struct texts){node->labels, node->annotations, node->n_labels,
				      node->n_annotations};
	return (struct texts){n->labels, n->annotations, n->n_labels, n->n_annotations};
}

static void take_strategy(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	struct texts of = node_texts(p);
	struct err err = ERR_INIT;
	if (merge_configs(p->conf, of.labels, of.n_labels, &n->strategy, &err))
		log_error("%s", err.text); /* noderes_check() found nothing */
	strategy_of_node(&n->strategy, of.labels, of.n_labels, of.annotations, of.n_annotations);
}

void noderes_configure(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	rp_cfg node = conf_get(conf_root(p->conf), "nodeResources.node");
	free(n->labels);
	free(n->annotations);
	n->labels = pairs_of(conf_get(node, "labels"), &n->n_labels);
	n->annotations = pairs_of(conf_get(node, "annotations"), &n->n_annotations);
	take_strategy(p);
	n->inventory = conf_text(conf_get(conf_root(p->conf), "nodeResources.devices"), NULL);
	n->limits = (struct forecast_limits){
		conf_value(conf_get(conf_root(p->conf), "nodeResources.prediction.safetyMargin"),
			   RP_T_INT, 0),
		conf_value(conf_get(conf_root(p->conf), "nodeResources.prediction.coldStart"),
			   RP_T_DURATION, 0) /
			1000};
	n->keep_on_error = conf_value(conf_get(conf_root(p->conf), "nodeResources.keepOnError"),
				      RP_T_BOOL, 1) != 0;
	take_calculators(p);
	lending_keep(&n->lending, n->calculators, n->n_calculators);
	forecast_switch(p, &n->forecast, !p->env.trial && wants_forecast(n));
	if (n->n_calculators && !p->env.trial)
		schedule(n, FIRST_PASS_MS);
	else
		loop_timer_disarm(n->timer);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static uint64_t window_ms(const struct noderes *n)
{
	return 1000 * (uint64_t)n->strategy.values[RP_NR_AGGREGATE_SECONDS];
}

static bool counts_cached(const struct noderes *n)
{
	return n->strategy.values[RP_NR_MEMORY_COLLECT] == RP_NR_COLLECT_WITH_CACHE;
}

/* ---- input ----------------------------------------------------------------------------------- */

struct input {
	struct nr_input in;
	struct rp_nr_pod *pods;
	struct rp_nr_zone *zones;
	struct forecast_pod *expected; /* as many as pods */
	int64_t used[RP_NR_AMOUNTS]; /* by all pods */
};

static void input_fini(struct input *in)
{
	free(in->pods);
	free(in->zones);
	free(in->expected);
}

static const char *label_of(const struct pod *pod, const char *key)
{
	return kvs_get(&pod->labels, key);
}

static uint32_t qos_of(const struct pod *pod)
{
	static const uint32_t by_kubernetes[] = {[RP_QOS_GUARANTEED] = RP_KOORD_LSR,
						 [RP_QOS_BURSTABLE] = RP_KOORD_LS,
						 [RP_QOS_BEST_EFFORT] = RP_KOORD_BE};
	const char *label = label_of(pod, QOS_LABEL);
	if (label)
		return class_qos(label);
	return pod->qos <= RP_QOS_BEST_EFFORT ? by_kubernetes[pod->qos] : RP_KOORD_NONE;
}

static void add_usage(struct noderes *n, const struct ctr *ctr, uint64_t now, struct rp_nr_pod *pod)
{
	const struct series *s = measure_ctr(&n->measure, ctr->handle);
	int64_t cpu, memory;
	if (!s || !series_average(s, now, window_ms(n), &cpu, &memory)) {
		pod->flags &= ~RP_NR_POD_SAMPLED; /* a part of it would be less than it uses */
		return;
	}
	pod->usage[RP_NR_CPU] += cpu;
	pod->usage[RP_NR_MEMORY] += memory;
}

static bool fill_pod(struct noderes *n, const struct pod *pod, uint64_t now, struct rp_nr_pod *ret)
{
	const struct ctr *ctr;
	bool any = false;
	*ret = (struct rp_nr_pod){.size = sizeof *ret,
				  .flags = RP_NR_POD_ACTIVE | RP_NR_POD_SAMPLED,
				  .name = pod->name,
				  .qos = qos_of(pod)};
	ret->prio = class_prio_with_default(class_prio(label_of(pod, PRIO_LABEL), 0), ret->qos);
	DL_FOREACH2(pod->ctrs, ctr, pod_next)
	{
		if (!ctr_live(ctr->cur.state))
			continue;
		any = true;
		ret->request[RP_NR_CPU] += ctr->cur.needs.cpu_request;
		ret->request[RP_NR_MEMORY] += ctr->cur.needs.mem_request;
		add_usage(n, ctr, now, ret);
	}
	return any;
}

static int fill_pods(struct pipeline *p, uint64_t now, struct input *ret)
{
	const struct pod *pod;
	uint32_t n = 0;
	ret->pods = calloc(cache_n_pods(p->env.cache) + 1u, sizeof *ret->pods);
	ret->expected = calloc(cache_n_pods(p->env.cache) + 1u, sizeof *ret->expected);
	if (!ret->pods || !ret->expected)
		return -ENOMEM;
	for (pod = cache_pods(p->env.cache); pod; pod = pod->hh.next) {
		struct rp_nr_pod *to = &ret->pods[n];
		if (!fill_pod(p->noderes, pod, now, to))
			continue;
		ret->expected[n] = (struct forecast_pod){
			pod, to->prio, {to->request[RP_NR_CPU], to->request[RP_NR_MEMORY]}};
		n++;
		for (uint32_t k = 0; (to->flags & RP_NR_POD_SAMPLED) && k < RP_NR_AMOUNTS; k++)
			ret->used[k] += to->usage[k];
	}
	ret->in.pods = ret->pods;
	ret->in.n_pods = n;
	return 0;
}

static int fill_zones(struct pipeline *p, struct input *ret)
{
	uint32_t n = topo_n_units(p->env.topo, RP_LEVEL_NODE);
	ret->zones = calloc(n + 1u, sizeof *ret->zones);
	if (!ret->zones)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct rp_unit_info unit = {.size = sizeof unit};
		struct rp_node_info node = {.size = sizeof node};
		if (topo_unit(p->env.topo, RP_LEVEL_NODE, i, &unit) ||
		    topo_node(p->env.topo, unit.id, &node))
			continue;
		ret->zones[ret->in.n_zones++] =
			(struct rp_nr_zone){.size = sizeof *ret->zones,
					    .id = unit.id,
					    .allocatable = {1000 * (int64_t)rp_ids_count(unit.cpus),
							    (int64_t)node.memory}};
	}
	ret->in.zones = ret->zones;
	return 0;
}

/* The machine, less what rp.conf reserves: what holds where no agent tells of the Node. */
static void measure_node(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	struct rp_ids online;
	rp_cfg reserved = conf_get(conf_root(p->conf), "nodeResources.node.reserved");
	const int64_t keeps[RP_NR_AMOUNTS] = {
		conf_value(conf_get(reserved, "cpu"), RP_T_CPU, 0),
		conf_value(conf_get(reserved, "memory"), RP_T_BYTES, 0)};
	n->capacity[RP_NR_CPU] = topo_set(p->env.topo, RP_CPUS_ONLINE, &online)
					 ? 0
					 : 1000 * (int64_t)rp_ids_count(online);
	n->capacity[RP_NR_MEMORY] = (int64_t)topo_memory(p->env.topo);
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		n->allocatable[k] = n->capacity[k] > keeps[k] ? n->capacity[k] - keeps[k] : 0;
}

static void amounts_in_cluster(const struct node_amount *list, uint32_t n,
			       int64_t of[RP_NR_AMOUNTS])
{
	for (uint32_t i = 0; i < n; i++) {
		if (str_eq(list[i].name, "cpu"))
			of[RP_NR_CPU] = list[i].amount;
		else if (str_eq(list[i].name, "memory"))
			of[RP_NR_MEMORY] = list[i].amount;
	}
}

/* Amounts that an annotation of the Node tells, under a key of its map, if one is said. What it
 * does not tell, and an annotation that makes no sense, leave what there is. */
static void read_amounts(const struct texts *of, const char *annotation, const char *key,
			 int64_t ret[RP_NR_AMOUNTS])
{
	struct fragment *f = NULL;
	rp_cfg root = NULL;
	const char *text = kv_text(of->annotations, of->n_annotations, annotation);
	if (text && fragment_parse(text, &f, &root, NULL) == 0) {
		rp_cfg map = key ? conf_get(root, key) : root;
		ret[RP_NR_CPU] = conf_value(conf_get(map, "cpu"), RP_T_CPU, ret[RP_NR_CPU]);
		ret[RP_NR_MEMORY] =
			conf_value(conf_get(map, "memory"), RP_T_BYTES, ret[RP_NR_MEMORY]);
	}
	fragment_free(f);
}

static void fill_node(struct pipeline *p, struct nr_input *in)
{
	struct noderes *n = p->noderes;
	const struct node_object *node = p->env.node;
	struct texts of = node_texts(p);
	measure_node(p);
	if (node) {
		amounts_in_cluster(node->capacity, node->n_capacity, n->capacity);
		amounts_in_cluster(node->allocatable, node->n_allocatable, n->allocatable);
	}
	in->node = (struct rp_nr_node){.size = sizeof in->node, .n_zones = in->n_zones};
	memcpy(in->node.capacity, n->capacity, sizeof in->node.capacity);
	memcpy(in->node.allocatable, n->allocatable, sizeof in->node.allocatable);
	read_amounts(&of, RESERVATION_ANNOTATION, "resources", in->node.reserved);
}

static int fill_reclaimable(struct pipeline *p, uint64_t now, const struct input *of,
			    struct rp_nr_measured *m)
{
	const struct noderes *n = p->noderes;
	struct texts texts = node_texts(p);
	int64_t allocatable[RP_NR_AMOUNTS];
	memcpy(allocatable, n->allocatable, sizeof allocatable);
	read_amounts(&texts, RAW_ANNOTATION, NULL, allocatable);
	return forecast_reclaimable(&n->forecast, &n->limits, of->expected, of->in.n_pods,
				    allocatable, now, m->prod_reclaimable);
}

static void fill_measured(struct noderes *n, uint64_t now, const struct input *of,
			  struct rp_nr_measured *m)
{
	*m = (struct rp_nr_measured){.size = sizeof *m,
				     .age_ms = n->read.at_ms ? (int64_t)(now - n->read.at_ms)
							     : RP_NOT_SET};
	int64_t limit = n->strategy.values[RP_NR_DEGRADE_MINUTES] * 60 * 1000;
	/* the average up to the last reading, which may be older than the window */
	m->degraded = !series_average(&n->measure.node, n->read.at_ms, window_ms(n),
				      &m->node[RP_NR_CPU], &m->node[RP_NR_MEMORY]) ||
		      m->age_ms > limit;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		m->system[k] = m->node[k] > of->used[k] ? m->node[k] - of->used[k] : 0;
}

static int fill_input(struct pipeline *p, uint64_t now, struct input *ret)
{
	struct noderes *n = p->noderes;
	*ret = (struct input){0};
	memcpy(ret->in.strategy, n->strategy.values, sizeof ret->in.strategy);
	struct texts of = node_texts(p);
	ret->in.labels = of.labels;
	ret->in.n_labels = of.n_labels;
	ret->in.annotations = of.annotations;
	ret->in.n_annotations = of.n_annotations;
	int r = fill_pods(p, now, ret);
	if (!r)
		r = fill_zones(p, ret);
	fill_node(p, &ret->in);
	ret->in.devices = n->devices.list;
	ret->in.n_devices = n->devices.n;
	fill_measured(n, now, ret, &n->measured);
	if (!r)
		r = fill_reclaimable(p, now, ret, &n->measured);
	ret->in.measured = n->measured;
	return r;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void tell_failures(struct noderes *n, const struct err *before)
{
	for (unsigned i = 0; i < n->n_calculators; i++)
		if (n->failed[i].text[0] && !str_eq(n->failed[i].text, before[i].text))
			log_warning("calculator %s: %s", instance_name(n->calculators[i]),
				    n->failed[i].text);
}

/* Enough was measured to go by, or will not be; whoever waited for that is told. */
static void settle(struct pipeline *p, uint64_t now)
{
	struct noderes *n = p->noderes;
	uint64_t limit = (uint64_t)n->strategy.values[RP_NR_DEGRADE_MINUTES] * 60 * 1000;
	if (n->settled || (n->measured.degraded && n->strategy.values[RP_NR_ENABLE] == 1 &&
			   now - n->started_ms <= limit))
		return;
	n->settled = true;
	if (p->env.wished)
		p->env.wished(p->env.arg);
}

static int put_on_node(struct pipeline *p, uint64_t now)
{
	struct noderes *n = p->noderes;
	const struct lending_pass pass = {.calculators = n->calculators,
					  .n_calculators = n->n_calculators,
					  .result = &n->result,
					  .strategy = &n->strategy,
					  .node = p->env.node,
					  .cluster = conf_core(p->conf)->agent.cluster};
	return n->settled ? lending_decide(&n->lending, &pass, now) : 0;
}

/* Calculators of which what they gave stands when they fail: not for longer than one would go by
 * what was measured. */
static uint32_t kept_calculators(const struct noderes *n, uint64_t now)
{
	uint64_t limit = (uint64_t)n->strategy.values[RP_NR_DEGRADE_MINUTES] * 60 * 1000;
	uint32_t kept = 0;
	for (unsigned i = 0; n->keep_on_error && i < n->n_calculators; i++)
		if (n->gave_ms[i] && now - n->gave_ms[i] <= limit)
			kept |= 1u << i;
	return kept;
}

static int calculate(struct noderes *n, uint64_t now)
{
	struct nr_result result = {0};
	bool enabled = n->strategy.values[RP_NR_ENABLE] == 1;
	const struct nr_asking how = {.reset = !enabled,
				      .message = "lending is switched off",
				      .before = &n->result,
				      .kept = enabled ? kept_calculators(n, now) : 0};
	int r = nr_calculate(n->calculators, n->n_calculators, &how, &result, n->failed);
	if (r) {
		nr_result_fini(&result);
		return r;
	}
	for (unsigned i = 0; i < n->n_calculators; i++)
		if (!n->failed[i].text[0])
			n->gave_ms[i] = now;
	nr_result_fini(&n->result);
	n->result = result;
	return 0;
}

static int run_pass(struct pipeline *p, const struct input *input, uint64_t now)
{
	struct noderes *n = p->noderes;
	struct err before[NR_CALCULATORS_MAX];
	memcpy(before, n->failed, sizeof before);
	p->env.noderes = &input->in;
	watchdog_begin(p->watchdog);
	int r = calculate(n, now);
	if (!r) {
		settle(p, now);
		r = put_on_node(p, now);
		past_note(&n->past, &n->result, &n->lending.stands, now);
	}
	watchdog_end(p->watchdog);
	p->env.noderes = NULL;
	tell_failures(n, before);
	return r;
}

/* What was measured is learned from and, if a pass is due, calculated with. */
static int look(struct pipeline *p, bool pass)
{
	struct noderes *n = p->noderes;
	struct input input;
	uint64_t now = clock_ms();
	measure_ctrs(&n->measure, p->env.cache, counts_cached(n), window_ms(n));
	bool train = forecast_due(&n->forecast, &n->measure, now);
	if (!pass && !train)
		return 0;
	n->passes += pass;
	int r = fill_input(p, now, &input);
	if (!r && train)
		forecast_train(p, &n->forecast, &n->measure, input.expected, input.in.n_pods, now);
	if (!r && pass)
		r = run_pass(p, &input, now);
	if (pass)
		n->pass_ms = now;
	input_fini(&input);
	return r;
}

/* ---- the timer ------------------------------------------------------------------------------- */

struct job {
	struct pipeline *p;
	bool pass; /* one is due then */
	struct series_reading reading;
	struct err err;
	char *inventory; /* its path; NULL: none */
	char *devices; /* its text; NULL: it cannot be read, and why */
	int devices_failed;
};

static void job_free(struct job *job)
{
	free(job->inventory);
	free(job->devices);
	free(job);
}

/* [worker] */
static int read_machine(void *arg)
{
	struct job *job = arg;
	size_t len;
	if (job->inventory)
		job->devices_failed = fs_read_all(&job->p->root, job->inventory, NR_INVENTORY_MAX,
						  &job->devices, &len);
	return series_read_node(&job->p->root, &job->reading, &job->err);
}

/* Without a file there are no devices; what is malformed in it leaves those that there were. */
static void take_devices(struct noderes *n, struct job *job)
{
	struct nr_devices devices = {0};
	struct err err = ERR_INIT;
	int r = job->devices_failed;
	const char *text = job->devices ? job->devices : "";
	if (n->inventory_text && str_eq(n->inventory_text, text) && !r)
		return;
	if (r)
		(void)err_errno(&err, r, "nodeResources.devices: %s", job->inventory);
	else if (nr_devices_parse(text, &devices, &err))
		(void)err_prefix(&err, "nodeResources.devices: %s: ", job->inventory);
	if (*err.text && !str_eq(err.text, n->devices_error))
		log_warning("%s", err.text);
	(void)snprintf(n->devices_error, sizeof n->devices_error, "%s", err.text);
	free(n->inventory_text);
	n->inventory_text = job->devices;
	job->devices = NULL;
	if (*err.text && r != -ENOENT)
		return;
	nr_devices_fini(&n->devices);
	n->devices = devices;
}

static void machine_read(void *arg, int result)
{
	struct job *job = arg;
	struct pipeline *p = job->p;
	struct noderes *n = p->noderes;
	n->reading = false;
	if (result) {
		if (!str_eq(n->error, job->err.text))
			log_warning("the node cannot be measured: %s", job->err.text);
		(void)snprintf(n->error, sizeof n->error, "%s", job->err.text);
	} else {
		n->error[0] = '\0';
		n->read = job->reading;
		series_put(&n->measure.node, &job->reading, window_ms(n));
	}
	take_devices(n, job);
	bool pass = job->pass;
	job_free(job);
	if (n->n_calculators && look(p, pass))
		log_warning("out of memory: the node's resources stay as they are");
}

static void on_timer(void *arg)
{
	struct pipeline *p = arg;
	struct noderes *n = p->noderes;
	uint64_t now = clock_ms();
	struct job *job = n->reading ? NULL : calloc(1, sizeof *job);
	bool pass = now >= n->due_ms;
	if (pass)
		schedule(n, interval_ms(n));
	else
		arm(n, now);
	if (!job)
		return;
	job->p = p;
	job->pass = pass;
	job->inventory = n->inventory ? strdup(n->inventory) : NULL;
	if (worker_submit(p->disk, read_machine, machine_read, job))
		job_free(job);
	else
		n->reading = true;
}

void noderes_node_changed(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	uint64_t now = clock_ms();
	if (!n || !p->conf || p->env.trial)
		return;
	take_strategy(p);
	if (!n->n_calculators)
		return;
	uint64_t at = n->pass_ms + PACE_MS > now ? n->pass_ms + PACE_MS : now;
	if (n->passes && at < n->due_ms)
		schedule(n, at - now);
	watchdog_begin(p->watchdog);
	if (n->passes && put_on_node(p, now))
		log_warning("out of memory: the Node stays as it is");
	watchdog_end(p->watchdog);
}

void noderes_stop(struct pipeline *p)
{
	if (!p->noderes)
		return;
	loop_timer_disarm(p->noderes->timer);
	p->noderes->n_calculators = 0;
}

int noderes_init(struct pipeline *p)
{
	p->noderes = calloc(1, sizeof *p->noderes);
	if (!p->noderes)
		return -ENOMEM;
	strategy_defaults(&p->noderes->strategy);
	p->noderes->started_ms = clock_ms();
	p->noderes->timer = loop_timer_new(p->env.loop, on_timer, p);
	return p->noderes->timer ? 0 : -ENOMEM;
}

void noderes_fini(struct pipeline *p)
{
	struct noderes *n = p->noderes;
	if (!n)
		return;
	forecast_stop(p, &n->forecast);
	measure_fini(&n->measure);
	loop_timer_free(n->timer);
	nr_result_fini(&n->result);
	lending_fini(&n->lending);
	past_fini(&n->past);
	free(n->labels);
	free(n->annotations);
	free(n->inventory_text);
	nr_devices_fini(&n->devices);
	free(n);
	p->noderes = NULL;
}

/* ---- for people ------------------------------------------------------------------------------ */

bool pipeline_noderes(const struct pipeline *p, struct noderes_view *ret)
{
	const struct noderes *n = p->noderes;
	*ret = (struct noderes_view){.enabled = n->strategy.values[RP_NR_ENABLE] == 1,
				     .strategy = &n->strategy,
				     .measured = &n->measured,
				     .capacity = n->capacity,
				     .allocatable = n->allocatable,
				     .result = &n->result,
				     .node = &n->lending.stands,
				     .past = &n->past,
				     .settling = n->n_calculators && !n->settled,
				     .passes = n->passes,
				     .writes = n->lending.writes,
				     .age_ms = n->pass_ms ? clock_ms() - n->pass_ms : 0,
				     .error = n->error};
	return n->n_calculators != 0;
}

const char *pipeline_noderes_error(const struct pipeline *p, unsigned controller)
{
	const struct noderes *n = p->noderes;
	for (unsigned i = 0; i < n->n_calculators; i++)
		if (n->calculators[i] == p->controllers[controller]->instance)
			return n->failed[i].text;
	return "";
}
