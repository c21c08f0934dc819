/* SPDX-License-Identifier: Apache-2.0 */
/* The running controllers: calls of their hooks, and their reports about containers. */
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/log.h"
#include "core/nri-rpd/pipeline/controllers/controllers.h"
#include "core/nri-rpd/pipeline/controllers/life.h"

#define LOG_SOURCE "controller"

/* Latest report of a controller about a container. */
struct applied {
	rp_ctr ctr;
	uint32_t result;
	char *text; /* reason of the result; NULL: none */
	UT_hash_handle hh;
};

/* ---- reports --------------------------------------------------------------------------------- */

static void controllers_drop(struct controller *c, struct applied *a)
{
	c->results[a->result]--;
	HASH_DEL(c->applied, a);
	free(a->text);
	free(a);
}

static struct applied *controllers_find(struct applied *all, rp_ctr ctr)
{
	struct applied *a;
	HASH_FIND(hh, all, &ctr, sizeof ctr, a);
	return a;
}

void controllers_forget(struct pipeline *p, rp_ctr ctr)
{
	for (unsigned i = 0; i < p->controllers.n; i++) {
		struct applied *a = controllers_find(p->controllers.list[i]->applied, ctr);
		if (a)
			controllers_drop(p->controllers.list[i], a);
	}
}

void controllers_forget_all(struct controller *c)
{
	struct applied *a, *next;
	HASH_ITER (hh, c->applied, a, next)
		controllers_drop(c, a);
}

/* Stores a report. Returns true if it differs from the previous one. */
static bool controllers_record(struct controller *c, rp_ctr ctr, uint32_t result, const char *text)
{
	struct applied *a = controllers_find(c->applied, ctr);
	if (a && a->result == result && strcmp(a->text ? a->text : "", text) == 0)
		return false;
	if (a) {
		c->results[a->result]--;
		free(a->text);
	}
	a = HASH_FIND_OR_ADD(c->applied, ctr, ctr);
	if (!a)
		return true;
	a->result = result;
	a->text = *text ? strdup(text) : NULL;
	c->results[result]++;
	return true;
}

void controllers_reported(struct pipeline *p, struct instance *i, rp_ctr handle, uint32_t result,
			  const char *text)
{
	const struct ctr *ctr = cache_ctr_of(p->env.cache, handle);
	bool news = true;
	if (result > RP_APPLY_FAILED || (handle && (!ctr || !ctr_live(ctr->cur.state))))
		return;
	for (unsigned c = 0; ctr && c < p->controllers.n; c++)
		if (p->controllers.list[c]->instance == i)
			news = controllers_record(p->controllers.list[c], handle, result, text);
	if (result < RP_APPLY_PARTIAL || !news)
		return;
	log_warning("%s%scontroller %s: %s", ctr ? ctr->full_name : "", ctr ? ": " : "",
		    instance_name(i), text);
	pipeline_event_of(p, EV_DEGRADED, ctr, NULL, "%s%scontroller %s: %s",
			  ctr ? ctr->full_name : "", ctr ? ": " : "", instance_name(i), text);
}

bool pipeline_controller_result(const struct pipeline *p, unsigned i, const struct ctr *ctr,
				struct controller_result *ret)
{
	const struct applied *a = controllers_find(p->controllers.list[i]->applied, ctr->handle);
	if (!a)
		return false;
	*ret = (struct controller_result){a->result, a->text ? a->text : ""};
	return true;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

void controllers_sync(struct pipeline *p)
{
	if (!p->runtime.synchronized)
		return;
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (controller_runs(p->controllers.list[i]))
			instance_controller_sync(p->controllers.list[i]->instance);
}

void controllers_timer(struct pipeline *p, struct instance *instance, uint64_t cookie)
{
	for (unsigned i = 0; i < p->controllers.n; i++) {
		const struct controller *c = p->controllers.list[i];
		if (c->instance != instance || !controller_runs(c))
			continue;
		watchdog_begin(p->watchdog);
		instance_controller_timer(instance, cookie);
		watchdog_end(p->watchdog);
	}
}

void controllers_post_start(struct pipeline *p, struct ctr *ctr)
{
	verify_soon(p, ctr);
	for (unsigned i = 0; i < p->controllers.n; i++) {
		struct err err = ERR_INIT;
		struct controller *c = p->controllers.list[i];
		if (controller_runs(c) && instance_post_start(c->instance, ctr, &err))
			log_warning("%s: controller %s: %s", ctr->full_name, c->name, err.text);
	}
}

void controllers_post_stop(struct pipeline *p, struct ctr *ctr)
{
	drift_forget(p, ctr);
	for (unsigned i = 0; !p->env.trial && i < p->controllers.n; i++) {
		struct err err = ERR_INIT;
		struct controller *c = p->controllers.list[i];
		if (controller_runs(c) && instance_post_stop(c->instance, ctr, &err))
			log_warning("%s: controller %s: %s", ctr->full_name, c->name, err.text);
	}
	controllers_forget(p, ctr->handle);
}

uint32_t controllers_take(const struct pipeline *p)
{
	uint32_t takes = 0;
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (controller_runs(p->controllers.list[i]))
			takes |= instance_takes(p->controllers.list[i]->instance);
	return takes;
}
