/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of the Speed Select platform for classes and its removal, on the main thread. Decides when;
 * the worker does it in pct_write.c. */
#include <stdio.h>
#include <stdlib.h>

#include "modules/lib/private/cpuclass_impl.h"
#include "modules/lib/private/ctl_queue.h"

#define EXTENDED_DOMAIN_MAX 64u

struct pct_setup *cpuclass_what_to_undo(const struct cpuclass *c, const struct pct *next,
					int32_t *ret_result)
{
	if (*ret_result || !c->set_up || pct_manages(next) || !pct_manages(c->pct))
		return NULL;
	struct pct_setup *undo = pct_setup_new(c->pct, &c->rules->defs, false);
	*ret_result = undo ? 0 : -RP_ENOMEM;
	return undo;
}

void cpuclass_take_pct(struct cpuclass *c, struct pct *pct, struct pct_setup *undo)
{
	/* A removal that was not submitted yet is still due, unless the whole platform is set up
	 * again. */
	if (undo || pct_manages(pct)) {
		free(c->undo);
		c->undo = undo;
	}
	pct_adopt(pct, c->pct);
	pct_free(c->pct);
	c->pct = pct;
	c->platform_done = c->platform_again = c->platform_failed = c->platform_waits = false;
	c->stopped = false;
}

/* Handles the result of a removal: keeps a failed one for a later attempt, or logs the remedy. */
static void take_undo(struct cpuclass *c, struct cpuclass_job *job)
{
	if (job->setup_again && c->cookie && c->h.timer && c->n_tries + 1 < CTL_TRIES_MAX) {
		c->undo = job->setup;
		job->setup = NULL;
		return;
	}
	(void)c->h.speedselect->manage(c->h.ctx, 0);
	if (job->setup_failed)
		modhost_log(&c->h, RP_LOG_WARNING, 0,
			    "Speed Select keeps its configuration; to reset it: intel-speed-select "
			    "turbo-freq disable, intel-speed-select core-power disable");
}

bool cpuclass_take_platform(struct cpuclass *c, struct cpuclass_job *job)
{
	bool on = job->setup->on;
	if (on ? job->rules != c->rules : c->undo || (pct_manages(c->pct) && !c->stopped))
		return false;
	c->n_again += (uint32_t)job->setup_again - c->platform_again;
	c->platform_again = job->setup_again;
	c->platform_waits = job->setup_again && c->cookie && c->h.timer;
	if (!on) {
		take_undo(c, job);
		return true;
	}
	c->platform_failed = job->setup_failed;
	c->platform_done = !job->setup_again;
	return true;
}

bool cpuclass_platform_to_do(const struct cpuclass *c)
{
	return !c->platform_waits && (c->undo || (pct_manages(c->pct) && !c->platform_done));
}

/* Marks all CPUs to be written again. */
static void all_anew(struct cpuclass *c)
{
	for (uint32_t i = 0; i < c->n_seats; i++)
		c->seats[i].done = NOT_DONE;
}

/* Returns true if this instance may remove the setup: another instance that took over the platform
 * since would lose its own. The claim is kept until the removal is done, which may take several
 * attempts. */
static bool may_undo(struct cpuclass *c)
{
	const struct rp_host_speedselect *s = c->h.speedselect;
	return s->manage(c->h.ctx, 0) == 0 && s->manage(c->h.ctx, 1) == 0;
}

static bool add_undo(struct cpuclass *c, struct cpuclass_job *job)
{
	struct pct_setup *undo = c->undo;
	c->undo = NULL;
	c->set_up = false;
	if (!may_undo(c)) {
		free(undo);
		return true;
	}
	job->setup = undo;
	all_anew(c); /* the removal assigns all CPUs to CLOS 0 */
	return true;
}

bool cpuclass_add_platform(struct cpuclass *c, struct cpuclass_job *job)
{
	if (c->undo)
		return add_undo(c, job);
	job->setup = pct_setup_new(c->pct, &c->rules->defs, true);
	if (!job->setup)
		return false;
	(void)c->h.speedselect->manage(c->h.ctx, 1);
	c->set_up = c->platform_done = true;
	all_anew(c);
	return true;
}

void cpuclass_not_submitted(struct cpuclass *c, struct cpuclass_job *job)
{
	if (!job->setup)
		return;
	if (job->setup->on) {
		c->platform_done = c->set_up = false;
	} else if (!c->undo) {
		c->undo = job->setup;
		job->setup = NULL;
	}
}

const struct pct *cpuclass_pct(const struct cpuclass *c)
{
	return c ? c->pct : NULL;
}

bool cpuclass_platform_fails(const struct cpuclass *c)
{
	return c && c->platform_failed;
}

void cpuclass_extended(const struct cpuclass *c, const struct cpuclass_defs *defs,
		       const struct rp_extended_sink *sink, const char *domain,
		       void (*held)(void *arg, uint32_t class, struct rp_idset *ret), void *arg)
{
	const struct pct *pct = cpuclass_platform_fails(c) ? NULL : cpuclass_pct(c);
	char name[EXTENDED_DOMAIN_MAX + CPUCLASS_NAME_MAX];
	(void)snprintf(name, sizeof name, "%s*", domain);
	sink->own(sink->ctx, name);
	for (uint32_t i = 0; pct && defs && i < defs->n; i++) {
		struct rp_idset used;
		if (!defs->list[i].publish)
			continue;
		rp_idset_clear(&used);
		if (held)
			held(arg, i, &used);
		(void)snprintf(name, sizeof name, "%s%s", domain, defs->list[i].name);
		sink->resource(sink->ctx, name, pct_capacity(pct, i, rp_ids_of(&used)));
	}
}

/* Moves the setup that is to be removed at the end into the job. */
static bool take_setup(struct cpuclass *c, struct cpuclass_job *job)
{
	job->setup = c->undo ? c->undo : pct_setup_new(c->pct, &c->rules->defs, false);
	c->undo = NULL;
	return job->setup != NULL;
}

void cpuclass_stop(struct cpuclass *c)
{
	if (!c || !c->h.work)
		return;
	c->stopped = true;
	c->cookie = 0; /* no further attempts */
	if (!c->rules)
		return;
	bool undo = (c->set_up || c->undo) && may_undo(c);
	c->set_up = false;
	struct cpuclass_job *job = cpuclass_new_job(c);
	if (!job) {
		modhost_log(&c->h, RP_LOG_ERROR, 0,
			    "out of memory: settings of CPU classes are unchanged");
		return;
	}
	cpuclass_leave_all(c, job);
	if (undo && !take_setup(c, job))
		modhost_log(&c->h, RP_LOG_ERROR, 0, "out of memory: Speed Select is unchanged");
	cpuclass_submit(c, job);
}
