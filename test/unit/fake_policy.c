/* SPDX-License-Identifier: Apache-2.0 */
/* The fake host calls a policy, in the order and with the transactions of the real one. */
#include <string.h>

#include "test/unit/fake_impl.h"

static const struct rp_policy *policy(struct fake_host *f)
{
	const struct rp_policy *p = fake_module_service(f, RP_POLICY_1);
	if (!p)
		fake_die("no policy is open");
	return p;
}

const void *fake_module_service(struct fake_host *f, const char *id)
{
	return f->module ? f->module->service(f->inst, id) : NULL;
}

struct rp_instance *fake_instance(struct fake_host *f)
{
	return f->inst;
}

int32_t fake_policy_open(struct fake_host *f, const struct rp_module *module)
{
	fake_policy_close(f);
	fake_out_clear(&f->error);
	int32_t r = module->create(&f->host, &f->inst);
	if (!r)
		f->module = module;
	return r;
}

void fake_policy_close(struct fake_host *f)
{
	if (f->module) {
		(void)fake_run_work(f); /* as a host does: jobs have ends */
		f->module->destroy(f->inst);
	}
	f->module = NULL;
	f->inst = NULL;
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void save_state(struct fake_host *f)
{
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	const void *data;
	uint32_t size;
	if (!s || s->save(f->inst, &data, &size))
		return;
	if (size > RP_STATE_MAX)
		fake_die("state of %u bytes", size);
	f->state = fake_grow(f->state, size ? size : 1, 1);
	memcpy(f->state, data, size);
	f->state_size = size;
}

/* Ends the transaction by the result of the callback. */
static int32_t finish(struct fake_host *f, int32_t r, bool keep)
{
	bool failed = r < 0;
	int32_t broken = fake_end(f, keep && !failed);
	if (!failed && broken)
		r = broken;
	if (keep && r >= 0) {
		save_state(f);
		return r;
	}
	int32_t again = RP_RESYNC;
	if (policy(f)->rolled_back)
		again = policy(f)->rolled_back(f->inst);
	if (again == RP_RESYNC) {
		char *error = fake_strdup(fake_error(f));
		if (fake_sync(f))
			fake_die("resync failed: %s", fake_error(f));
		fake_print(&f->error, "%s", error);
		free(error);
	}
	return r;
}

int32_t fake_sync(struct fake_host *f)
{
	fake_begin(f);
	return finish(f, policy(f)->sync(f->inst, f->txn), true);
}

/* ---- configuration --------------------------------------------------------------------------- */

int32_t fake_configure(struct fake_host *f, const char *text)
{
	struct rp_plan *plan;
	fake_out_clear(&f->error);
	int32_t r = policy(f)->prepare(f->inst, fake_cfg(f, text), &plan);
	if (r)
		return r;
	policy(f)->commit(f->inst, plan);
	char *copy = fake_strdup(text);
	free(f->config_text);
	f->config_text = copy;
	return fake_sync(f);
}

int32_t fake_prepare_only(struct fake_host *f, const char *text)
{
	struct rp_plan *plan;
	fake_out_clear(&f->error);
	int32_t r = policy(f)->prepare(f->inst, fake_cfg(f, text), &plan);
	if (!r)
		policy(f)->abort(f->inst, plan);
	return r;
}

void fake_lose_state(struct fake_host *f)
{
	free(f->state);
	f->state = NULL;
	f->state_size = 0;
}

int32_t fake_restart(struct fake_host *f)
{
	int32_t r = fake_policy_open(f, f->module);
	for (uint32_t i = 0; i < f->n_ctrs; i++)
		f->ctrs[i]->flags |= RP_CTR_RESTORED;
	struct rp_plan *plan;
	if (r)
		return r;
	const struct rp_state *s = fake_module_service(f, RP_STATE_1);
	if (s && f->state && s->load(f->inst, f->state, f->state_size))
		fake_die("state refused: %s", fake_error(f));
	r = policy(f)->prepare(f->inst, fake_cfg(f, f->config_text), &plan);
	if (r)
		return r;
	policy(f)->commit(f->inst, plan);
	return fake_sync(f);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int32_t come(struct fake_host *f, rp_ctr ctr,
		    int32_t (*call)(struct rp_instance *inst, rp_txn txn, rp_ctr ctr))
{
	struct fake_container *c = fake_container(f, ctr);
	fake_begin(f);
	c->coming = true;
	int32_t r = finish(f, call(f->inst, f->txn, ctr), true);
	c->coming = false;
	if (r)
		fake_forget(f, ctr);
	else
		fake_container(f, ctr)->state = RP_STATE_CREATED;
	return r;
}

int32_t fake_allocate(struct fake_host *f, rp_ctr ctr)
{
	return come(f, ctr, policy(f)->allocate);
}

int32_t fake_unmanaged(struct fake_host *f, rp_ctr ctr)
{
	return come(f, ctr, policy(f)->unmanaged);
}

int32_t fake_try(struct fake_host *f, rp_ctr ctr)
{
	fake_begin(f);
	return finish(f, policy(f)->allocate(f->inst, f->txn, ctr), false);
}

int32_t fake_update(struct fake_host *f, rp_ctr ctr)
{
	struct fake_container *c = fake_container(f, ctr);
	fake_begin(f);
	int32_t r = finish(f, policy(f)->update(f->inst, f->txn, ctr), true);
	if (r) {
		c->cpu_request = c->old_request;
		c->cpu_limit = c->old_limit;
	}
	return r;
}

int32_t fake_release(struct fake_host *f, rp_ctr ctr)
{
	struct fake_container *c = fake_container(f, ctr);
	uint32_t state = c->state;
	c->state = RP_STATE_EXITED;
	fake_begin(f);
	/* An exited container owns no CPUs, even if the module stages some for it. */
	struct fake_values gone = c->now;
	rp_idset_clear(&c->now.cpus);
	rp_idset_clear(&c->now.exclusive);
	int32_t r = finish(f, policy(f)->release(f->inst, f->txn, ctr), true);
	if (r) {
		c->state = state;
		c->now.cpus = gone.cpus;
		c->now.exclusive = gone.exclusive;
		return r;
	}
	fake_forget(f, ctr);
	return 0;
}

int32_t fake_event(struct fake_host *f, const struct rp_event *ev)
{
	if (!policy(f)->event)
		return 0;
	fake_begin(f);
	return finish(f, policy(f)->event(f->inst, f->txn, ev), true);
}

int32_t fake_set_offline(struct fake_host *f, const char *cpus)
{
	fake_parse_set(&f->topology.offline, cpus);
	fake_topology_update(&f->topology);
	if (!f->module)
		return 0;
	return fake_event(
		f, &(struct rp_event){.size = sizeof(struct rp_event), .type = RP_EVENT_TOPOLOGY});
}

/* ---- reports --------------------------------------------------------------------------------- */

static void zone(void *ctx, const char *name, const char *type, const char *parent)
{
	fake_print(ctx, "zone %s (%s)%s%s\n", name, type, *parent ? " in " : "", parent);
}

static void resource(void *ctx, const char *name, int64_t capacity, int64_t allocatable,
		     int64_t available)
{
	fake_print(ctx, "  %s %lld/%lld/%lld\n", name, (long long)capacity, (long long)allocatable,
		   (long long)available);
}

static void attribute(void *ctx, const char *name, const char *value)
{
	fake_print(ctx, "  %s: %s\n", name, value);
}

static void cost(void *ctx, const char *other, int64_t value)
{
	fake_print(ctx, "  cost %s %lld\n", other, (long long)value);
}

const char *fake_zones(struct fake_host *f)
{
	const struct rp_zones *z = fake_module_service(f, RP_ZONES_1);
	struct rp_zone_sink sink = {sizeof sink, 0, &f->report, zone, resource, attribute, cost};
	fake_out_clear(&f->report);
	if (z && z->zones(f->inst, &sink))
		fake_die("zones: %s", fake_error(f));
	return fake_out_text(&f->report);
}

static void metric(void *ctx, const char *name, const char *help, const char *labels, double value)
{
	if (!*help)
		fake_die("metric %s without help", name);
	fake_print(ctx, "%s{%s} %g\n", name, labels, value);
}

const char *fake_metrics(struct fake_host *f)
{
	const struct rp_metrics *m = fake_module_service(f, RP_METRICS_1);
	struct rp_metric_sink sink = {sizeof sink, 0, &f->report, metric, metric};
	fake_out_clear(&f->report);
	if (m && m->collect(f->inst, &sink))
		fake_die("metrics: %s", fake_error(f));
	return fake_out_text(&f->report);
}
