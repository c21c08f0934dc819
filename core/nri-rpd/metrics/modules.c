/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of modules. Names and labels are checked, because one invalid sample would make the whole
 * scrape invalid. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/metrics/modules.h"

#define LOG_SOURCE "metrics"

struct scrape {
	struct expo *e;
	struct pipeline *p;
	const struct conf_core *core;
	const struct instance *instance; /* instance whose metrics are collected */
	unsigned n, rejected, failed;
};

static bool any_matches(const struct conf_strings *globs, const char *group, const char *name)
{
	char both[128];
	(void)snprintf(both, sizeof both, "%s/%s", group, name);
	for (unsigned i = 0; i < globs->n; i++)
		if (str_glob(globs->items[i], group) || str_glob(globs->items[i], name) ||
		    str_glob(globs->items[i], both))
			return true;
	return false;
}

bool collect_wanted(const struct conf_core *core, const char *group, const char *name)
{
	return any_matches(&core->metrics.enabled, group, name) ||
	       any_matches(&core->metrics.polled, group, name);
}

/* Removes punctuation from a name, as in the metrics of the Go policies: "topology-aware" →
 * "topologyaware". */
static void modules_squeeze(const char *name, char ret[RP_NAME_MAX])
{
	size_t n = 0;
	for (; *name; name++)
		if (isalnum((unsigned char)*name))
			ret[n++] = *name;
	ret[n] = '\0';
}

/* Builds the full name of a metric. It begins with nri_policy_ for a policy, with nri_ and the
 * module's name for others, whether or not the module adds that prefix itself. */
static void full_name(const struct instance *i, const char *name, char *ret, size_t size)
{
	char module[RP_NAME_MAX];
	modules_squeeze(instance_name(i), module);
	size_t len = strlen(module);
	bool own = strncmp(name, module, len) == 0 && name[len] == '_';
	const char *group = instance_role(i) == RP_KIND_POLICY ? "policy_" : "";
	if (str_has_prefix(name, "policy_"))
		(void)snprintf(ret, size, "nri_%s", name);
	else if (own)
		(void)snprintf(ret, size, "nri_%s%s", group, name);
	else
		(void)snprintf(ret, size, "nri_%s%s_%s", group, module, name);
}

static void add_sample(struct scrape *s, enum expo_type type, const char *name, const char *help,
		       const char *labels, double value)
{
	char full[EXPO_NAME_MAX + 1]; /* names that do not fit are too long */
	if (++s->n > METRICS_SAMPLES_MAX || !name || !*name) {
		s->rejected++;
		return;
	}
	full_name(s->instance, name, full, sizeof full);
	if (!expo_add_checked(s->e, expo_family(s->e, full, type, help), labels ? labels : "",
			      value))
		s->rejected++;
}

static void on_gauge(void *ctx, const char *name, const char *help, const char *labels,
		     double value)
{
	add_sample(ctx, EXPO_GAUGE, name, help, labels, value);
}

static void on_counter(void *ctx, const char *name, const char *help, const char *labels,
		       double value)
{
	add_sample(ctx, EXPO_COUNTER, name, help, labels, value);
}

static void add_foreign_calls(const struct scrape *s, const struct instance *i)
{
	char labels[RP_NAME_MAX + 64];
	(void)snprintf(labels, sizeof labels, "kind=\"%s\",module=\"%s\"",
		       kind_name(instance_role(i)), instance_name(i));
	(void)expo_add_checked(
		s->e,
		expo_family(s->e, "nri_rp_module_foreign_calls_total", EXPO_COUNTER,
			    "Calls of the host that were refused: the module made them on a thread "
			    "other than the main one."),
		labels, instance_foreign_calls(i));
}

static int collect_one(struct instance *i, void *arg)
{
	struct scrape *s = arg;
	struct err err = ERR_INIT;
	const struct rp_metric_sink sink = {
		.size = sizeof sink, .ctx = s, .gauge = on_gauge, .counter = on_counter};
	add_foreign_calls(s, i);
	bool wanted = collect_wanted(s->core, "policy", instance_name(i));
	if (instance_role(i) != RP_KIND_POLICY)
		wanted = wanted || collect_wanted(s->core, "controller", instance_name(i));
	if (!wanted)
		return 0;
	s->instance = i;
	int r = pipeline_collect(s->p, i, &sink, &err);
	if (r) {
		s->failed++;
		log_debug("module %s: metrics: %s", instance_name(i), err_text(&err, r));
	}
	return 0;
}

void collect_modules(struct expo *e, struct pipeline *p)
{
	struct scrape s = {.e = e, .p = p, .core = conf_core(pipeline_conf(p))};
	(void)pipeline_each_instance(p, collect_one, &s);
	expo_single(e, "nri_rp_module_samples_rejected",
		    "Samples of modules in this scrape that were malformed, duplicate or too many.",
		    s.rejected);
	expo_single(e, "nri_rp_module_collectors_failed",
		    "Modules whose metrics failed in this scrape.", s.failed);
}
