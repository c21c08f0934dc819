/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the kernel has what the runtime was told. Updates in replies are applied by the runtime
 * without a word when they fail, and others write cgroups, too (drift.h). So a while after a
 * container has started, after a reply and after a write to its cgroup, the kernel is asked: the
 * worker reads its sets, and who has something else than was said is told again, later and later.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/cgroup.h"
#include "core/pipeline/internal.h"
#include "core/util/cleanup.h"
#include "core/util/grow.h"
#include "core/util/log.h"

#define LOG_SOURCE "verify"
#define VERIFY_DELAY_MS 2000u
#define SOON_PART 8u /* of the delay: for a container that is there as it was made */
#define BACKOFF_SHIFT_MAX 7u /* of the delay: some four minutes */
#define PEACE_MS 600000u /* without a fault: the pauses begin anew */

struct check {
	rp_ctr ctr;
	char *cgroups_path;
	uint32_t pid;
	struct iset *cpus,
		*mems; /* expected; compared by value in the worker: immutable while referenced */
	bool unwatched;
	int watch;
	enum culprit culprit;
	struct rp_idset *found_cpus, *found_mems; /* NULL: as expected, or nothing to be read */
};

struct verify_job {
	struct pipeline *p;
	const struct fs_root *root;
	int inotify;
	struct rp_idset online;
	struct drift_traces traces;
	struct check *checks;
	uint32_t n;
	/* the runtime was being told something when this began: what was read may be from before */
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
		if (c->mems)
			intern_unref(sets, c->mems);
	}
	free(job->checks);
	free(job);
}

/* ---- on the worker --------------------------------------------------------------------------- */

/* What is there instead; NULL: nothing else. With cgroup v1 the kernel takes out what goes
 * offline. */
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

static void look_at(struct verify_job *job, struct check *c)
{
	char path[CACHE_PATH_MAX + 64];
	struct rp_ids online = rp_ids_of(&job->online);
	if (cgroup_find_dir(job->root, c->cgroups_path, c->pid, "cpuset", path, sizeof path))
		return;
	_close_ int dir = fs_open_dir(job->root, path);
	if (dir < 0)
		return;
	if (c->unwatched)
		c->watch = drift_watch(job->inotify, dir);
	c->found_cpus = read_other(dir, "cpuset.cpus", RP_CPUS_MAX, c->cpus->ids, online);
	if (c->mems)
		c->found_mems =
			read_other(dir, "cpuset.mems", RP_NODES_MAX, c->mems->ids, c->mems->ids);
	if (c->found_cpus)
		c->culprit = drift_blame(job->root, &job->traces, c->cgroups_path, c->cpus->ids,
					 rp_ids_of(c->found_cpus),
					 rp_ids_subset(online, rp_ids_of(c->found_cpus)));
}

static int read_cpusets(void *arg)
{
	struct verify_job *job = arg;
	for (uint32_t i = 0; i < job->n; i++)
		look_at(job, &job->checks[i]);
	return 0;
}

/* ---- what came of it ------------------------------------------------------------------------- */

static void acknowledge(struct pipeline *p, struct iset **acked, const struct rp_idset *found)
{
	struct iset *set = found ? intern_get(cache_sets(p->env.cache), rp_ids_of(found)) : NULL;
	if (set)
		txn_put_set(p->env.cache, acked, set);
}

static void say_again(struct pipeline *p, struct ctr *ctr, const struct check *c)
{
	const struct rp_idset *found = c->found_cpus ? c->found_cpus : c->found_mems;
	const char *expected = c->found_cpus ? c->cpus->text : c->mems->text;
	const char *what = c->found_cpus ? "CPUs" : "memory nodes";
	uint64_t now = clock_ms();
	char text[256];
	if (now > ctr->verify.repaired_ms + PEACE_MS)
		ctr->verify.tries = 0;
	unsigned shift =
		ctr->verify.tries < BACKOFF_SHIFT_MAX ? ctr->verify.tries : BACKOFF_SHIFT_MAX;
	if (ctr->verify.tries < UINT8_MAX)
		ctr->verify.tries++;
	ctr->verify.repaired_ms = now;
	ctr->verify.from_ms = now + ((uint64_t)p->verify_delay_ms << shift);
	(void)rp_ids_format(rp_ids_of(found), text, sizeof text);
	drift_note(p, ctr, c->culprit);
	log_warning("%s: has %s %s instead of %s, telling the runtime again; it may have been %s",
		    ctr->full_name, what, text, expected, culprit_text(c->culprit));
	pipeline_event_of(p, EV_DEGRADED, ctr, NULL,
			  "%s: has %s %s instead of %s: put back; it may have been %s",
			  ctr->full_name, what, text, expected, culprit_text(c->culprit));
	acknowledge(p, &ctr->acked.cpus, c->found_cpus);
	acknowledge(p, &ctr->acked.mems, c->found_mems);
	updates_add(p, ctr);
}

static void verified(void *arg, int result)
{
	struct verify_job *job = arg;
	struct pipeline *p = job->p;
	bool missed = p->drift.missed;
	assert(p->verifying);
	(void)result;
	p->verifying = false;
	p->drift.missed = false;
	for (uint32_t i = 0; i < job->n; i++) {
		const struct check *c = &job->checks[i];
		struct ctr *ctr = cache_ctr_of(p->env.cache, c->ctr);
		if (ctr && ctr_live(ctr->cur.state))
			drift_watched(p, ctr, c->watch);
		if (!ctr || ctr->acked.cpus != c->cpus || ctr->acked.mems != c->mems ||
		    ctr->cur.state != RP_STATE_RUNNING)
			continue; /* changed meanwhile */
		bool other = c->found_cpus || c->found_mems;
		if (other && (job->telling || updates_outstanding(p) || ctr->in_updates))
			verify_later(p, ctr); /* it may be what is being told just now */
		else if (other)
			say_again(p, ctr, c);
		else if (missed && c->watch)
			verify_later(p, ctr);
	}
	job_free(job);
}

/* ---- who is asked about ---------------------------------------------------------------------- */

static bool add_check(struct verify_job *job, const struct ctr *ctr)
{
	char *path = strdup(ctr->cgroups_path);
	if (!path)
		return false;
	assert(ctr->acked.cpus && job->n < job->p->n_to_verify);
	job->checks[job->n++] = (struct check){
		.ctr = ctr->handle,
		.cgroups_path = path,
		.pid = ctr->pid,
		.cpus = intern_ref(ctr->acked.cpus),
		.mems = ctr->acked.mems ? intern_ref(ctr->acked.mems) : NULL,
		.unwatched = !ctr->drift.watch,
	};
	return true;
}

/* Takes those whose time has come; the others stay, and so does one that there is no memory for.
 * Returns when the first of those is due. */
static uint64_t fill_job(struct pipeline *p, struct verify_job *job)
{
	uint64_t now = clock_ms(), first = UINT64_MAX;
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->n_to_verify; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, p->to_verify[i]);
		if (!ctr)
			continue;
		bool wanted =
			ctr->cur.state == RP_STATE_RUNNING && ctr->cur.cpus && ctr->acked.cpus;
		if (ctr->verify.from_ms <= now && wanted && !add_check(job, ctr))
			ctr->verify.from_ms = now + p->verify_delay_ms;
		if (ctr->verify.from_ms > now) {
			first = ctr->verify.from_ms < first ? ctr->verify.from_ms : first;
			p->to_verify[n++] = p->to_verify[i];
			continue;
		}
		assert(ctr->verify.waits);
		ctr->verify.waits = false;
	}
	p->n_to_verify = n;
	return first;
}

static void arm(struct pipeline *p, uint64_t due_ms)
{
	uint64_t now = clock_ms();
	if (loop_timer_armed(p->verify_timer) && p->verify_due_ms <= due_ms)
		return;
	p->verify_due_ms = due_ms;
	(void)loop_timer_arm(p->verify_timer, due_ms > now ? due_ms - now : 1);
}

static uint64_t soon_ms(const struct pipeline *p)
{
	return p->verify_delay_ms / SOON_PART;
}

/* The worker has not taken it. */
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
	if (p->verifying) {
		arm(p, clock_ms() + p->verify_delay_ms);
		return;
	}
	struct verify_job *job = calloc(1, sizeof *job);
	struct check *checks = job ? calloc(p->n_to_verify + 1, sizeof *checks) : NULL;
	if (!checks) {
		free(job);
		arm(p, clock_ms() + p->verify_delay_ms);
		return;
	}
	*job = (struct verify_job){.p = p,
				   .root = &p->root,
				   .inotify = p->drift.fd,
				   .checks = checks,
				   .telling = updates_outstanding(p)};
	rp_idset_copy(&job->online, topo_ids(p->env.topo, RP_CPUS_ONLINE));
	uint64_t next = fill_job(p, job), soonest = clock_ms() + soon_ms(p);
	if (next != UINT64_MAX)
		arm(p, next > soonest ? next : soonest); /* those that come meanwhile go along */
	p->verifying = job->n && worker_submit(p->disk, read_cpusets, verified, job) == 0;
	if (!p->verifying)
		put_back(p, job);
}

int verify_init(struct pipeline *p)
{
	p->verify_delay_ms = VERIFY_DELAY_MS;
	p->verify_timer = loop_timer_new(p->env.loop, start_job, p);
	return p->verify_timer ? drift_init(p) : -ENOMEM;
}

void verify_fini(struct pipeline *p)
{
	drift_fini(p);
	p->verify_timer = loop_timer_free(p->verify_timer);
	free(p->to_verify);
	p->to_verify = NULL;
}

static void add(struct pipeline *p, struct ctr *ctr, uint64_t delay_ms)
{
	if (ctr->verify.waits || p->env.trial)
		return;
	if (!HAS_ROOM(p->to_verify, p->n_to_verify, p->cap_to_verify, 64))
		return;
	uint64_t from = clock_ms() + delay_ms;
	if (ctr->verify.from_ms < from)
		ctr->verify.from_ms = from;
	ctr->verify.waits = true;
	p->to_verify[p->n_to_verify++] = ctr->handle;
	arm(p, ctr->verify.from_ms);
}

void verify_later(struct pipeline *p, struct ctr *ctr)
{
	add(p, ctr, p->verify_delay_ms);
}

void verify_soon(struct pipeline *p, struct ctr *ctr)
{
	add(p, ctr, soon_ms(p));
}

void verify_all(struct pipeline *p)
{
	drift_sweep(p);
	for (struct ctr *ctr = cache_ctrs(p->env.cache); ctr; ctr = ctr->next)
		if (ctr->cur.state == RP_STATE_RUNNING && ctr->cur.cpus)
			verify_later(p, ctr);
}
