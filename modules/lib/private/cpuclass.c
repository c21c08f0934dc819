/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of CPUs on the main thread: which CPU is in which class, and jobs for the worker.
 * cpuclass_defs.c reads the definitions, cpuclass_write.c is the worker's part. */
#include <stdlib.h>
#include <string.h>

#include "modules/lib/private/cpuclass_impl.h"
#include "modules/lib/private/ctl_queue.h"

/* ---- copied definitions ---------------------------------------------------------------------- */

static char *cpuclass_own(struct rules *r, const char *text)
{
	char *copy = strdup(text);
	if (copy && r->n_texts < RULES_TEXTS)
		r->texts[r->n_texts++] = copy;
	return copy;
}

static struct rules *rules_unref(struct rules *r)
{
	if (!r || --r->refs)
		return NULL;
	for (uint32_t i = 0; i < r->n_texts; i++)
		free(r->texts[i]);
	free(r);
	return NULL;
}

static struct rules *rules_new(const struct cpuclass_defs *defs)
{
	struct rules *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->refs = 1;
	r->defs = *defs;
	bool ok = true;
	for (uint32_t i = 0; i < defs->n; i++) {
		struct cpuclass_def *d = &r->defs.list[i];
		d->name = cpuclass_own(r, d->name);
		d->governor = cpuclass_own(r, d->governor);
		ok = ok && d->name && d->governor;
		for (uint32_t k = 0; k < d->n_disabled_cstates; k++) {
			d->disabled_cstates[k] = cpuclass_own(r, d->disabled_cstates[k]);
			ok = ok && d->disabled_cstates[k];
		}
	}
	return ok ? r : rules_unref(r);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

struct cpuclass *cpuclass_new(const struct modhost *h)
{
	struct cpuclass *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->h = *h;
	c->back = cpuclass_back_new(h);
	return c->back ? c : cpuclass_free(c);
}

struct cpuclass *cpuclass_free(struct cpuclass *c)
{
	if (!c)
		return NULL;
	rules_unref(c->rules);
	cpuclass_back_free(c->back);
	pct_free(c->pct);
	free(c->undo);
	free(c->seats);
	free(c->dies);
	free(c);
	return NULL;
}

static uint32_t die_of(struct cpuclass *c, uint32_t package, uint32_t die)
{
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (c->dies[i].package == package && c->dies[i].die == die)
			return i;
	c->dies[c->n_dies] = (struct die){.package = package, .die = die};
	return c->n_dies++;
}

static int32_t take_seats(struct cpuclass *c, struct rp_ids allowed)
{
	struct rp_ids online;
	if (c->h.topology->set(c->h.ctx, RP_CPUS_ONLINE, &online) || rp_ids_empty(online))
		return -RP_EINVAL;
	struct seat *former = c->seats;
	uint32_t n_former = c->n_seats, n = rp_ids_last(online) + 1;
	n = n > n_former ? n : n_former;
	struct seat *seats = calloc(n, sizeof *seats);
	struct die *dies = calloc(rp_ids_count(online), sizeof *dies);
	if (!seats || !dies) {
		free(seats);
		free(dies);
		return -RP_ENOMEM;
	}
	for (uint32_t i = 0; i < n_former; i++)
		seats[i].touched = former[i].touched;
	free(former);
	free(c->dies);
	c->seats = seats;
	c->dies = dies;
	c->n_seats = n;
	c->n_dies = 0;
	RP_IDS_EACH (cpu, online) {
		struct rp_cpu_info info = {.size = offsetof(struct rp_cpu_info, base_khz)};
		if (c->h.topology->cpu(c->h.ctx, cpu, &info))
			continue;
		seats[cpu] = (struct seat){
			.package = info.package_id,
			.die = die_of(c, info.package_id, info.die_id),
			.done = NOT_DONE,
			.online = true,
			.allowed = rp_ids_has(allowed, cpu),
			.touched = seats[cpu].touched,
		};
	}
	return 0;
}

int32_t cpuclass_configure(struct cpuclass *c, const struct cpuclass_defs *defs,
			   struct rp_ids allowed)
{
	c->used = c->used || defs->n;
	if (!c->used)
		return 0;
	struct rules *rules = rules_new(defs);
	if (!rules)
		return -RP_ENOMEM;
	struct pct *pct = NULL;
	int32_t r = pct_new(&c->h, defs, allowed, &pct);
	struct pct_setup *undo = cpuclass_what_to_undo(c, pct, &r);
	if (!r)
		r = take_seats(c, allowed);
	if (r) {
		free(undo);
		pct_free(pct);
		rules_unref(rules);
		return r;
	}
	cpuclass_take_pct(c, pct, undo);
	rules_unref(c->rules);
	c->rules = rules;
	c->complained = 0;
	c->n_failing = c->n_again = c->n_tries = 0;
	return 0;
}

void cpuclass_use(struct cpuclass *c, uint32_t class, struct rp_ids cpus)
{
	uint16_t wanted = class == CPUCLASS_NONE ? 0 : (uint16_t)(class + 1);
	if (!c->rules)
		return;
	RP_IDS_EACH (cpu, cpus)
		if (cpu < c->n_seats && c->seats[cpu].allowed) {
			c->seats[cpu].wanted = wanted;
			c->seats[cpu].touched |= wanted != 0;
			pct_use(c->pct, class, cpu);
		}
}

uint32_t cpuclass_of(const struct cpuclass *c, uint32_t cpu)
{
	if (cpu >= c->n_seats || !c->seats[cpu].wanted)
		return CPUCLASS_NONE;
	return c->seats[cpu].wanted - 1u;
}

void cpuclass_retry(struct cpuclass *c, uint64_t cookie, void (*done)(void *arg), void *arg)
{
	c->cookie = cookie;
	c->done = done;
	c->arg = arg;
}

void cpuclass_timer(struct cpuclass *c, uint64_t cookie)
{
	if (!c->cookie || cookie != c->cookie)
		return;
	c->platform_waits = false;
	cpuclass_commit(c);
}

uint32_t cpuclass_n_failing(const struct cpuclass *c)
{
	return c->n_failing;
}

bool cpuclass_fails(const struct cpuclass *c, uint32_t cpu)
{
	return cpu < c->n_seats && c->seats[cpu].failed;
}

const char *cpuclass_why(const struct cpuclass *c)
{
	return c->n_failing || c->platform_failed ? c->why : "";
}

void cpuclass_stats(const struct cpuclass *c, struct cpuclass_stats *ret)
{
	*ret = c->stats;
}

/* ---- commit ---------------------------------------------------------------------------------- */

static int64_t turbo_of(const struct cpuclass *c, uint64_t classes)
{
	int64_t winner = 0;
	for (uint32_t i = 0; i < c->rules->defs.n; i++)
		if ((classes >> i & 1) && c->rules->defs.list[i].turbo_priority > winner)
			winner = c->rules->defs.list[i].turbo_priority;
	return winner;
}

/* Returns the classes with CPUs in the turbo domain of a die. */
static uint64_t domain_of(const struct cpuclass *c, const struct die *d)
{
	uint64_t classes = 0;
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (c->rules->defs.turbo_system || c->dies[i].package == d->package)
			classes |= c->dies[i].classes;
	return classes;
}

static void count_classes(struct cpuclass *c)
{
	for (uint32_t i = 0; i < c->n_dies; i++)
		c->dies[i].classes = 0;
	for (uint32_t i = 0; i < c->n_seats; i++)
		if (c->seats[i].wanted)
			c->dies[c->seats[i].die].classes |= UINT64_C(1) << (c->seats[i].wanted - 1);
}

/* Returns true if the CPU's files may be written. A CPU that is no longer allowed is written too,
 * to restore it. */
static bool is_ours(const struct seat *s)
{
	return s->online && (s->allowed || s->touched);
}

/* Returns the value that `done` should have for a CPU. */
static uint16_t cpuclass_aim(const struct cpuclass *c, const struct seat *s, const int64_t *winners)
{
	uint32_t clos = (uint32_t)(pct_clos(c->pct, (uint32_t)(s - c->seats)) + 1) << CLOS_SHIFT;
	if (!s->wanted)
		return (uint16_t)clos;
	int64_t winner = winners[s->die];
	bool turbo = !winner || c->rules->defs.list[s->wanted - 1].turbo_priority >= winner;
	return (uint16_t)(s->wanted | clos | (turbo ? WITH_TURBO : 0u));
}

static void add_cpus(struct cpuclass *c, struct cpuclass_job *job, const int64_t *winners)
{
	for (uint32_t i = 0; i < c->n_seats; i++) {
		struct seat *s = &c->seats[i];
		uint16_t to = cpuclass_aim(c, s, winners);
		if (!is_ours(s) || s->done == to)
			continue;
		job->cpus[job->n_cpus++] = (struct cpuclass_cpu){
			.cpu = i,
			.class = s->wanted ? s->wanted - 1u : CPUCLASS_NONE,
			.turbo = to & WITH_TURBO,
			.clos = pct_clos(c->pct, i),
			.at = pct_at(c->pct, i),
		};
		s->done = to;
	}
}

static void add_dies(struct cpuclass *c, struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < c->n_dies; i++) {
		struct die *d = &c->dies[i];
		if (d->known && d->classes == d->done)
			continue;
		job->dies[job->n_dies++] = (struct cpuclass_die){
			.package = d->package, .die = d->die, .classes = d->classes};
		d->known = true;
		d->done = d->classes;
	}
}

void cpuclass_leave_all(struct cpuclass *c, struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < c->n_seats; i++) {
		struct seat *s = &c->seats[i];
		s->wanted = 0;
		s->done = NOT_DONE;
		if (s->online && s->touched)
			job->cpus[job->n_cpus++] = (struct cpuclass_cpu){
				.cpu = i, .class = CPUCLASS_NONE, .clos = PCT_NO_CLOS};
	}
	for (uint32_t i = 0; i < c->n_dies; i++) {
		struct die *d = &c->dies[i];
		d->known = false;
		job->dies[job->n_dies++] =
			(struct cpuclass_die){.package = d->package, .die = d->die};
	}
}

static void cpuclass_free_job(struct cpuclass_job *job)
{
	rules_unref(job->rules);
	free(job->setup);
	free(job->cpus);
	free(job->dies);
	free(job);
}

static void cpuclass_arm(struct cpuclass *c, uint64_t delay_ms)
{
	if (c->cookie && c->h.timer)
		(void)c->h.timer->arm(c->h.ctx, c->cookie, delay_ms);
}

static const char *first_message(const struct cpuclass_job *job)
{
	for (uint32_t i = 0; i < N_WHATS; i++)
		if (job->messages[i][0] && i != WHAT_SHARED)
			return job->messages[i];
	return "out of memory";
}

/* Updates the timer after a job. A job without any of the failed items leaves their retries
 * unchanged, as it says nothing about them. */
static void try_again(struct cpuclass *c, const struct cpuclass_job *job, bool failed, bool again)
{
	const char *more = "";
	if (!c->n_again && c->n_tries) {
		c->n_tries = 0;
		cpuclass_arm(c, 0);
	}
	if (again && c->cookie && c->h.timer) {
		uint64_t delay = (uint64_t)CTL_AGAIN_FIRST_MS << c->n_tries;
		bool last = ++c->n_tries >= CTL_TRIES_MAX;
		more = last ? "; given up" : "; trying again";
		if (delay > CTL_AGAIN_LAST_MS)
			delay = CTL_AGAIN_LAST_MS;
		cpuclass_arm(c, last ? 0 : delay);
		/* After giving up, each later change gets one attempt, without the timer. */
		c->n_tries = last ? CTL_TRIES_MAX - 1 : c->n_tries;
	}
	if (failed)
		(void)snprintf(c->why, sizeof c->why, "%s%s", first_message(job), more);
}

/* Records the result for a CPU. A CPU that went offline meanwhile needs no retry: when it is online
 * again, it is written as a new one. */
static bool take_cpu(struct cpuclass *c, struct cpuclass_cpu *cpu)
{
	if (cpu->cpu >= c->n_seats || !c->seats[cpu->cpu].online) {
		cpu->again = false;
		return false;
	}
	struct seat *s = &c->seats[cpu->cpu];
	c->n_failing += (uint32_t)cpu->failed - s->failed;
	c->n_again += (uint32_t)cpu->again - s->again;
	s->failed = cpu->failed;
	s->again = cpu->again;
	if (cpu->again)
		s->done = NOT_DONE;
	return cpu->failed;
}

static void take_die(struct cpuclass *c, const struct cpuclass_die *die)
{
	for (uint32_t i = 0; i < c->n_dies; i++) {
		struct die *d = &c->dies[i];
		if (d->package != die->package || d->die != die->die)
			continue;
		c->n_again += (uint32_t)die->again - d->again;
		d->again = die->again;
		d->known = d->known && !die->again;
	}
}

static void take_results(struct cpuclass *c, struct cpuclass_job *job)
{
	bool failed = false, again = false;
	for (uint32_t i = 0; i < job->n_cpus; i++) {
		failed |= take_cpu(c, &job->cpus[i]);
		again |= job->cpus[i].again;
	}
	for (uint32_t i = 0; i < job->n_dies; i++) {
		take_die(c, &job->dies[i]);
		again |= job->dies[i].again;
	}
	if (job->setup && cpuclass_take_platform(c, job)) {
		again |= job->setup_again;
		failed |= job->setup_failed;
	}
	try_again(c, job, failed, again);
}

/* Runs on the main thread. */
static void job_done(void *arg, int32_t result)
{
	struct cpuclass_job *job = arg;
	struct cpuclass *c = job->owner;
	c->stats.writes += job->writes;
	c->stats.failures += job->failures;
	c->stats.differing += job->differing;
	take_results(c, job);
	for (uint32_t i = 0; i < N_WHATS; i++) {
		if (!job->messages[i][0] || (c->complained >> i & 1))
			continue;
		c->complained |= 1u << i;
		modhost_log(&c->h, RP_LOG_WARNING, 0, "%s (further ones are not logged)",
			    job->messages[i]);
	}
	cpuclass_free_job(job);
	if (c->done)
		c->done(c->arg);
}

struct cpuclass_job *cpuclass_new_job(struct cpuclass *c)
{
	struct cpuclass_job *job = calloc(1, sizeof *job);
	if (!job)
		return NULL;
	job->owner = c;
	job->back = c->back;
	job->speedselect = c->h.speedselect;
	job->ctx = c->h.ctx;
	job->rules = c->rules;
	c->rules->refs++;
	job->cpus = calloc(c->n_seats, sizeof *job->cpus);
	job->dies = calloc(c->n_dies, sizeof *job->dies);
	if (job->cpus && job->dies)
		return job;
	cpuclass_free_job(job);
	return NULL;
}

static bool something_to_do(const struct cpuclass *c, const int64_t *winners)
{
	if (cpuclass_platform_to_do(c))
		return true;
	for (uint32_t i = 0; i < c->n_seats; i++)
		if (is_ours(&c->seats[i]) &&
		    c->seats[i].done != cpuclass_aim(c, &c->seats[i], winners))
			return true;
	for (uint32_t i = 0; i < c->n_dies; i++)
		if (!c->dies[i].known || c->dies[i].classes != c->dies[i].done)
			return true;
	return false;
}

void cpuclass_submit(struct cpuclass *c, struct cpuclass_job *job)
{
	if (!c->h.work->submit(c->h.ctx, cpuclass_run, job_done, job))
		return;
	for (uint32_t i = 0; i < job->n_cpus; i++)
		c->seats[job->cpus[i].cpu].done = NOT_DONE;
	for (uint32_t i = 0; i < c->n_dies; i++)
		c->dies[i].known = false;
	cpuclass_not_submitted(c, job);
	cpuclass_free_job(job);
}

void cpuclass_commit(struct cpuclass *c)
{
	if (!c->rules || !c->h.work || !c->n_dies)
		return;
	int64_t *winners = calloc(c->n_dies, sizeof *winners);
	struct cpuclass_job *job = NULL;
	count_classes(c);
	pct_count(c->pct);
	for (uint32_t i = 0; winners && i < c->n_dies; i++)
		winners[i] = turbo_of(c, domain_of(c, &c->dies[i]));
	if (winners && something_to_do(c, winners))
		job = cpuclass_new_job(c);
	if (job && cpuclass_platform_to_do(c) && !cpuclass_add_platform(c, job)) {
		cpuclass_free_job(job);
		job = NULL;
	}
	if (job) {
		add_cpus(c, job, winners);
		add_dies(c, job);
		cpuclass_submit(c, job);
	}
	free(winners);
}
