/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about the data that a module reports: zones, allocatable CPUs, memory by node, metrics, its
 * state. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/balance.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rpd/pipeline/request/claims.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define ZONES_MAX 1024u
#define NAME_MAX_BYTES 128u

static int cases_report_populate(struct check *c, struct err *err)
{
	c->churn->still = true;
	return churn_run(c->churn, 100, err);
}

/* ---- zones ----------------------------------------------------------------------------------- */

struct zones {
	char names[ZONES_MAX][NAME_MAX_BYTES];
	unsigned n;
	char wrong[256];
};

static void __attribute__((format(printf, 2, 3)))
cases_report_wrong(struct zones *z, const char *fmt, ...)
{
	va_list ap;
	if (z->wrong[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(z->wrong, sizeof z->wrong, fmt, ap);
	va_end(ap);
}

static bool has_zone(const struct zones *z, const char *name)
{
	for (unsigned i = 0; i < z->n; i++)
		if (str_eq(z->names[i], name))
			return true;
	return false;
}

static void zone(void *ctx, const char *name, const char *type, const char *parent)
{
	struct zones *z = ctx;
	if (!*name || !*type || strlen(name) >= NAME_MAX_BYTES)
		cases_report_wrong(z, "a zone with name \"%.64s\" and type \"%.64s\"", name, type);
	else if (has_zone(z, name))
		cases_report_wrong(z, "two zones %s", name);
	else if (*parent && !has_zone(z, parent))
		cases_report_wrong(z, "zone %s is listed before its parent %s", name, parent);
	else if (z->n == ZONES_MAX)
		cases_report_wrong(z, "more than %u zones", ZONES_MAX);
	else
		(void)snprintf(z->names[z->n++], NAME_MAX_BYTES, "%s", name);
}

static void resource(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
		     int64_t available)
{
	struct zones *z = ctx;
	if (!z->n || !*name)
		cases_report_wrong(z, "resource \"%s\" before any zone", name);
	if (allocatable < 0 || capacity < allocatable || available > allocatable)
		cases_report_wrong(z,
				   "%s of zone %s: capacity %lld, allocatable %lld, available %lld",
				   name, z->n ? z->names[z->n - 1] : "-", (long long)capacity,
				   (long long)allocatable, (long long)available);
}

static void attribute(void *ctx, const char *name, const char *value)
{
	struct zones *z = ctx;
	if (!z->n || !*name || !value)
		cases_report_wrong(z, "attribute \"%s\" without zone, name or value", name);
}

static void cost(void *ctx, const char *other, int64_t value)
{
	struct zones *z = ctx;
	if (!z->n || !*other || value < 0)
		cases_report_wrong(z, "cost %lld to zone \"%s\"", (long long)value, other);
}

static int cases_report_zones(struct check *c, struct err *err)
{
	_free_ struct zones *z = calloc(1, sizeof *z);
	if (!z)
		return err_errno(err, -ENOMEM, "zones");
	const struct rp_zone_sink sink = {.size = sizeof sink,
					  .ctx = z,
					  .zone = zone,
					  .resource = resource,
					  .attribute = attribute,
					  .cost = cost};
	struct balances leaks;
	int bad = cases_report_populate(c, err);
	for (unsigned i = 0; !bad && i < BALANCE_ROUNDS; i++) {
		z->n = 0;
		bad = instance_zones(c->rig->instance, &sink, err);
		balance_round(&leaks, i);
	}
	bad = bad ? bad : balance_exact(&leaks, "zones", err);
	if (!bad && z->wrong[0])
		bad = err_set(err, -EINVAL, "%s", z->wrong);
	if (!bad && !z->n)
		return check_skip(c, "it has no zones");
	if (!bad)
		check_note(c, "%u zones", z->n);
	return bad;
}

/* ---- allocatable CPUs ------------------------------------------------------------------------ */

/* Checks that the CPUs are online, and the same when requested again. */
static int cases_report_allocatable(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	struct rp_idset first, again;
	char text[128];
	int told = cases_report_populate(c, err);
	if (told)
		return told;
	told = instance_allocatable(r->instance, &first, err);
	if (told <= 0)
		return told ? told : check_skip(c, "it does not report this");
	(void)rp_ids_format(rp_ids_of(&first), text, sizeof text);
	if (!rp_ids_subset(rp_ids_of(&first), rig_online(r)))
		return err_set(err, -EINVAL, "allocatable CPUs that are not online: %s", text);
	told = instance_allocatable(r->instance, &again, err);
	if (told < 0)
		return told;
	if (!told || !rp_ids_equal(rp_ids_of(&first), rp_ids_of(&again)))
		return err_set(err, -EINVAL, "two calls report different allocatable CPUs");
	check_note(c, "%u CPUs", rp_ids_count(rp_ids_of(&first)));
	return 0;
}

/* ---- memory of nodes ------------------------------------------------------------------------- */

struct parts {
	struct rp_ids nodes; /* nodes with memory */
	struct rp_idset told;
	uint64_t digest, n;
	char wrong[128];
};

static void part(void *ctx, uint32_t node, uint64_t bytes)
{
	struct parts *p = ctx;
	if (!bytes || !rp_ids_has(p->nodes, node) || rp_ids_has(rp_ids_of(&p->told), node))
		(void)snprintf(p->wrong, sizeof p->wrong,
			       "%llu bytes of node %u, which has no memory or was already reported",
			       (unsigned long long)bytes, node);
	else
		rp_idset_add(&p->told, node);
	p->digest += (bytes + 1) * (node + 1);
	p->n++;
}

static int tell_parts(struct rig *r, struct ctr *ctr, struct parts *p, struct err *err)
{
	const struct rp_memory_sink sink = {.size = sizeof sink, .ctx = p, .part = part};
	rp_idset_clear(&p->told);
	int bad = instance_memory(r->instance, ctr, &sink, err);
	return bad || !p->wrong[0] ? bad
				   : err_set(err, -EINVAL, "%s: %s", ctr->full_name, p->wrong);
}

/* Checks that the nodes have memory, and that the result is the same when requested again. */
static int cases_report_memory(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	struct parts p = {.nodes = topo_ids(r->env->topo, RP_NODES_MEMORY)};
	int bad = cases_report_populate(c, err);
	for (struct ctr *ctr = cache_ctrs(r->env->cache); !bad && ctr; ctr = ctr->next) {
		struct parts again = {.nodes = p.nodes};
		p.digest = 0;
		bad = tell_parts(r, ctr, &p, err);
		bad = bad ? bad : tell_parts(r, ctr, &again, err);
		if (!bad && p.digest != again.digest)
			bad = err_set(err, -EINVAL, "two calls report different memory of %s",
				      ctr->full_name);
	}
	if (!bad && !p.n)
		return check_skip(c, "it does not report this");
	if (!bad)
		check_note(c, "%llu amounts", (unsigned long long)p.n);
	return bad;
}

/* ---- devices for claims ---------------------------------------------------------------------- */

struct devices {
	unsigned n;
	char first[64]; /* name of the first device with 2 CPUs; "": none */
	char name[64];
	char wrong[256];
};

static void on_device(void *ctx, const char *name)
{
	struct devices *d = ctx;
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	d->n++;
	if (!n || n > 63 || name[n])
		(void)snprintf(d->wrong, sizeof d->wrong, "a device with name \"%.64s\"", name);
	else
		(void)snprintf(d->name, sizeof d->name, "%s", name);
}

static void on_capacity(void *ctx, const char *name, int64_t amount)
{
	struct devices *d = ctx;
	if (!d->n || !*name || amount < 0)
		(void)snprintf(d->wrong, sizeof d->wrong, "device %s: capacity %.64s %lld", d->name,
			       name, (long long)amount);
	if (!*d->first && str_eq(name, "cpu") && amount >= 2)
		(void)snprintf(d->first, sizeof d->first, "%s", d->name);
}

static void on_number(void *ctx, const char *name, int64_t value)
{
	struct devices *d = ctx;
	if (!d->n || !*name)
		(void)snprintf(d->wrong, sizeof d->wrong, "attribute \"%.64s\" %lld", name,
			       (long long)value);
}

static void on_limits(void *ctx, int64_t min, int64_t max)
{
	struct devices *d = ctx;
	if (!d->n || min < 0 || max < 0 || (max && max < min))
		(void)snprintf(d->wrong, sizeof d->wrong, "device %s: limits %lld to %lld", d->name,
			       (long long)min, (long long)max);
}

static void on_text(void *ctx, const char *name, const char *value)
{
	on_number(ctx, name, value ? 0 : -1);
}

/* Allocates a claim, synchronizes, and releases it: its CPUs remain the same until then. */
static int claim_of_device(struct rig *r, const char *device, struct err *err)
{
	const struct claim_part part = {.device = device, .cpus = 2};
	const struct claim_desc desc = {.uid = "modcheck",
					.ns = "default",
					.name = "claim",
					.users = "",
					.parts = &part,
					.n_parts = 1};
	const struct ctr *claim;
	struct iset *before;
	pipeline_runtime(r->pipeline)->synchronized = true;
	int bad = pipeline_claim_prepare(r->pipeline, &desc, &claim, err);
	if (bad)
		return bad == -ENOSPC ? 0 : bad;
	before = claim->cur.exclusive;
	bad = rig_sync(r, err);
	if (!bad && claim->cur.exclusive != before)
		bad = err_set(err, -EINVAL, "sync() changes the CPUs of a claim");
	pipeline_claim_release(r->pipeline, desc.uid);
	return bad ? bad : rig_sync(r, err);
}

static int cases_report_devices(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	struct devices d = {0};
	const struct rp_devices_sink sink = {.size = sizeof sink,
					     .ctx = &d,
					     .device = on_device,
					     .capacity = on_capacity,
					     .number = on_number,
					     .text = on_text,
					     .limits = on_limits};
	int bad = cases_report_populate(c, err);
	if (!bad && !instance_has_devices(r->instance))
		return check_skip(c, "it has no devices");
	bad = bad ? bad : instance_devices(r->instance, &sink, err);
	if (!bad && d.wrong[0])
		bad = err_set(err, -EINVAL, "%s", d.wrong);
	if (!bad && *d.first)
		bad = claim_of_device(r, d.first, err);
	if (!bad)
		check_note(c, "%u devices", d.n);
	return bad;
}

/* ---- metrics --------------------------------------------------------------------------------- */

struct metrics {
	unsigned n;
	char wrong[256];
};

static bool metric_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_' || *name == ':')
		name++;
	return !*name;
}

static void cases_report_metric(void *ctx, const char *name, const char *help, const char *labels,
				double value)
{
	struct metrics *m = ctx;
	m->n++;
	if (!m->wrong[0] && (!metric_name(name) || !*help || strchr(help, '\n')))
		(void)snprintf(m->wrong, sizeof m->wrong, "metric \"%.64s\" (%.64s)", name, help);
	if (!m->wrong[0] && *labels &&
	    (!strchr(labels, '=') || strchr(labels, '\n') || *labels == '{'))
		(void)snprintf(m->wrong, sizeof m->wrong, "labels of metric %.64s: %.64s", name,
			       labels);
}

static int cases_report_metrics(struct check *c, struct err *err)
{
	struct metrics m = {0};
	const struct rp_metric_sink sink = {.size = sizeof sink,
					    .ctx = &m,
					    .gauge = cases_report_metric,
					    .counter = cases_report_metric};
	struct balances leaks;
	int bad = cases_report_populate(c, err);
	for (unsigned i = 0; !bad && i < BALANCE_ROUNDS; i++) {
		m.n = 0;
		bad = instance_collect(c->rig->instance, &sink, err);
		balance_round(&leaks, i);
	}
	bad = bad ? bad : balance_exact(&leaks, "metrics", err);
	if (bad)
		return bad;
	if (m.wrong[0])
		return err_set(err, -EINVAL, "%s: not valid for Prometheus", m.wrong);
	if (!m.n)
		return check_skip(c, "it has no metrics");
	check_note(c, "%u values", m.n);
	return 0;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Loads damaged states, which the module may refuse or accept, and checks that it still works. */
static int load_garbage(struct rig *r, const uint8_t *state, uint32_t size, struct err *err)
{
	struct err ignored = ERR_INIT;
	_free_ uint8_t *copy = malloc(size);
	if (!copy)
		return err_errno(err, -ENOMEM, "state");
	for (uint32_t n = 0; n < size; n += 1 + size / 64) {
		memcpy(copy, state, size);
		copy[n] ^= 0xff;
		(void)instance_load(r->instance, copy, size, &ignored);
		(void)instance_load(r->instance, copy, n, &ignored);
	}
	return rig_sync(r, err);
}

static int cases_report_state(struct check *c, struct err *err)
{
	const void *data;
	uint32_t size;
	int bad = cases_report_populate(c, err);
	bad = bad ? bad : instance_save(c->rig->instance, &data, &size, err);
	if (bad || !size)
		return bad ? bad : check_skip(c, "it saves no state");
	check_note(c, "%u bytes", size);
	_free_ uint8_t *copy = malloc(size);
	if (!copy)
		return err_errno(err, -ENOMEM, "state");
	memcpy(copy, data, size);
	bad = rig_restart(c->rig, err);
	return bad ? bad : load_garbage(c->rig, copy, size, err);
}

static const struct check_case cases[] = {
	{"report/zones", RP_KIND_POLICY, CASE_MACHINES | CASE_STARTED, cases_report_zones,
	 "zones have names, parents before children, and valid amounts"},
	{"report/allocatable", RP_KIND_POLICY, CASE_MACHINES | CASE_STARTED,
	 cases_report_allocatable, "allocatable CPUs are online, and the same each time"},
	{"report/memory", RP_KIND_POLICY, CASE_MACHINES | CASE_STARTED, cases_report_memory,
	 "memory is reported of nodes with memory, and the same each time"},
	{"report/devices", RP_KIND_POLICY, CASE_MACHINES | CASE_STARTED, cases_report_devices,
	 "devices have names and amounts, and a claim keeps its CPUs until it is released"},
	{"report/metrics", RP_KIND_POLICY, CASE_SMALL | CASE_STARTED, cases_report_metrics,
	 "metrics have names and labels that Prometheus accepts"},
	{"report/state", RP_KIND_POLICY, CASE_SMALL | CASE_STARTED, cases_report_state,
	 "saved state is restored, and damaged state does no harm"},
};

const struct check_group report_cases = {cases, sizeof cases / sizeof *cases};
