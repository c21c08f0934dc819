/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pass reads the node's usage on the disk worker, adds the collector's readings of containers,
 * fills the calculators' input, calculates, and publishes the result if it differs enough from the
 * Node or the last publication is too old.
 *
 * Usage is the difference of two readings. Before the second reading after a start the Node's
 * entries are left alone.
 */
#include "core/nri-rpd/pipeline/node/noderes.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/annotation_rules.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/inputs.h"
#include "core/nri-rpd/pipeline/node/state.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/noderes/pass.h"
#include "core/nri-rpd/pipeline/controllers/life.h"

#define LOG_SOURCE "node"

#define ZONE_NAME_MAX 32u
#define APPS_KEY "nodeResources.hostApplications"
#define FIRST_PASSES 2u /* number of passes needed to get two readings */
#define FIRST_PASS_MS 2000u
#define SAMPLE_MS 15000u /* interval of readings of the node */
#define PACE_MS 10000u /* shortest time between two passes, however often the Node changes */

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

/* Merges the strategies of rp.conf for a node with these labels. Returns -EINVAL if any entry is
 * invalid, also one for other nodes. */
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
	int r = merge_configs(conf, NULL, 0, &s, err);
	return r ? r : host_apps_check(conf_get(conf_root(conf), APPS_KEY), err);
}

/* Returns a calculator's position. Built-in calculators come first, others keep the order of the
 * configuration. */
static unsigned noderes_rank(const char *name)
{
	unsigned i = 0;
	while (i < CONF_CALCULATORS && !str_eq(conf_calculators[i], name))
		i++;
	return i;
}

static void noderes_insert(struct instance **list, unsigned n, struct instance *one)
{
	unsigned at = n;
	for (; at && noderes_rank(instance_name(list[at - 1])) > noderes_rank(instance_name(one));
	     at--)
		list[at] = list[at - 1];
	list[at] = one;
}

static void take_calculators(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	struct instance *list[NR_CALCULATORS_MAX] = {NULL};
	uint64_t gave[NR_CALCULATORS_MAX] = {0};
	struct nr_cost costs[NR_CALCULATORS_MAX] = {{0}};
	unsigned count = 0;
	for (unsigned i = 0; i < p->controllers.n && count < NR_CALCULATORS_MAX; i++) {
		struct controller *c = p->controllers.list[i];
		if (c->instance && controller_runs(c) &&
		    instance_role(c->instance) == RP_KIND_CALCULATOR)
			noderes_insert(list, count++, c->instance);
	}
	/* keep the data of calculators that remain */
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < n->n_calculators; k++)
			if (n->calculators[k] == list[i]) {
				gave[i] = n->gave_ms[k];
				costs[i] = n->costs[k];
			}
	memcpy(n->calculators, list, sizeof list);
	memcpy(n->gave_ms, gave, sizeof gave);
	memcpy(n->costs, costs, sizeof costs);
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

/* Arms the timer for the next reading or pass. Readings are more frequent than passes. */
static void noderes_arm(struct noderes *n, uint64_t now)
{
	uint64_t in = n->due_ms > now ? n->due_ms - now : 0;
	(void)loop_timer_arm(n->timer, in < SAMPLE_MS ? in : SAMPLE_MS);
}

static void noderes_schedule(struct noderes *n, uint64_t in_ms)
{
	uint64_t now = clock_ms();
	n->due_ms = now + in_ms;
	noderes_arm(n, now);
}

struct texts node_texts(const struct pipeline *p)
{
	const struct noderes *n = p->node.noderes;
	const struct node_object *node = p->env.node;
	const struct prefixes *names = cache_prefixes(p->env.cache);
	if (node)
		return (struct texts){node->labels, node->annotations, node->n_labels,
				      node->n_annotations, names};
	return (struct texts){n->labels, n->annotations, n->n_labels, n->n_annotations, names};
}

/* Raises an interval to the least one of rp.conf, whether the interval comes from rp.conf or from
 * the Node. */
static void raise_interval(struct pipeline *p, uint32_t field, const char *least)
{
	int64_t *value = &p->node.noderes->strategy.values[field];
	int64_t ms = conf_core_value(p->conf, least, RP_T_DURATION);
	if (*value < (ms + 999) / 1000)
		*value = (ms + 999) / 1000;
}

static void take_strategy(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	struct texts of = node_texts(p);
	struct err err = ERR_INIT;
	bool cached = counts_cached(n);
	if (merge_configs(p->conf, of.labels, of.n_labels, &n->strategy, &err))
		log_error("%s", err.text); /* unexpected: noderes_check() has found no error */
	strategy_of_node(&n->strategy, of.names, of.labels, of.n_labels, of.annotations,
			 of.n_annotations);
	raise_interval(p, RP_NR_REPORT_SECONDS, "nodeResources.least.report");
	raise_interval(p, RP_NR_AGGREGATE_SECONDS, "nodeResources.least.aggregate");
	if (cached == counts_cached(n))
		return;
	/* measurements by the other rule would falsify averages */
	measure_forget(&n->measure);
	host_apps_forget(&n->apps);
}

/* Discards results under old names after a change of prefixes. The next pass calculates them
 * again. */
static void take_names(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	const struct prefixes *names = &conf_core(p->conf)->annotations.prefixes;
	if (memcmp(&n->names, names, sizeof *names) == 0)
		return;
	n->names = *names;
	nr_result_fini(&n->result);
	memset(n->gave_ms, 0, sizeof n->gave_ms);
}

void noderes_configure(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	rp_cfg node = conf_get(conf_root(p->conf), "nodeResources.node");
	free(n->labels);
	free(n->annotations);
	n->labels = pairs_of(conf_get(node, "labels"), &n->n_labels);
	n->annotations = pairs_of(conf_get(node, "annotations"), &n->n_annotations);
	take_strategy(p);
	n->inventory = conf_text(conf_get(conf_root(p->conf), "nodeResources.devices"), NULL);
	n->limits = (struct forecast_limits){
		conf_core_value(p->conf, "nodeResources.prediction.safetyMargin", RP_T_INT),
		conf_core_value(p->conf, "nodeResources.prediction.coldStart", RP_T_DURATION) /
			1000};
	n->keep_on_error = conf_core_value(p->conf, "nodeResources.keepOnError", RP_T_BOOL) != 0;
	if (host_apps_configure(&n->apps, conf_get(conf_root(p->conf), APPS_KEY)))
		log_warning("out of memory: applications outside of pods are not measured");
	take_calculators(p);
	take_names(p);
	lending_keep(&n->lending, n->calculators, n->n_calculators);
	outcome_configure(&n->outcome,
			  conf_text(conf_get(conf_root(p->conf), "nodeResources.file"), NULL));
	if (!n->n_calculators && !p->env.trial)
		outcome_put(p, &n->outcome, &n->lending.stands);
	forecast_switch(p, &n->forecast, !p->env.trial && wants_forecast(n));
	if (n->n_calculators && !p->env.trial)
		noderes_schedule(n, FIRST_PASS_MS);
	else
		loop_timer_disarm(n->timer);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void tell_failures(struct noderes *n, const struct err *before, const struct nr_cost *costs)
{
	for (unsigned i = 0; i < n->n_calculators; i++) {
		if (n->costs[i].slow != costs[i].slow)
			log_warning("calculator %s: a call took %u ms, more than %u ms, and delays "
				    "the daemon",
				    instance_name(n->calculators[i]),
				    (unsigned)(n->costs[i].slowest_ns / 1000000), NR_BUDGET_MS);
		if (n->failed[i].text[0] && !str_eq(n->failed[i].text, before[i].text))
			log_warning("calculator %s: %s", instance_name(n->calculators[i]),
				    n->failed[i].text);
	}
}

/* Ends the settling after the start when enough has been measured or the time limit is over, and
 * notifies the daemon. */
static void noderes_settle(struct pipeline *p, uint64_t now)
{
	struct noderes *n = p->node.noderes;
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
	struct noderes *n = p->node.noderes;
	struct lending_pass pass = {.calculators = n->calculators,
				    .n_calculators = n->n_calculators,
				    .result = &n->result,
				    .costs = n->costs,
				    .strategy = &n->strategy,
				    .node = p->env.node,
				    .cluster = conf_core(p->conf)->agent.cluster};
	int r = n->settled ? lending_decide(&n->lending, &pass, now) : 0;
	if (n->settled && !r)
		outcome_put(p, &n->outcome, &n->lending.stands);
	if (pass.other_zones && p->env.wished)
		p->env.wished(p->env.arg);
	return r;
}

/* Returns the calculators whose previous results remain after a failure, as a bit mask. The limit
 * is the same as for measurements. */
static uint32_t kept_calculators(const struct noderes *n, uint64_t now)
{
	uint64_t limit = (uint64_t)n->strategy.values[RP_NR_DEGRADE_MINUTES] * 60 * 1000;
	uint32_t kept = 0;
	for (unsigned i = 0; n->keep_on_error && i < n->n_calculators; i++)
		if (n->gave_ms[i] && now - n->gave_ms[i] <= limit)
			kept |= 1u << i;
	return kept;
}

static int noderes_calculate(struct noderes *n, uint64_t now)
{
	struct nr_result result = {0};
	bool enabled = n->strategy.values[RP_NR_ENABLE] == 1;
	const struct nr_asking how = {.reset = !enabled,
				      .message = "overcommitment is off",
				      .before = &n->result,
				      .kept = enabled ? kept_calculators(n, now) : 0,
				      .costs = n->costs};
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

static int run_pass(struct pipeline *p, const struct inputs *input, uint64_t now)
{
	struct noderes *n = p->node.noderes;
	struct err before[NR_CALCULATORS_MAX];
	struct nr_cost costs[NR_CALCULATORS_MAX];
	memcpy(before, n->failed, sizeof before);
	memcpy(costs, n->costs, sizeof costs);
	p->env.noderes = &input->in;
	watchdog_begin(p->watchdog);
	int r = noderes_calculate(n, now);
	if (!r) {
		noderes_settle(p, now);
		r = put_on_node(p, now);
		past_note(&n->past, &n->result, &n->lending.stands, now);
	}
	watchdog_end(p->watchdog);
	p->env.noderes = NULL;
	tell_failures(n, before, costs);
	return r;
}

/* Updates the series, trains the forecast, and runs a pass if `pass`. */
static int noderes_look(struct pipeline *p, bool pass)
{
	struct noderes *n = p->node.noderes;
	struct inputs input;
	uint64_t now = clock_ms(), cpu_ns = thread_cpu_ns();
	measure_ctrs(&n->measure, p->env.cache, counts_cached(n), window_ms(n));
	host_apps_measure(&n->apps, counts_cached(n), window_ms(n));
	bool train = forecast_due(&n->forecast, &n->measure, now);
	if (!pass && !train)
		return 0;
	n->passes += pass;
	int r = inputs_fill(p, now, &input);
	if (!r && train)
		forecast_train(p, &n->forecast, &n->measure, input.expected, input.n_expected, now);
	if (!r && pass)
		r = run_pass(p, &input, now);
	if (pass)
		n->pass_ms = now;
	inputs_fini(&input);
	n->cpu_ns += thread_cpu_ns() - cpu_ns;
	return r;
}

/* ---- the timer ------------------------------------------------------------------------------- */

struct job {
	struct pipeline *p;
	bool pass; /* a pass follows the reading */
	bool cached; /* count file pages as used memory */
	struct series_reading reading;
	struct cpu_facts cpu;
	struct err err;
	char *inventory; /* path of the inventory; NULL: none */
	char *devices; /* content of the inventory; NULL: unreadable, see devices_failed */
	int devices_failed;
};

static void job_free(struct job *job)
{
	free(job->inventory);
	free(job->devices);
	free(job);
}

/* Reads usage, CPU facts and the inventory. Runs on the disk worker. */
static int read_machine(void *arg)
{
	struct job *job = arg;
	size_t len;
	if (job->inventory)
		job->devices_failed = fs_read_all(&job->p->root, job->inventory, NR_INVENTORY_MAX,
						  &job->devices, &len);
	cpu_facts_read(&job->p->root, &job->cpu);
	return series_read_node(&job->p->root, job->cached, &job->reading, &job->err);
}

/* Parses the inventory of devices. Without a file there are no devices; a malformed file leaves the
 * previous ones. */
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

/* Sums the present usage of pods and applications. Returns false if a container is not measured. */
static bool used_by_others(struct pipeline *p, int64_t ret[RP_NR_AMOUNTS])
{
	struct noderes *n = p->node.noderes;
	uint64_t now = clock_ms();
	const struct ctr *ctr;
	int64_t one[RP_NR_AMOUNTS];
	ret[RP_NR_CPU] = ret[RP_NR_MEMORY] = 0;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		if (!ctr_live(ctr->cur.state))
			continue;
		if (!measure_rate(ctr->usage, counts_cached(n), now, one))
			return false;
		for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
			ret[k] += one[k];
	}
	for (uint32_t i = 0; i < n->apps.n; i++)
		if (measure_rate(&n->apps.list[i].usage, counts_cached(n), now, one))
			for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
				ret[k] += one[k];
	return true;
}

static void machine_read(void *arg, int result)
{
	struct job *job = arg;
	struct pipeline *p = job->p;
	struct noderes *n = p->node.noderes;
	n->reading = false;
	n->cpu = job->cpu;
	if (job->cached != counts_cached(n)) {
		job_free(job); /* the reading follows the previous configuration */
		return;
	}
	if (result) {
		if (!str_eq(n->error, job->err.text))
			log_warning("the node cannot be measured: %s", job->err.text);
		(void)snprintf(n->error, sizeof n->error, "%s", job->err.text);
	} else {
		n->error[0] = '\0';
		n->read = job->reading;
		int64_t others[RP_NR_AMOUNTS];
		bool known = used_by_others(p, others);
		measure_machine(&n->measure, &job->reading, window_ms(n), known ? others : NULL);
	}
	take_devices(n, job);
	bool pass = job->pass;
	job_free(job);
	if (n->n_calculators && noderes_look(p, pass))
		log_warning("out of memory: the node's resources are unchanged");
}

static void on_timer(void *arg)
{
	struct pipeline *p = arg;
	struct noderes *n = p->node.noderes;
	uint64_t now = clock_ms();
	struct job *job = n->reading ? NULL : calloc(1, sizeof *job);
	bool pass = now >= n->due_ms;
	if (pass)
		noderes_schedule(n, interval_ms(n));
	else
		noderes_arm(n, now);
	if (!job)
		return;
	job->p = p;
	job->pass = pass;
	job->cached = counts_cached(n);
	job->inventory = n->inventory ? strdup(n->inventory) : NULL;
	if (worker_submit(p->disk, read_machine, machine_read, job))
		job_free(job);
	else
		n->reading = true;
}

void noderes_node_changed(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	uint64_t now = clock_ms();
	if (!n || !p->conf || p->env.trial)
		return;
	take_strategy(p);
	if (!n->n_calculators)
		return;
	uint64_t at = n->pass_ms + PACE_MS > now ? n->pass_ms + PACE_MS : now;
	if (n->passes && at < n->due_ms)
		noderes_schedule(n, at - now);
	watchdog_begin(p->watchdog);
	if (n->passes && put_on_node(p, now))
		log_warning("out of memory: the Node is unchanged");
	watchdog_end(p->watchdog);
}

void noderes_stop(struct pipeline *p)
{
	if (!p->node.noderes)
		return;
	loop_timer_disarm(p->node.noderes->timer);
	p->node.noderes->n_calculators = 0;
	outcome_configure(&p->node.noderes->outcome, NULL); /* the configuration ends */
}

int noderes_init(struct pipeline *p)
{
	p->node.noderes = calloc(1, sizeof *p->node.noderes);
	if (!p->node.noderes)
		return -ENOMEM;
	strategy_defaults(&p->node.noderes->strategy);
	p->node.noderes->started_ms = clock_ms();
	p->node.noderes->timer = loop_timer_new(p->env.loop, on_timer, p);
	return p->node.noderes->timer ? 0 : -ENOMEM;
}

void noderes_fini(struct pipeline *p)
{
	struct noderes *n = p->node.noderes;
	if (!n)
		return;
	forecast_stop(p, &n->forecast);
	measure_forget(&n->measure);
	host_apps_fini(&n->apps);
	loop_timer_free(n->timer);
	nr_result_fini(&n->result);
	lending_fini(&n->lending);
	past_fini(&n->past);
	outcome_fini(&n->outcome);
	free(n->labels);
	free(n->annotations);
	free(n->inventory_text);
	nr_devices_fini(&n->devices);
	free(n);
	p->node.noderes = NULL;
}

/* ---- applications, for the collector --------------------------------------------------------- */

DEFINE_GETTER(pipeline_host_apps, const struct host_apps *, &p->node.noderes->apps)

struct usage *pipeline_app_usage(struct pipeline *p, uint32_t generation, uint32_t index)
{
	struct host_apps *a = &p->node.noderes->apps;
	return generation == a->generation && index < a->n ? &a->list[index].usage : NULL;
}

/* ---- zones ----------------------------------------------------------------------------------- */

bool noderes_zones(const struct pipeline *p, const struct rp_zone_sink *sink)
{
	const struct nr_result *zones = &p->node.noderes->lending.zones;
	char name[ZONE_NAME_MAX];
	for (uint32_t z = 0; zones->n_values && z < p->node.noderes->n_zones; z++) {
		(void)snprintf(name, sizeof name, "node-%u", p->node.noderes->zone_ids[z]);
		sink->zone(sink->ctx, name, "Node", "");
		for (unsigned i = 0; i < zones->n_values; i++) {
			const struct nr_value *v = &zones->values[i];
			int64_t amount = z < v->n_zones ? v->zones[z] / 1000 : 0;
			sink->resource(sink->ctx, v->name, amount, amount, amount);
		}
	}
	return zones->n_values != 0;
}

/* ---- status ---------------------------------------------------------------------------------- */

bool pipeline_noderes(const struct pipeline *p, struct noderes_view *ret)
{
	const struct noderes *n = p->node.noderes;
	*ret = (struct noderes_view){.enabled = n->strategy.values[RP_NR_ENABLE] == 1,
				     .strategy = &n->strategy,
				     .measured = &n->measured,
				     .aggregated = n->aggregated,
				     .n_aggregated = n->n_aggregated,
				     .capacity = n->capacity,
				     .allocatable = n->allocatable,
				     .result = &n->result,
				     .node = &n->lending.stands,
				     .past = &n->past,
				     .settling = n->n_calculators && !n->settled,
				     .passes = n->passes,
				     .writes = n->lending.writes,
				     .cpu_ns = n->cpu_ns,
				     .age_ms = n->pass_ms ? clock_ms() - n->pass_ms : 0,
				     .error = n->error};
	return n->n_calculators != 0;
}

bool pipeline_calculator(const struct pipeline *p, unsigned i, struct calculator_view *ret)
{
	const struct noderes *n = p->node.noderes;
	if (i >= n->n_calculators)
		return false;
	*ret = (struct calculator_view){.name = instance_name(n->calculators[i]),
					.error = n->failed[i].text,
					.cost = &n->costs[i]};
	return true;
}
