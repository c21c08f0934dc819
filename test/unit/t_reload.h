/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for reloads in tests: wait for the answer and save its text. */
#ifndef TEST_UNIT_T_RELOAD_H
#define TEST_UNIT_T_RELOAD_H

#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "test/unit/t_world.h"

struct answer {
	unsigned n;
	int code;
	char text[ERR_TEXT_MAX], warnings[2048], changes[2048], moves[2048];
	bool restart_needed;
	unsigned n_moves;
};

static inline void answered(const struct reload_result *res, void *arg)
{
	struct answer *a = arg;
	a->n++;
	a->code = res->code;
	a->restart_needed = res->report->restart_needed;
	a->n_moves = (unsigned)res->report->n_moves;
	(void)snprintf(a->text, sizeof a->text, "%s", res->err.text);
	(void)snprintf(a->warnings, sizeof a->warnings, "%s", res->warnings);
	(void)snprintf(a->changes, sizeof a->changes, "%s", res->report->changes);
	a->moves[0] = '\0';
	for (unsigned i = 0; i < a->n_moves; i++) {
		const Trial__Move *m = res->report->moves[i];
		size_t used = strlen(a->moves);
		(void)snprintf(a->moves + used, sizeof a->moves - used, "%s: %s>%s %s>%s %s\n",
			       m->ctr, m->from_cpus, m->to_cpus, m->from_mems, m->to_mems, m->note);
	}
}

static inline bool is_answered(struct world *w, void *arg)
{
	return ((struct answer *)arg)->n > 0;
}

static inline struct answer reload(struct world *w, const char *conf)
{
	struct answer a = {0};
	world_configure(w, conf);
	pipeline_reload(w->p, answered, &a);
	world_until(w, is_answered, &a);
	assert_int_equal(a.n, 1);
	return a;
}

static inline bool is_idle(struct world *w, void *arg)
{
	for (unsigned i = 0; i < w->p->controllers.n; i++)
		if (instance_jobs(w->p->controllers.list[i]->instance))
			return false;
	return !instance_jobs(w->p->policy);
}

/* Reloads when modules are idle, as a sanitizer's allocator has locks that a child could find
 * held by the worker. `why`: the expected text of a refusal. */
static inline void reload_idle(struct world *w, const char *conf, const char *why)
{
	world_until(w, is_idle, NULL);
	struct answer a = reload(w, conf);
	if (why ? a.code >= 0 || !strstr(a.text, why) : a.code < 0)
		fail_msg("%d: '%s'", a.code, a.text);
}

#endif
