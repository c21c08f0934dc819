/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates in replies are applied by the runtime without a word when they fail. So a while after such a reply the kernel is asked: the
 * worker reads the cpusets of the containers concerned, and who has something else than was said is told again, a few times.
 */
#include <stdlib.h>
#include <string.h>

#include "core/host/cgroup.h"
#include "core/pipeline/internal.h"
#include "core/util/log.h"

#define LOG_SOURCE "verify"
#define VERIFY_DELAY_MS 2000u
#define VERIFY_BATCH_MAX 4096u
#define VERIFY_TRIES_MAX 5u

struct check {
	rp_ctr ctr;
	char *cgroups_path;
	struct iset *expected; /* compared by text in the worker: immutable while referenced */
	struct rp_idset *found; /* NULL: as expected, or nothing to be read */
};

struct verify_job {
	struct pipeline *p;
	const struct fs_root *root;
	struct check *checks;
	uint32_t n;
};

static void job_free(struct verify_job *job)
{
	for (uint32_t i = 0; i < job->n; i++) {
		free(job->checks[i].cgroups_path);
		free(job->checks[i].found);
		intern_unref(cache_sets(job->p->env.cache), job->checks[i].expected);
	}
	free(job->checks);
	free(job);
}

/* On the worker. */
static int read_cpusets(void *arg)
{
	const struct verify_job *job = arg;
	char path[CACHE_PATH_MAX + 64];
	struct rp_idset found;
	for (uint32_t i = 0; i < job->n; i++) {
		struct check *c = &job->checks[i];
		if (cgroup_dir_of(job->root, c->cgroups_path, "cpuset", path,
				  sizeof path - sizeof "/cpuset.cpus"))
			continue;
		strcat(path, "/cpuset.cpus");
		if (fs_read_ids(job->root, path, RP_CPUS_MAX, &found) ||
		    rp_ids_equal(rp_ids_of(&found), c->expected->ids))
			continue;
		c->found = malloc(sizeof *c->found);
		if (c->found)
			rp_idset_copy(c->found, rp_ids_of(&found));
	}
	return 0;
}

static void say_again(struct pipeline *p, struct ctr *ctr, const struct check *c)
{
	struct iset *found = intern_get(cache_sets(p->env.cache), rp_ids_of(c->found));
	if (!found)
		return;
	if (ctr->verify_tries < UINT8_MAX)
		ctr->verify_tries++;
	if (ctr->verify_tries > VERIFY_TRIES_MAX) {
		if (ctr->verify_tries == VERIFY_TRIES_MAX + 1)
			pipeline_event(p, EV_DEGRADED,
				       "%s: somebody keeps its CPUs at %s instead of %s",
				       ctr->full_name, found->text, c->expected->text);
		intern_unref(cache_sets(p->env.cache), found);
		return;
	}
	log_warning("%s: has CPUs %s instead of %s, telling the runtime again", ctr->full_name,
		    found->text, c->expected->text);
	txn_put_set(p->env.cache, &ctr->acked.cpus, found);
	updates_add(p, ctr);
}

static void verified(void *arg, int result)
{
	struct verify_job *job = arg;
	struct pipeline *p = job->p;
	(void)result;
	p->verifying = false;
	for (uint32_t i = 0; i < job->n; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, job->checks[i].ctr);
		if (!ctr || ctr->acked.cpus != job->checks[i].expected ||
		    ctr->cur.state != RP_STATE_RUNNING)
			continue; /* changed meanwhile */
		if (job->checks[i].found)
			say_again(p, ctr, &job->checks[i]);
		else
			ctr->verify_tries = 0;
	}
	job_free(job);
}

static void start_job(void *arg)
{
	struct pipeline *p = arg;
	if (p->verifying) {
		(void)loop_timer_arm(p->verify_timer, VERIFY_DELAY_MS);
		return;
	}
	struct verify_job *job = calloc(1, sizeof *job);
	struct check *checks = job ? calloc(p->n_to_verify + 1, sizeof *checks) : NULL;
	if (!checks) {
		free(job);
		return;
	}
	*job = (struct verify_job){p, &p->root, checks, 0};
	for (uint32_t i = 0; i < p->n_to_verify; i++) {
		struct ctr *ctr = cache_ctr_of(p->env.cache, p->to_verify[i]);
		if (!ctr)
			continue;
		ctr->to_verify = false;
		if (ctr->cur.state != RP_STATE_RUNNING || !ctr->acked.cpus)
			continue;
		char *path = strdup(ctr->cgroups_path);
		if (path)
			checks[job->n++] = (struct check){ctr->handle, path,
							  intern_ref(ctr->acked.cpus), NULL};
	}
	p->n_to_verify = 0;
	p->verifying = worker_submit(p->disk, read_cpusets, verified, job) == 0;
	if (!p->verifying)
		job_free(job);
}

int verify_init(struct pipeline *p)
{
	p->verify_timer = loop_timer_new(p->env.loop, start_job, p);
	p->to_verify = calloc(VERIFY_BATCH_MAX, sizeof *p->to_verify);
	return p->verify_timer && p->to_verify ? 0 : -ENOMEM;
}

void verify_fini(struct pipeline *p)
{
	p->verify_timer = loop_timer_free(p->verify_timer);
	free(p->to_verify);
	p->to_verify = NULL;
}

void verify_later(struct pipeline *p, struct ctr *ctr)
{
	if (ctr->to_verify || p->n_to_verify == VERIFY_BATCH_MAX)
		return;
	ctr->to_verify = true;
	p->to_verify[p->n_to_verify++] = ctr->handle;
	if (!loop_timer_armed(p->verify_timer))
		(void)loop_timer_arm(p->verify_timer, VERIFY_DELAY_MS);
}
