/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the files of containers' cgroups on a worker thread, in the order in which the writes are
 * submitted. Writing memory nodes can take seconds, because the kernel moves the container's memory
 * within the write. The wanted resources of a container change at once; if the write fails, they
 * are restored and the plugin is notified.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/log.h"
#include "core/nri-rp-bridge/cgroup_source_internal.h"
#include "core/lib/util/worker.h"

#define LOG_SOURCE "bypass"

struct write_job {
	struct cgroup_source *source;
	struct ctr *ctr;
	struct arena *arena; /* memory of the members below, and of the write */
	struct cgroup_fs files;
	const char *top, *cgroup;
	const Cri__Resources *wanted;
	struct write_how how;
	bool again, settled; /* arguments of the write_again() that submitted the job */
	struct packed before; /* resources wanted before this write; data NULL: none */
	unsigned wish; /* value of the container's `wishes` when `wanted` was set */
	unsigned written;
	struct err err;
};

/* ---- write runs ------------------------------------------------------------------------------ */

struct write_run *write_run_new(struct cgroup_source *s)
{
	struct write_run *run = calloc(1, sizeof *run);
	if (run)
		*run = (struct write_run){.source = s, .left = 1};
	return run;
}

void write_run_end(struct write_run *run)
{
	if (!run || --run->left)
		return;
	nri_runtime_updated(run->source->plugin.nri, run->failed > 0);
	free(run);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct write_job *job_free(struct write_job *job)
{
	job->ctr->info.writing--;
	ctr_unref(job->ctr);
	packed_fini(&job->before);
	arena_free(job->arena);
	free(job);
	return NULL;
}

/* Creates a job; takes ownership of the arena. NULL: out of memory. */
static struct write_job *job_new(struct cgroup_source *s, struct ctr *ctr, struct arena *a)
{
	const char *top = kubepods_top(s->kubepods);
	struct write_job *job = a ? calloc(1, sizeof *job) : NULL;
	if (!job) {
		arena_free(a);
		return NULL;
	}
	*job = (struct write_job){.source = s,
				  .ctr = ctr_ref(ctr),
				  .arena = a,
				  .files = s->files,
				  .top = arena_strdup(a, top ? top : ""),
				  .cgroup = arena_strdup(a, ctr->info.cgroup),
				  .err = ERR_INIT};
	ctr->info.writing++;
	return job->top && job->cgroup ? job : job_free(job);
}

/* Runs on the worker thread. */
static int job_run(void *arg)
{
	struct write_job *job = arg;
	return cgroup_write(&job->files, job->arena, job->top, job->cgroup, job->wanted,
			    &job->written, &job->err);
}

static void job_end_again(const struct write_job *job, int r)
{
	struct ctr *ctr = job->ctr;
	bool failed = r && r != -ENOENT;
	if (failed && !ctr->info.failing)
		log_warning("container %s: cannot apply its settings: %s", ctr->id,
			    err_text(&job->err, r));
	ctr->info.failing = failed;
	if (!job->written || !job->settled)
		return;
	job->source->drifted += job->written;
	log_notice("container %s: another process changed %u files of its cgroup; restored them",
		   ctr->id, job->written);
}

static void job_end_wanted(struct write_job *job, int r)
{
	struct ctr *ctr = job->ctr;
	bool gone = r == -ENOENT;
	if (!r || (gone && job->how.ignore))
		return;
	log_warning("container %.64s cannot be updated: %s", ctr->id,
		    gone ? "no such container" : err_text(&job->err, r));
	if (job->how.run)
		job->how.run->failed++;
	if (job->how.keep || ctr->info.wishes != job->wish)
		return;
	packed_fini(&ctr->pending);
	ctr->pending = job->before;
	job->before = (struct packed){0};
}

static void job_done(void *arg, int r)
{
	struct write_job *job = arg;
	struct write_run *run = job->how.run;
	job->source->failed += r && r != -ENOENT;
	if (job->again)
		job_end_again(job, r);
	else
		job_end_wanted(job, r);
	job_free(job);
	write_run_end(run);
}

/* ---- writes --------------------------------------------------------------------------------- */

/* Copies the container's wanted resources to job->before. */
static int job_keep_before(struct write_job *job)
{
	const struct packed *now = &job->ctr->pending;
	if (!now->data)
		return 0;
	job->before.data = malloc(now->n + 1);
	if (!job->before.data)
		return -ENOMEM;
	memcpy(job->before.data, now->data, now->n);
	job->before.n = now->n;
	return 0;
}

/* Adds the resources to those wanted of the container. */
static int job_merge(struct write_job *job, const Nri__LinuxResources *resources)
{
	struct ctr *ctr = job->ctr;
	struct cri_missing missing = {0};
	Cri__Resources *to = ctr->pending.data ? wanted_before(ctr, job->arena)
					       : arena_zero(job->arena, Cri__Resources);
	if (to && !ctr->pending.data)
		cri__resources__init(to);
	int r = to ? cri_set_resources(job->arena, to, resources, &missing) : -ENOMEM;
	r = r ? r : job_keep_before(job);
	r = r ? r : packed_set(&ctr->pending, &to->base);
	if (r)
		return r;
	missing_add(&missing, to->memory_swap != 0, "memory.swap");
	missing_add(&missing, to->n_hugepage_limits, "hugepage limits");
	missing_log(ctr, &missing);
	job->wish = ++ctr->info.wishes;
	/* `to` still points to texts of the plugin's message, which will be freed. */
	job->wanted = wanted_before(ctr, job->arena);
	return job->wanted ? 0 : -ENOMEM;
}

int write_wanted(struct cgroup_source *s, struct ctr *ctr, const Nri__LinuxResources *resources,
		 const struct write_how *how, struct err *err)
{
	struct write_job *job = job_new(s, ctr, arena_new(ARENA_BLOCK, ARENA_MAX));
	int r = job ? job_merge(job, resources) : -ENOMEM;
	if (!r) {
		job->how = *how;
		r = worker_submit(s->writer, job_run, job_done, job);
	}
	if (r) {
		if (job)
			job_free(job);
		return err_errno(err, r, "container %s", ctr->id);
	}
	if (how->run)
		how->run->left++;
	return 0;
}

void write_again(struct cgroup_source *s, struct ctr *ctr, bool settled)
{
	if (ctr->info.writing || !ctr->pending.data)
		return;
	struct write_job *job = job_new(s, ctr, arena_new(ARENA_BLOCK, ARENA_MAX));
	if (!job)
		return; /* out of memory: retried by the next walk */
	job->again = true;
	job->settled = settled;
	job->wanted = wanted_before(ctr, job->arena);
	if (!job->wanted || worker_submit(s->writer, job_run, job_done, job))
		job_free(job);
}
