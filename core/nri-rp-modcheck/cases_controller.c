/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: controllers on a machine without the files that they read and write, and on one with
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rp-modcheck/churn.h"
#include "core/nri-rp-modcheck/fixture.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/clock.h"

#define CTRS 16u
#define ROUNDS 20u
#define FILE_ROUNDS 2u /* instances run with files */
#define FILE_TICKS 4u /* rounds of expiring timers for each of them */

/* ---- hooks ----------------------------------------------------------------------------------- */

static int call_pre_create(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct decision *d = txn_stage(rig_txn(r), ctr);
	if (!d)
		return -ENOMEM;
	txn_set_created(rig_txn(r), ctr);
	int bad = instance_pre_create(r->instance, ctr, err);
	if (!bad)
		d->state = RP_STATE_CREATED;
	return bad;
}

/* Accepts 0 and the error codes that the ABI allows a hook to return. */
static int cases_controller_allowed(int result, const char *what, struct err *err)
{
	int bad = result ? rig_known_code(result, what, err) : 0;
	return bad == RIG_REFUSED ? 0 : bad;
}

static int life_of(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	struct ctr *ctr;
	int bad = rig_put(r, w, &ctr, err);
	if (bad)
		return bad;
	bad = rig_decide(r, call_pre_create, ctr, "pre_create", err);
	if (bad) {
		*ret = NULL;
		return bad == RIG_REFUSED ? rig_drop(r, ctr, err) : bad;
	}
	*ret = ctr;
	bad = cases_controller_allowed(instance_post_start(r->instance, ctr, err), "post_start",
				       err);
	for (uint32_t changed = 1; !bad && changed <= RP_CHANGED_CLASS; changed <<= 1)
		bad = cases_controller_allowed(instance_post_update(r->instance, ctr, changed, err),
					       "post_update", err);
	return bad;
}

/* Ends all containers, also after an error, which is `bad`. */
static int end_all(struct rig *r, struct ctr *ctrs[static CTRS], int bad, struct err *err)
{
	for (unsigned i = 0; i < CTRS; i++) {
		if (!ctrs[i])
			continue;
		int worse = cases_controller_allowed(instance_post_stop(r->instance, ctrs[i], err),
						     "post_stop", err);
		worse = worse ? worse : rig_drop(r, ctrs[i], err);
		bad = bad ? bad : worse;
	}
	return bad;
}

static int cases_controller_hooks(struct rig *r, struct churn *churn, struct err *err)
{
	struct ctr *ctrs[CTRS] = {NULL};
	int bad = 0;
	for (unsigned i = 0; !bad && i < CTRS; i++) {
		struct wish w;
		churn_wish(churn, &w);
		bad = life_of(r, &w, &ctrs[i], err);
	}
	if (bad)
		return bad;
	instance_controller_sync(r->instance);
	instance_controller_timer(r->instance, 0);
	instance_measure(r->instance);
	bad = r->late ? 0 : rig_finish_jobs(r, err);
	bad = end_all(r, ctrs, bad ? bad : rig_commit(r, r->check->conf, err), err);
	return bad || r->late ? bad : rig_finish_jobs(r, err);
}

/* Runs one instance from creation to stop. */
static int run_once(struct rig *r, struct churn *churn,
		    int (*hooks)(struct rig *r, struct churn *churn, struct err *err),
		    bool *ret_started, struct err *err)
{
	int bad = rig_create(r, err);
	bad = bad ? bad : rig_commit(r, r->check->conf, err);
	if (bad)
		return bad == RIG_REFUSED ? err->code : bad;
	int started = instance_start(r->instance, err);
	bad = cases_controller_allowed(started, "start", err);
	*ret_started = !started;
	if (!started) {
		bad = hooks(r, churn, err);
		instance_stop(r->instance);
	}
	if (!r->late)
		bad = bad ? bad : rig_finish_jobs(r, err);
	rig_destroy(r);
	return bad ? bad : rig_finish_jobs(r, err);
}

static int cases_controller_lives(struct check *c, struct err *err)
{
	bool started = false;
	int bad = 0;
	for (unsigned i = 0; !bad && i < ROUNDS; i++) {
		bad = run_once(c->rig, c->churn, cases_controller_hooks, &started, err);
		bad = bad ? bad : rig_wipe(c->rig, err);
	}
	if (!bad && !started)
		check_note(c, "start() refuses this topology: %s", err->text);
	return bad;
}

/* Makes the host's calls fail at every point of the hooks. */
static int cases_controller_faults(struct check *c, struct err *err)
{
	struct rig *r = c->rig;
	struct shim *s = r->shim;
	bool started;
	uint64_t n = 0;
	int bad;
	s->fail_code = -RP_ENOMEM;
	do {
		churn_init(c->churn, r, c->seed);
		s->n_calls = 0;
		s->fired = false;
		s->fail_at = ++n;
		bad = run_once(r, c->churn, cases_controller_hooks, &started, err);
		if (bad < 0 && s->fired && rig_known_code(bad, "", NULL) == RIG_REFUSED)
			bad = 0; /* an accepted refusal of creation, configuration or reload */
		rig_destroy(r);
		bad = bad ? bad : rig_wipe(r, err);
	} while (!bad && s->fired && n < 500);
	if (!bad)
		check_note(c, "%llu calls", (unsigned long long)n - 1);
	return bad;
}

/* ---- files ----------------------------------------------------------------------------------- */

#define FILE_CLASS "gold" /* class of RDT, block I/O, CPU and memory, if the configuration has it */

/* Requests what controllers act on: a memory class, and batch resources. */
static void file_wish(struct churn *churn, struct wish *w, char *spec, size_t size)
{
	churn_wish(churn, w);
	(void)snprintf(spec, size,
		       "{\"containers\": {\"%s\": {\"requests\": {\"kubernetes.io/batch-cpu\": "
		       "\"500\"}, \"limits\": {\"kubernetes.io/batch-cpu\": \"1000\", "
		       "\"kubernetes.io/batch-memory\": \"64Mi\"}}}}",
		       w->id);
	w->annotations[0] = (struct kv){"class.memory-qos.nri.io", FILE_CLASS};
	w->annotations[1] = (struct kv){"node.koordinator.sh/extended-resource-spec", spec};
	w->n_annotations = 2;
}

/* Sets a decision as a policy would: CPUs and classes. */
static int file_decide(struct rig *r, struct ctr *ctr, struct err *err)
{
	struct decision *d = &ctr->cur;
	struct blob **classes[] = {&d->rdt_class, &d->blockio_class, &d->cpu_class};
	struct iset *cpus = intern_get(cache_sets(r->env->cache), rig_online(r));
	for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++) {
		struct blob *name = blob_new(FILE_CLASS, strlen(FILE_CLASS));
		if (!name || !cpus)
			return err_errno(err, -ENOMEM, "decision");
		txn_put_blob(classes[i], name);
	}
	txn_put_set(r->env->cache, &d->cpus, cpus);
	d->state = RP_STATE_RUNNING;
	return 0;
}

/* Creates a running container with its cgroup and with measured usage. */
static int file_container(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err)
{
	int bad = life_of(r, w, ret, err);
	struct ctr *ctr = *ret;
	if (bad || !ctr)
		return bad;
	bad = file_decide(r, ctr, err);
	if (bad)
		return bad;
	ctr->usage = calloc(1, sizeof *ctr->usage);
	if (!ctr->usage)
		return err_errno(err, -ENOMEM, "usage");
	for (unsigned i = 0; i < 2; i++)
		usage_put(ctr->usage, FIG_CPU, i * UINT64_C(100000000),
			  clock_ms() - 1000 + i * 900);
	bad = fixture_cgroup(r->check->machine, ctr->cgroups_path, err);
	bad = bad ? bad
		  : cases_controller_allowed(instance_post_start(r->instance, ctr, err),
					     "post_start", err);
	return bad ? bad
		   : cases_controller_allowed(
			     instance_post_update(r->instance, ctr, RP_CHANGED_CLASS, err),
			     "post_update", err);
}

/* Lets the armed timers expire and the jobs end. Timers armed meanwhile wait for the next call. */
static int file_tick(struct rig *r, struct err *err)
{
	struct shim *s = r->shim;
	uint64_t cookies[SHIM_TIMERS_MAX];
	unsigned n = s->n_timers;
	memcpy(cookies, s->timers, sizeof cookies);
	s->n_timers = 0;
	for (unsigned i = 0; i < n; i++)
		instance_controller_timer(r->instance, cookies[i]);
	instance_measure(r->instance);
	(void)usleep(2000); /* a rate needs two readings at different times */
	return rig_finish_jobs(r, err);
}

static int file_hooks(struct rig *r, struct churn *churn, struct err *err)
{
	struct ctr *ctrs[CTRS] = {NULL};
	int bad = 0;
	for (unsigned i = 0; !bad && i < CTRS; i++) {
		struct wish w;
		char spec[512];
		file_wish(churn, &w, spec, sizeof spec);
		bad = file_container(r, &w, &ctrs[i], err);
	}
	if (!bad)
		instance_controller_sync(r->instance);
	for (unsigned i = 0; !bad && i < FILE_TICKS; i++)
		bad = file_tick(r, err);
	bad = bad ? bad : rig_commit(r, r->check->conf, err);
	bad = bad ? bad : file_tick(r, err);
	bad = end_all(r, ctrs, bad, err);
	return bad ? bad : rig_finish_jobs(r, err);
}

static int cases_controller_files(struct check *c, struct err *err)
{
	_cleanup_(rig_close) struct rig r = {.check = c};
	struct churn churn;
	bool started = false;
	int bad = fixture_node(c->machine, err);
	bad = bad ? bad : rig_open(&r, c, NULL, err);
	if (bad)
		return bad;
	churn_init(&churn, &r, c->seed);
	for (unsigned i = 0; !bad && i < FILE_ROUNDS; i++) {
		r.shim->n_timers = 0;
		bad = run_once(&r, &churn, file_hooks, &started, err);
		bad = bad ? bad : rig_wipe(&r, err);
	}
	fixture_remove(c->machine);
	if (!bad && !started)
		return check_skip(c, "start() refuses this topology: %s", err->text);
	if (!bad)
		check_note(c, "%u jobs", r.shim->n_jobs);
	return bad;
}

static const struct check_case cases[] = {
	{"controller/absent-files", RP_KIND_CONTROLLER, CASE_MACHINES | CASE_OPEN,
	 cases_controller_lives,
	 "start, all hooks, reload and stop without anything to control: no crash, no job left"},
	{"controller/files", RP_KIND_CONTROLLER, CASE_SMALL, cases_controller_files,
	 "jobs read and write cgroups, /proc and resctrl, and only call host functions marked "
	 "[any]"},
	{"controller/late", RP_KIND_CONTROLLER, CASE_SMALL | CASE_OPEN | CASE_LATE,
	 cases_controller_lives,
	 "results of jobs arrive after containers are removed and after stop"},
	{"controller/faults", RP_KIND_CONTROLLER, CASE_SMALL | CASE_SLOW | CASE_OPEN,
	 cases_controller_faults, "each call of the host fails once with ENOMEM"},
};

const struct check_group controller_cases = {cases, sizeof cases / sizeof *cases};
