/* SPDX-License-Identifier: Apache-2.0 */
/* The table of conditions, and functions by which other parts of the daemon report their state. */
#include "core/nri-rpd/pipeline/observe/conditions.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/nri-rpd/pipeline/controllers/life.h"

#define LOG_SOURCE "pipeline"

#define STORE_LATE_MS 5000u /* age of unsaved data at which the store is reported as late */

struct look {
	const struct pipeline *p;
	struct condition row;
	void (*fn)(const struct condition *c, void *arg);
	void *arg;
	unsigned n;
};

/* Reports a condition with its text. */
__attribute__((format(printf, 2, 3))) static void conditions_say(struct look *l, const char *fmt,
								 ...)
{
	char text[CONDITION_TEXT_MAX];
	va_list ap;
	l->n++;
	if (!l->fn)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	l->row.text = text;
	l->fn(&l->row, l->arg);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void files_refused(struct look *l)
{
	const struct pipeline *p = l->p;
	if (p->reloads.undo.undone && !p->reloads.saved_ns) {
		l->row.severity = SEVERITY_DEGRADED;
		l->row.hint = "edit it and run nri-rpctl reload; without an edit, nri-rpctl reload "
			      "activates it again";
		conditions_say(l, "%s was undone, the previous configuration is active",
			       p->config_path);
		return;
	}
	if (p->reloads.error[0] && p->reloads.saved_ns)
		conditions_say(l, "%s is invalid; using the last working configuration: %s",
			       p->config_path, p->reloads.error);
	else if (p->reloads.error[0] && !p->stats.reloads_refused)
		conditions_say(l, "%s is invalid: %s", p->config_path, p->reloads.error);
	else if (p->reloads.error[0])
		conditions_say(l, "the last reload was refused: %s", p->reloads.error);
}

static void safe_mode(struct look *l)
{
	const struct pipeline *p = l->p;
	const char *policy = p->policy ? instance_name(p->policy) : "none";
	if (p->reloads.safe_mode_reason[0] && str_eq(policy, p->reloads.configured_policy))
		conditions_say(l, "safe mode: %s", p->reloads.safe_mode_reason);
	else if (p->reloads.safe_mode_reason[0])
		conditions_say(l, "safe mode, policy %s instead of %s: %s", policy,
			       p->reloads.configured_policy, p->reloads.safe_mode_reason);
}

static void config_not_kept(struct look *l)
{
	if (l->p->reloads.save_error[0] && !l->p->state.state_error[0])
		conditions_say(l, "the active configuration cannot be saved for later starts: %s",
			       l->p->reloads.save_error);
}

static void runtime_disconnected(struct look *l)
{
	const struct runtime_state *rt = &l->p->runtime;
	if (!rt->connected)
		conditions_say(l, "the runtime is not connected: %s",
			       rt->last_error[0] ? rt->last_error : "no attempt has ended yet");
}

static void runtime_unsynchronized(struct look *l)
{
	if (l->p->runtime.connected && !l->p->runtime.synchronized)
		conditions_say(l, "the runtime has not sent its list of containers yet");
}

static void not_placed(struct look *l)
{
	if (l->p->requests.sync_failed)
		conditions_say(
			l, "policy %s could not place the running containers: they keep their CPUs",
			l->p->policy ? instance_name(l->p->policy) : "none");
}

static void all_refused(struct look *l)
{
	const struct refusals *r = &l->p->observe.refusals;
	if (r->n >= REFUSED_IN_A_ROW)
		conditions_say(l, "the last %u containers were all refused, the last one: %s", r->n,
			       r->last);
}

static void store_failing(struct look *l)
{
	struct store_stats st;
	store_stats(l->p->store, &st);
	if (st.failures && store_pending(l->p->store) &&
	    clock_ms() - st.last_commit_ms > STORE_LATE_MS)
		conditions_say(
			l,
			"the state cannot be written, a restart may move containers: %llu commits "
			"failed, the last one: %s",
			(unsigned long long)st.failures, st.last_error);
}

static void containers_degraded(struct look *l)
{
	unsigned n = pipeline_n_degraded(l->p);
	if (n)
		conditions_say(l,
			       n == 1 ? "%u container is not placed as requested"
				      : "%u containers are not placed as requested",
			       n);
}

static void controllers_down(struct look *l)
{
	for (unsigned i = 0; i < l->p->controllers.n; i++) {
		const struct controller *c = l->p->controllers.list[i];
		if (!controller_runs(c))
			conditions_say(l, "controller %s is not running: %s", c->name, c->error);
	}
}

/* ---- table ----------------------------------------------------------------------------------- */

#define TEXT(words, member) .what = words, .at = offsetof(struct pipeline, member)
static const struct row {
	struct condition c;
	void (*look)(struct look *l);
	/* without `look`: the condition holds while the text at this place is not empty, and
	 * reports the text behind `what` */
	const char *what;
	size_t at;
} rows[] = {
	{{"config-refused", "configuration", SEVERITY_UNHEALTHY,
	  "nri-rpctl config check shows what is wrong; then nri-rpctl reload", NULL, false},
	 .look = files_refused},
	{{"safe-mode", "configuration", SEVERITY_UNHEALTHY,
	  "fix the cause, then: nri-rpctl modules clear NAME, nri-rpctl reload", NULL, true},
	 .look = safe_mode},
	{{"state-unusable", "store", SEVERITY_DEGRADED,
	  "fix it (see cache.dir in rp.conf), then systemctl restart nri-rpd", NULL, false},
	 TEXT("the state directory cannot be used: ", state.state_error)},
	{{"run-unusable", "modules", SEVERITY_DEGRADED,
	  "fix the folder of the control socket, then systemctl restart nri-rpd", NULL, false},
	 TEXT("the run-time directory cannot be used: ", state.run_error)},
	{{"config-not-kept", "configuration", SEVERITY_DEGRADED,
	  "is the disk full? then nri-rpctl reload", NULL, false},
	 .look = config_not_kept},
	{{"runtime-disconnected", "runtime", SEVERITY_UNHEALTHY,
	  "is it running? systemctl status containerd", NULL, true},
	 .look = runtime_disconnected},
	{{"runtime-unsynchronized", "runtime", SEVERITY_UNHEALTHY,
	  "normally this takes a second; if it lasts, restart the runtime", NULL, true},
	 .look = runtime_unsynchronized},
	{{"not-placed", "requests", SEVERITY_UNHEALTHY, "nri-rpctl events has the reason", NULL,
	  true},
	 .look = not_placed},
	{{"all-refused", "requests", SEVERITY_UNHEALTHY,
	  "does the policy's configuration fit this node? nri-rpctl events has the reasons", NULL,
	  false},
	 .look = all_refused},
	{{"store-failing", "store", SEVERITY_UNHEALTHY,
	  "is the disk full? df -h, and see cache.dir in rp.conf", NULL, false},
	 .look = store_failing},
	{{"containers-degraded", "containers", SEVERITY_DEGRADED, "nri-rpctl explain CONTAINER",
	  NULL, false},
	 .look = containers_degraded},
	{{"controller-down", "controllers", SEVERITY_DEGRADED, NULL, NULL, false},
	 .look = controllers_down},
	{{"control-unserved", "control socket", SEVERITY_DEGRADED,
	  "see control.socket in rp.conf; the next reload tries again", NULL, false},
	 TEXT("", observe.unserved[SERVICE_CONTROL])},
	{{"metrics-unserved", "metrics", SEVERITY_DEGRADED,
	  "see metrics.listen in rp.conf; the next reload tries again", NULL, false},
	 TEXT("", observe.unserved[SERVICE_METRICS])},
	{{"agent-unserved", "agent", SEVERITY_DEGRADED,
	  "see agent.socket in rp.conf; the next reload tries again", NULL, false},
	 TEXT("", observe.unserved[SERVICE_AGENT])},
};
#define N_ROWS (sizeof rows / sizeof rows[0])
_Static_assert(N_ROWS <= CONDITIONS_MAX, "too many conditions");

static void conditions_look(struct look *l, const struct row *r)
{
	const char *text = (const char *)l->p + r->at;
	l->row = r->c;
	if (r->look)
		r->look(l);
	else if (*text)
		conditions_say(l, "%s%s", r->what, text);
}

const struct condition *condition_row(unsigned i)
{
	return i < N_ROWS ? &rows[i].c : NULL;
}

const char *conditions_unplaced(const struct pipeline *p)
{
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct look l = {.p = p};
		if (rows[i].c.unplaced)
			conditions_look(&l, &rows[i]);
		if (l.n)
			return rows[i].c.id;
	}
	return "";
}

unsigned conditions_each(const struct pipeline *p, void (*fn)(const struct condition *c, void *arg),
			 void *arg)
{
	struct look l = {.p = p, .fn = fn, .arg = arg};
	for (unsigned i = 0; i < N_ROWS; i++)
		conditions_look(&l, &rows[i]);
	return l.n;
}

/* ---- reports of other parts ------------------------------------------------------------------ */

void pipeline_served(struct pipeline *p, enum service s, const struct err *err)
{
	static const char *const names[N_SERVICES] = {
		[SERVICE_CONTROL] = "the control socket is not as configured",
		[SERVICE_METRICS] = "metrics are not served as configured",
		[SERVICE_AGENT] = "the agent is not served as configured",
	};
	p->observe.unserved[s][0] = '\0';
	if (!err)
		return;
	(void)snprintf(p->observe.unserved[s], sizeof p->observe.unserved[s], "%s: %s", names[s],
		       err_text(err, err->code));
	log_error("%s", p->observe.unserved[s]);
	pipeline_event(p, EV_DEGRADED, "%s", p->observe.unserved[s]);
}

void conditions_created(struct pipeline *p)
{
	p->observe.refusals.n = 0;
}

DEFINE_GETTER(conditions_refusals, unsigned, p->observe.refusals.n)

void conditions_refused(struct pipeline *p, const char *ctr, const char *why)
{
	struct refusals *r = &p->observe.refusals;
	unsigned hash = hash_bytes(ctr, strlen(ctr));
	(void)snprintf(r->last, sizeof r->last, "%s", why);
	for (unsigned i = 0; i < r->n; i++)
		if (r->who[i] == hash)
			return;
	if (r->n < REFUSED_IN_A_ROW)
		r->who[r->n++] = hash;
}
