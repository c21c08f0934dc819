/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life cycle of controllers when a configuration is activated.
 *
 *   (none)                                         start again
 *       | prepare: opened                      +<-------------- LEAVES
 *       v             take over                v   switch          | take over: freed if dropped,
 *     IDLE ----------------------------------> RUNS ------------>--+ IDLE: its section is unusable,
 *       | switch: it is required               ^                   | RUNS: it says `enable: false`
 *       v               take over              |
 *     EARLY ---------------------------------->+
 *       | abort
 *       v
 *     IDLE
 *
 * IDLE is a controller that is not required and cannot be loaded or does not start. An abort
 * restores the previous state: controllers opened for the change are freed, controllers that left
 * start again, and previous reasons are restored.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/reload/apply.h"

#define LOG_SOURCE "config"

struct controller_change {
	/* new controllers; after the switch the previous ones */
	struct controller *list[CONTROLLERS_MAX];
	unsigned n;
	bool switched;
};

bool controller_runs(const struct controller *c)
{
	return c->life == CONTROLLER_EARLY || c->life == CONTROLLER_RUNS;
}

struct controller *controller_free(struct controller *c)
{
	if (!c)
		return NULL;
	if (controller_runs(c))
		instance_stop(c->instance);
	instance_free(c->instance);
	controllers_forget_all(c);
	free(c);
	return NULL;
}

static bool is_among(const struct controller *c, struct controller *const *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == c)
			return true;
	return false;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static struct controller *find_or_add(struct pipeline *p, const char *name)
{
	struct controller *c;
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (str_eq(p->controllers.list[i]->name, name))
			return p->controllers.list[i];
	c = calloc(1, sizeof *c);
	if (c)
		(void)snprintf(c->name, sizeof c->name, "%s", name);
	return c;
}

/* Returns true if the reason begins with a place in the file of the section. */
static bool has_place(const struct err *why, rp_cfg section)
{
	char where[CONF_PLACE_MAX];
	(void)conf_where(section, where, sizeof where);
	char *line = strchr(where, ':');
	if (!section || !line)
		return false;
	line[1] = '\0';
	return str_has_prefix(why->text, where);
}

static int life_prepare(struct pipeline *p, const struct conf *conf, struct controller *c,
			const struct conf_controller *wanted, struct err *err)
{
	rp_cfg section = conf_section(conf, wanted->name);
	char where[CONF_PLACE_MAX];
	struct err why = ERR_INIT;
	int r = 0;
	c->kind = wanted->kind;
	c->next.mode = wanted->mode;
	c->next.plan = NULL;
	c->next.error[0] = '\0';
	if (!c->instance)
		r = open_instance(p, c->name, wanted->kind, &c->instance, &why);
	if (!r)
		r = instance_prepare(c->instance, section, &c->next.plan, &why);
	if (!r)
		return 0;
	if ((wanted->mode == CONF_REQUIRED && !p->reloads.lenient) || r == -EINVAL)
		return has_place(&why, section)
			       ? err_set(err, r, "%s", why.text)
			       : err_set(err, r, "%s: controller %s: %s",
					 conf_where(wanted->node, where, sizeof where), c->name,
					 why.text);
	(void)snprintf(c->next.error, sizeof c->next.error, "%s", why.text);
	log_warning("%s: controller %s is disabled: %s",
		    conf_where(wanted->node, where, sizeof where), c->name, why.text);
	return 0;
}

static bool is_enabled(const struct conf *conf, const struct controller *c)
{
	return conf_value(conf_get(conf_section(conf, c->name), "enable"), RP_T_BOOL, 1) != 0;
}

/* Returns true if a running controller has to stop: it was dropped, its new section is unusable, or
 * the section now says `enable: false` (then it starts again with that section). */
static bool life_leaves(const struct pipeline *p, const struct conf *conf,
			const struct controller *c)
{
	const struct controller_change *change = p->controllers.change;
	if (c->life != CONTROLLER_RUNS)
		return false;
	return !is_among(c, change->list, change->n) || !c->next.plan ||
	       (!is_enabled(conf, c) && (!p->conf || is_enabled(p->conf, c)));
}

/* Refuses a configuration that stops a running controller while claims have its devices. */
static int life_check_claims(const struct pipeline *p, const struct conf *conf, struct err *err)
{
	const struct ctr *ctr;
	DL_FOREACH (cache_ctrs(p->env.cache), ctr) {
		for (unsigned i = 0; claim_is_controlled(ctr) && i < p->controllers.n; i++) {
			const struct controller *c = p->controllers.list[i];
			if (life_leaves(p, conf, c) &&
			    instance_owns_device(c->instance, ctr->device))
				return err_set(err, -EBUSY,
					       "claim %s/%s would lose its device %s of controller "
					       "%s: delete the pods that use the claim first",
					       ctr->pod->ns, ctr->pod->name, ctr->device, c->name);
		}
	}
	return 0;
}

int controllers_prepare(struct pipeline *p, const struct conf *conf, struct err *err)
{
	const struct conf_core *core = conf_core(conf);
	assert(!p->controllers.change);
	struct controller_change *change = calloc(1, sizeof *change);
	p->controllers.change = change;
	if (!change)
		return err_errno(err, -ENOMEM, "controllers");
	for (unsigned i = 0; i < core->n_controllers; i++) {
		const struct conf_controller *wanted = &core->controllers[i];
		if (wanted->mode == CONF_DISABLED)
			continue;
		if (change->n == CONTROLLERS_MAX)
			return err_set(err, -EINVAL, "more than %u controllers", CONTROLLERS_MAX);
		struct controller *c = find_or_add(p, wanted->name);
		if (!c)
			return err_errno(err, -ENOMEM, "controller %s", wanted->name);
		change->list[change->n++] = c;
		int r = life_prepare(p, conf, c, wanted, err);
		if (r)
			return r;
	}
	return life_check_claims(p, conf, err);
}

/* ---- switch ---------------------------------------------------------------------------------- */

static void life_commit(struct controller *c)
{
	instance_commit(c->instance, c->next.plan);
	c->next.plan = NULL;
}

/* Starts required controllers first, because the configuration is refused if one does not start,
 * and nothing of it may be active then. */
static int start_required(struct pipeline *p, struct err *err)
{
	struct controller_change *change = p->controllers.change;
	for (unsigned i = 0; !p->reloads.lenient && i < change->n; i++) {
		struct controller *c = change->list[i];
		struct err why = ERR_INIT;
		if (!c->next.plan || controller_runs(c) || c->next.mode != CONF_REQUIRED)
			continue;
		life_commit(c);
		int r = instance_start(c->instance, &why);
		if (r)
			return err_set(err, r, "required controller %s does not start: %s", c->name,
				       err_text(&why, r));
		c->life = CONTROLLER_EARLY;
	}
	return 0;
}

static void exchange_lists(struct pipeline *p)
{
	struct controller_change *change = p->controllers.change;
	struct controller_change former = {.n = p->controllers.n, .switched = !change->switched};
	memcpy(former.list, p->controllers.list, sizeof former.list);
	memcpy(p->controllers.list, change->list, sizeof p->controllers.list);
	p->controllers.n = change->n;
	*change = former;
}

int controllers_switch(struct pipeline *p, const struct conf *conf, struct err *err)
{
	int r = start_required(p, err);
	if (r)
		return r;
	for (unsigned i = 0; i < p->controllers.n; i++) {
		struct controller *c = p->controllers.list[i];
		if (!life_leaves(p, conf, c))
			continue;
		instance_stop(c->instance);
		c->life = CONTROLLER_LEAVES;
	}
	exchange_lists(p);
	return 0;
}

/* ---- abort ----------------------------------------------------------------------------------- */

static void start_again(struct controller *c)
{
	struct err err = ERR_INIT;
	int r = instance_start(c->instance, &err);
	c->life = r ? CONTROLLER_IDLE : CONTROLLER_RUNS;
	if (!r)
		return;
	(void)snprintf(c->error, sizeof c->error, "%s", err_text(&err, r));
	log_error("controller %s does not restart: %s", c->name, c->error);
}

static void go_back(struct controller *c)
{
	if (c->life == CONTROLLER_EARLY) {
		instance_stop(c->instance);
		c->life = CONTROLLER_IDLE;
	}
	if (c->next.plan)
		instance_abort(c->instance, c->next.plan);
	c->next.plan = NULL;
}

void controllers_abort(struct pipeline *p)
{
	struct controller_change *change = p->controllers.change;
	if (!change)
		return;
	bool switched = change->switched;
	if (switched)
		exchange_lists(p);
	for (unsigned i = change->n; i-- > 0;) {
		struct controller *c = change->list[i];
		go_back(c);
		if (!is_among(c, p->controllers.list, p->controllers.n))
			controller_free(c);
	}
	for (unsigned i = 0; i < p->controllers.n; i++)
		if (p->controllers.list[i]->life == CONTROLLER_LEAVES)
			start_again(p->controllers.list[i]);
	free(change);
	p->controllers.change = NULL;
	if (switched)
		controllers_sync(p);
}

/* ---- take over ------------------------------------------------------------------------------- */

static void take_over(struct controller *c)
{
	struct err err = ERR_INIT;
	bool runs = controller_runs(c), idle = !runs && !c->next.plan;
	c->mode = c->next.mode;
	c->life = idle ? CONTROLLER_IDLE : CONTROLLER_RUNS;
	(void)snprintf(c->error, sizeof c->error, "%s", c->next.error);
	if (!c->next.plan)
		return;
	life_commit(c);
	int r = runs ? 0 : instance_start(c->instance, &err);
	if (!r)
		return;
	c->life = CONTROLLER_IDLE;
	(void)snprintf(c->error, sizeof c->error, "%s", err_text(&err, -ENOTSUP));
	log_warning("controller %s does not start: %s", c->name, c->error);
}

void controllers_take_over(struct pipeline *p)
{
	struct controller_change *former = p->controllers.change;
	assert(former && former->switched);
	for (unsigned i = former->n; i-- > 0;)
		if (!is_among(former->list[i], p->controllers.list, p->controllers.n))
			controller_free(former->list[i]);
	for (unsigned i = 0; i < p->controllers.n; i++)
		take_over(p->controllers.list[i]);
	free(former);
	p->controllers.change = NULL;
	controllers_sync(p);
}
