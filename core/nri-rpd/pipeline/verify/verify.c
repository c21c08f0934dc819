/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of cgroups. Runtimes apply updates in replies and report no failures of these, and other
 * programs write cgroups, too (drift.h). So some time after a container's start, after a reply and
 * after a write to its cgroup, the worker reads its sets and amounts. Differing values are sent to
 * the runtime again, with growing delays.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/cgroup.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/verify/amounts.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/grow.h"
#include "core/lib/util/log.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define LOG_SOURCE "verify"
#define VERIFY_DELAY_MS 2000u
#define SOON_PART 8u /* part of the delay for a container that has just started */
/* largest factor of the delay, as a power of two: about four minutes */
#define BACKOFF_SHIFT_MAX 7u
#define PEACE_MS 600000u /* time without a difference after which delays start over */

struct check {
	rp_ctr ctr;
	char *cgroups_path;
	uint32_t pid;
	/* expected sets; the worker compares their values, which are immutable while referenced */
	struct iset *cpus, *mems;
	struct cpu_amounts amounts; /* expected amounts */
	bool watched[N_DRIFT_DIRS];
	int watches[N_DRIFT_DIRS];
	enum culprit culprit;
	/* differing sets; NULL: as expected or unreadable */
	struct rp_idset *found_cpus, *found_mems;
	uint32_t other; /* DIFF_…: amounts that differ */
	char other_text[AMOUNTS_TEXT_MAX];
};

struct verify_job {
	struct pipeline *p;
	const struct fs_root *root;
	bool unified; /* the machine has cgroup v2; asked once for all checks */
	int inotify;
	struct rp_idset online;
	struct drift_traces traces;
	struct check *checks;
	uint32_t n;
	/* An update was outstanding at the beginning: the values read may be older. */
	bool telling;
};

static void job_free(struct verify_job *job)
{
	struct intern *sets = cache_sets(job->p->env.cache);
	for (uint32_t i = 0; i < job->n; i++) {
		struct check *c = &job->checks[i];
		free(c->cgroups_path);
		free(c->found_cpus);
		free(c->found_mems);
		intern_unref(sets, c->cpus);
		intern_unref(sets, c->mems);
	}
	free(job->checks);
	free(job);
}

/* ---- on the worker --------------------------------------------------------------------------- */

/* Returns the set found in a file if it differs, else NULL. With cgroup v1 the kernel removes
 * offline CPUs. */
static struct rp_idset *read_other(int dir, const char *file, uint32_t max, struct rp_ids expected,
				   struct rp_ids there)
{
	struct rp_idset found, left;
	if (fs_read_ids_at(dir, file, max, &found) || rp_ids_equal(rp_ids_of(&found), expected))
		return NULL;
	rp_idset_and(&left, expected, there);
	if (rp_ids_equal(rp_ids_of(&found), rp_ids_of(&left)))
		return NULL;
	struct rp_idset *other = malloc(sizeof *other);
	if (other)
		rp_idset_copy(other, rp_ids_of(&found));
	return other;
}

/* Opens a watched directory of the container. Negative: it does not exist. */
static int open_watched(struct verify_job *job, struct check *c, unsigned k)
{
	static const char *const controllers[N_DRIFT_DIRS] = {"cpuset", "cpu", "memory"};
	int dir = cgroup_open(job->root, job->unified, c->cgroups_path, c->pid, controllers[k]);
	if (dir >= 0 && !c->watched[k])
		c->watches[k] = drift_watch(job->inotify, dir);
	return dir;
}

static void look_at_amounts(struct verify_job *job, struct check *c)
{
	_close_ int cpu = open_watched(job, c, DRIFT_CPU);
	_close_ int memory =
		c->amounts.mem_limit == RP_NOT_SET ? -1 : open_watched(job, c, DRIFT_MEMORY);
	c->other = amounts_other(&c->amounts, cpu, memory, c->other_text);
}

static void look_at_sets(struct verify_job *job, struct check *c)
{
	struct rp_ids online = rp_ids_of(&job->online);
	_close_ int dir = open_watched(job, c, DRIFT_CPUSET);
	if (dir < 0)
		return;
	c->found_cpus = read_other(dir, "cpuset.cpus", RP_CPUS_MAX, c->cpus->ids, online);
	if (c->mems)
		c->found_mems =
			read_other(dir, "cpuset.mems", RP_NODES_MAX, c->mems->ids, c->mems->ids);
	if (c->found_cpus)
		c->culprit = drift_blame(job->root, &job->traces, c->cgroups_path, c->cpus->ids,
					 rp_ids_of(c->found_cpus),
					 rp_ids_subset(online, rp_ids_of(c->found_cpus)));
}

static int read_cgroups(void *arg)
{
	struct verify_job *job = arg;
	job->unified = cgroup_unified(job->root);
	for (uint32_t i = 0; i < job->n; i++) {
		struct check *c = &job->checks[i];
		if (c->cpus)
			look_at_sets(job, c);
		if (amounts_any(&c->amounts))
			look_at_amounts(job, c);
	}
	return 0;
}

/* ---- results --------------------------------------------------------------------------------- */

static void verify_acknowledge(struct pipeline *p, struct iset **acked,
			       const struct rp_idset *found)
{
	struct iset *set = found ? intern_get(cache_sets(p->env.cache), rp_ids_of(found)) : NULL;
	if (set)
		txn_put_set(p->env.cache, acked, set);
}

/* Describes a difference, as "CPUs 0-15 instead of 0-3". */
static void say_what(const struct check *c, char *text, size_t size)
{
	const struct rp_idset *found = c->found_cpus ? c->found_cpus : c->found_mems;
	char set[256];
	if (!found) {
		(void)snprintf(text, size, "%s", c->other_text);
		return;
	}
	const char *what = c->found_cpus ? "CPUs" : "memory nodes",
		   *wanted = c->found_cpus ? c->cpus->text : c->mems->text;
	(void)rp_ids_format(rp_ids_of(found), set, sizeof set);
	(void)(*set ? snprintf(text, size, "%s %s instead of %s", what, set, wanted)
		    : snprintf(text, size, "no %s of its own instead of %s", what, wanted));
}

/* Forgets acknowledged amounts that differ in the kernel, so that the next update sends them
 * again. */
static void forget_amounts(struct ctr *ctr, uint32_t other)
{
	if (other & DIFF_SHARES)
		ctr->acked.shares = RP_NOT_SET;
	if (other & (DIFF_QUOTA | DIFF_PERIOD))
		ctr->acked.quota = ctr->acked.period = RP_NOT_SET;
	if (other & DIFF_MEM_LIMIT)
		ctr->acked.mem_limit = RP_NOT_SET;
}

static void say_again(struct pipeline *p, struct ctr *ctr, const struct check *c)
{
	uint64_t now = clock_ms();
	char text[512];
	if (now > ctr->verify.repaired_ms + PEACE_MS)
		ctr->verify.tries = 0;
	unsigned shift =
		ctr->verify.tries < BACKOFF_SHIFT_MAX ? ctr->verify.tries : BACKOFF_SHIFT_MAX;
	if (ctr->verify.tries < UINT8_MAX)
		ctr->verify.tries++;
	ctr->verify.repaired_ms = now;
	ctr->verify.from_ms = now + ((uint64_t)p->verify.delay_ms << shift);
	say_what(c, text, sizeof text);
	if (ctr->verify.starting) {
		/* Runtimes do not apply the answer to Synchronize to a container that starts. */
		ctr->verify.starting = false;
		log_info("%s: has %s; sending its values to the runtime again", ctr->full_name,
			 text);
	} else {
		drift_note(p, ctr, c->culprit);
		log_warning("%s: has %s; sending its values to the runtime again; possibly "
			    "changed by %s",
			    ctr->full_name, text, culprit_text(c->culprit));
		pipeline_event_of(p, EV_DEGRADED, ctr, NULL,
				  "%s: had %s: restored; possibly changed by %s", ctr->full_name,
				  text, culprit_text(c->culprit));
	}
	verify_acknowledge(p, &ctr->acked.cpus, c->found_cpus);
	verify_acknowledge(p, &ctr->acked.mems, c->found_mems);
	forget_amounts(ctr, c->other);
	updates_add(p, ctr);
}

static struct cpu_amounts amounts_to_look_at(const struct pipeline *p, const struct ctr *ctr)
{
	static const struct cpu_amounts none = CPU_AMOUNTS_NONE;
	return controllers_take(p) & RP_TAKES_AMOUNTS ? none : amounts_of(ctr);
}

bool verify_has_amounts(const struct pipeline *p, const struct ctr *ctr)
{
	struct cpu_amounts a = amounts_to_look_at(p, ctr);
	return amounts_any(&a);
}

static bool has_changed(const struct pipeline *p, const struct ctr *ctr, const struct check *c)
{
	struct cpu_amounts now = amounts_to_look_at(p, ctr);
	return (c->cpus && (ctr->acked.cpus != c->cpus || ctr->acked.mems != c->mems)) ||
	       memcmp(&now, &c->amounts, sizeof now) != 0;
}

static void verify_verified(void *arg, int result)
{
	struct verify_job *job = arg;
	struct pipeline *p = job->p;
	bool missed = p->verify.drift.missed;
	assert(p->verify.running);
	p->verify.running = false;
	p->verify.drift.missed = false;
	for (uint32_t i = 0; i < job->n; i++) {
		const struct check *c = &job->checks[i];
		struct ctr *ctr = cache_ctr_of(p->env.cache, c->ctr);
		bool watched = false;
		for (unsigned k = 0; ctr && ctr_live(ctr->cur.state) && k < N_DRIFT_DIRS; k++) {
			drift_watched(p, ctr, k, c->watches[k]);
			watched = watched || c->watches[k];
		}
		if (!ctr || has_changed(p, ctr, c) || ctr->cur.state != RP_STATE_RUNNING)
			continue; /* changed meanwhile */
		bool other = c->found_cpus || c->found_mems || c->other;
		if (other && (job->telling || updates_outstanding(p) || ctr->in_updates))
			verify_later(p, ctr); /* the update may be on its way */
		else if (other)
			say_again(p, ctr, c);
		else if (missed && watched)
			verify_later(p, ctr);
		if (!other)
			ctr->verify.starting = false;
	}
	job_free(job);
}

/* ---- containers to check --------------------------------------------------------------------- */

static bool add_check(struct verify_job *job, const struct ctr *ctr)
{
	bool pinned = ctr->cur.cpus && ctr->acked.cpus;
	char *path = strdup(ctr->cgroups_path);
	if (!path)
		return false;
	assert(job->n < job->p->verify.n);
	struct check *c = &job->checks[job->n++];
	*c = (struct check){
		.ctr = ctr->handle,
		.cgroups_path = path,
		.pid = ctr->pid,
		.cpus = pinned ? intern_ref(ctr->acked.cpus) : NULL,
		.mems = pinned && ctr->acked.mems ? intern_ref(ctr->acked.mems) : NULL,
		.amounts = amounts_to_look_at(job->p, ctr),
	};
	for (unsigned k = 0; k < N_DRIFT_DIRS; k++)
		c->watched[k] = ctr->drift.watches[k] != 0;
	return true;
}

static bool is_given(const struct pipeline *p, const struct ctr *ctr)
{
	return ctr->cur.state == RP_STATE_RUNNING &&
	       ((ctr->cur.cpus && ctr->acked.cpus) || verify_has_amounts(p, ctr));
}

/* Moves containers that are due into the job; the others remain queued, as does one for which there
 * is no memory. Returns the time when the first of these is due. */
static uint64_t fill_job(struct pipeline *p, struct verify_job *job)
{
	uint64_t now = clock_ms(), first = UINT64_MAX;
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->verify.n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, p->verify.queue[i]);
		if (!ctr)
			continue;
		bool wanted = is_given(p, ctr);
		if (ctr->verify.from_ms <= now && wanted && !add_check(job, ctr))
			ctr->verify.from_ms = now + p->verify.delay_ms;
		if (ctr->verify.from_ms > now) {
			first = ctr->verify.from_ms < first ? ctr->verify.from_ms : first;
			p->verify.queue[n++] = p->verify.queue[i];
			continue;
		}
		assert(ctr->verify.waits);
		ctr->verify.waits = false;
	}
	p->verify.n = n;
	return first;
}

static void verify_arm(struct pipeline *p, uint64_t due_ms)
{
	uint64_t now = clock_ms();
	if (loop_timer_armed(p->verify.timer) && p->verify.due_ms <= due_ms)
		return;
	p->verify.due_ms = due_ms;
	(void)loop_timer_arm(p->verify.timer, due_ms > now ? due_ms - now : 1);
}

static uint64_t soon_ms(const struct pipeline *p)
{
	return p->verify.delay_ms / SOON_PART;
}

/* Schedules the job's containers again after the worker has refused it. */
static void put_back(struct pipeline *p, struct verify_job *job)
{
	for (uint32_t i = 0; i < job->n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, job->checks[i].ctr);
		if (ctr)
			verify_later(p, ctr);
	}
	job_free(job);
}

static void start_job(void *arg)
{
	struct pipeline *p = arg;
	if (p->verify.running) {
		verify_arm(p, clock_ms() + p->verify.delay_ms);
		return;
	}
	struct verify_job *job = calloc(1, sizeof *job);
	struct check *checks = job ? calloc(p->verify.n + 1, sizeof *checks) : NULL;
	if (!checks) {
		free(job);
		verify_arm(p, clock_ms() + p->verify.delay_ms);
		return;
	}
	*job = (struct verify_job){.p = p,
				   .root = &p->root,
				   .inotify = p->verify.drift.fd,
				   .checks = checks,
				   .telling = updates_outstanding(p)};
	rp_idset_copy(&job->online, topo_ids(p->env.topo, RP_CPUS_ONLINE));
	uint64_t next = fill_job(p, job), soonest = clock_ms() + soon_ms(p);
	/* wait at least this long: further containers join the check */
	if (next != UINT64_MAX)
		verify_arm(p, next > soonest ? next : soonest);
	p->verify.running =
		job->n && worker_submit(p->disk, read_cgroups, verify_verified, job) == 0;
	if (!p->verify.running)
		put_back(p, job);
}

int verify_init(struct pipeline *p)
{
	p->verify.delay_ms = VERIFY_DELAY_MS;
	p->verify.timer = loop_timer_new(p->env.loop, start_job, p);
	return p->verify.timer ? drift_init(p) : -ENOMEM;
}

void verify_fini(struct pipeline *p)
{
	drift_fini(p);
	p->verify.timer = loop_timer_free(p->verify.timer);
	free(p->verify.queue);
	p->verify.queue = NULL;
}

static void verify_add(struct pipeline *p, struct ctr *ctr, uint64_t delay_ms)
{
	if (ctr->verify.waits || !pipeline_records(p))
		return;
	if (!HAS_ROOM(p->verify.queue, p->verify.n, p->verify.cap, 64))
		return;
	uint64_t from = clock_ms() + delay_ms;
	if (ctr->verify.from_ms < from)
		ctr->verify.from_ms = from;
	ctr->verify.waits = true;
	p->verify.queue[p->verify.n++] = ctr->handle;
	verify_arm(p, ctr->verify.from_ms);
}

void verify_later(struct pipeline *p, struct ctr *ctr)
{
	verify_add(p, ctr, p->verify.delay_ms);
}

void verify_soon(struct pipeline *p, struct ctr *ctr)
{
	verify_add(p, ctr, soon_ms(p));
}

void verify_all(struct pipeline *p)
{
	drift_sweep(p);
	for (struct ctr *ctr = cache_ctrs(p->env.cache); ctr; ctr = ctr->next)
		if (is_given(p, ctr))
			verify_later(p, ctr);
}
