/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of the other services. Functions marked [any] may be called from the worker's thread;
 * their threads are not checked. */
#include <stdlib.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/str.h"

COVER_OUT(topology, cpu, (void *ctx, uint32_t cpu, struct rp_cpu_info *out), ctx, cpu, out)
COVER_OUT(topology, unit, (void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out),
	  ctx, level, index, out)
COVER_OUT(topology, node, (void *ctx, uint32_t node, struct rp_node_info *out), ctx, node, out)
COVER_OUT(topology, cache, (void *ctx, uint32_t index, struct rp_cache_info *out), ctx, index, out)

const struct rp_host_topology shim_topology = {
	.size = sizeof shim_topology,
	.cpu = cover_cpu,
	.unit = cover_unit,
	.node = cover_node,
	.cache = cover_cache,
};

static rp_cfg g_parse(void *ctx, const char *what, const char *text, int32_t *ret_code)
{
	int32_t r = shim_try(ctx, "parse");
	if (r && ret_code)
		*ret_code = r;
	rp_cfg node = r ? NULL : host_config_service.parse(ctx, what, text, ret_code);
	(void)shim_result(ctx, node ? 0 : -RP_EINVAL); /* the host's parse() has called fail() */
	return node;
}

const struct rp_host_config shim_config = {
	.size = sizeof shim_config,
	.parse = g_parse,
};

static void e_note(void *ctx, rp_ctr ctr, const char *text)
{
	struct shim *s = shim_enter(ctx, "note");
	if (!text || !*text)
		shim_broken(s, "note() without a text");
	host_explain_service.note(ctx, ctr, text ? text : "");
}

const struct rp_host_explain shim_explain = {
	.size = sizeof shim_explain,
	.note = e_note,
};

static void forget_timer(struct shim *s, uint64_t cookie)
{
	for (unsigned i = 0; i < s->n_timers; i++)
		if (s->timers[i] == cookie)
			s->timers[i--] = s->timers[--s->n_timers];
}

static int32_t m_arm(void *ctx, uint64_t cookie, uint64_t delay_ms)
{
	int32_t r = shim_try(ctx, "arm");
	struct shim *s = shim_of(ctx);
	r = shim_result(ctx, r ? r : host_timer_service.arm(ctx, cookie, delay_ms));
	forget_timer(s, cookie);
	if (!r && delay_ms && s->n_timers < SHIM_TIMERS_MAX) {
		s->timers[s->n_timers++] = cookie;
		s->armed = true;
	}
	return r;
}

const struct rp_host_timer shim_timer = {
	.size = sizeof shim_timer,
	.arm = m_arm,
};

struct job {
	struct shim *shim;
	int32_t (*run)(void *arg);
	void (*done)(void *arg, int32_t result);
	void *arg;
};

static int32_t run_job(void *arg)
{
	const struct job *j = arg;
	return j->run(j->arg);
}

static void end_job(void *arg, int32_t result)
{
	struct job *j = arg;
	j->shim->call = "done";
	if (j->done)
		j->done(j->arg, result);
	j->shim->call = NULL;
	free(j);
}

static int32_t w_submit(void *ctx, int32_t (*run)(void *arg),
			void (*done)(void *arg, int32_t result), void *arg)
{
	int32_t r = shim_try(ctx, "submit");
	struct shim *s = shim_of(ctx);
	struct job *j = r ? NULL : malloc(sizeof *j);
	if (!j)
		return shim_result(ctx, r ? r : -RP_ENOMEM);
	*j = (struct job){s, run, done, arg};
	r = host_work_service.submit(ctx, run_job, end_job, j);
	s->n_jobs += !r;
	if (r)
		free(j);
	return shim_result(ctx, r);
}

static void w_report(void *ctx, rp_ctr ctr, uint32_t result, const char *text)
{
	struct shim *s = shim_enter(ctx, "report");
	if (result > RP_APPLY_FAILED)
		shim_broken(s, "report() of the unknown result %u", result);
	if (!text)
		shim_broken(s, "report() without a text");
	host_work_service.report(ctx, ctr, result, text ? text : "");
}

COVER_TRY(work, cgroup_dir,
	  (void *ctx, rp_ctr ctr, const char *controller, char *buf, uint32_t cap), ctx, ctr,
	  controller, buf, cap)
COVER_TRY(work, cgroup_ref, (void *ctx, rp_ctr ctr, char *buf, uint32_t cap), ctx, ctr, buf, cap)
COVER_WRITE(work, write_file, (void *ctx, const char *path, const char *text), ctx, path, text)
COVER_WRITE(work, make_dir, (void *ctx, const char *path), ctx, path)
COVER_WRITE(work, remove_dir, (void *ctx, const char *path), ctx, path)

static void w_figure(void *ctx, rp_ctr ctr, uint32_t figure, uint64_t value)
{
	(void)shim_enter(ctx, "figure");
	host_work_service.figure(ctx, ctr, figure, value);
}

/* [any] Posts an event. Faults are injected only on the main thread, whose calls are counted. */
static int32_t w_post(void *ctx, uint64_t cookie, const void *data, uint32_t data_size)
{
	struct shim *s = shim_of(ctx);
	int32_t r = pthread_equal(pthread_self(), s->thread) ? shim_try(ctx, "post") : 0;
	if (data_size && !data)
		shim_broken(s, "post() received %u bytes at NULL", data_size);
	return r ? shim_result(ctx, r) : host_work_service.post(ctx, cookie, data, data_size);
}

static int32_t w_read_node(void *ctx, const char *path, char *buf, uint32_t cap)
{
	struct shim *s = shim_of(ctx);
	if (s->call && !str_eq(s->call, "prepare") && pthread_equal(pthread_self(), s->thread))
		shim_broken(s,
			    "read_node(\"%.80s\") in %s(): only prepare() and jobs (submit()) may "
			    "wait for a disk",
			    path, s->call);
	return host_work_service.read_node(ctx, path, buf, cap);
}

const struct rp_host_work shim_work = {
	.size = sizeof shim_work,
	.submit = w_submit,
	.report = w_report,
	.cgroup_dir = cover_cgroup_dir,
	.cgroup_ref = cover_cgroup_ref,
	.write_file = cover_write_file,
	.make_dir = cover_make_dir,
	.remove_dir = cover_remove_dir,
	.figure = w_figure,
	.post = w_post,
	.read_node = w_read_node,
};
