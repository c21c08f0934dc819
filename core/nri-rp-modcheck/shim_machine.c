/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of the other services. Functions marked [any] may be called from the worker's thread;
 * their threads are not checked. */
#include <stdlib.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/str.h"

static uint64_t t_generation(void *ctx)
{
	(void)shim_enter(ctx, "generation");
	return host_topology_service.generation(ctx);
}

static int32_t t_set(void *ctx, uint32_t which, struct rp_ids *ret)
{
	(void)shim_enter(ctx, "set");
	return host_topology_service.set(ctx, which, ret);
}

static int32_t t_cpu(void *ctx, uint32_t cpu, struct rp_cpu_info *out)
{
	(void)shim_enter(ctx, "cpu");
	shim_out(ctx, "cpu", out, sizeof *out);
	return host_topology_service.cpu(ctx, cpu, out);
}

static uint32_t t_n_units(void *ctx, uint32_t level)
{
	(void)shim_enter(ctx, "n_units");
	return host_topology_service.n_units(ctx, level);
}

static int32_t t_unit(void *ctx, uint32_t level, uint32_t index, struct rp_unit_info *out)
{
	(void)shim_enter(ctx, "unit");
	shim_out(ctx, "unit", out, sizeof *out);
	return host_topology_service.unit(ctx, level, index, out);
}

static int32_t t_node(void *ctx, uint32_t node, struct rp_node_info *out)
{
	(void)shim_enter(ctx, "node");
	shim_out(ctx, "node", out, sizeof *out);
	return host_topology_service.node(ctx, node, out);
}

static uint32_t t_distance(void *ctx, uint32_t from, uint32_t to)
{
	(void)shim_enter(ctx, "distance");
	return host_topology_service.distance(ctx, from, to);
}

static uint32_t t_n_caches(void *ctx)
{
	(void)shim_enter(ctx, "n_caches");
	return host_topology_service.n_caches(ctx);
}

static int32_t t_cache(void *ctx, uint32_t index, struct rp_cache_info *out)
{
	(void)shim_enter(ctx, "cache");
	shim_out(ctx, "cache", out, sizeof *out);
	return host_topology_service.cache(ctx, index, out);
}

static int32_t t_device(void *ctx, const char *path, struct rp_idset *ret_cpus,
			struct rp_idset *ret_nodes)
{
	(void)shim_enter(ctx, "device");
	return host_topology_service.device(ctx, path, ret_cpus, ret_nodes);
}

static uint64_t t_memory(void *ctx)
{
	(void)shim_enter(ctx, "memory");
	return host_topology_service.memory(ctx);
}

static int32_t t_device_path(void *ctx, const char *what, char *buf, uint32_t cap)
{
	(void)shim_enter(ctx, "device_path");
	return host_topology_service.device_path(ctx, what, buf, cap);
}

static int32_t t_simulated(void *ctx)
{
	(void)shim_enter(ctx, "simulated");
	return host_topology_service.simulated(ctx);
}

const struct rp_host_topology shim_topology = {
	.size = sizeof shim_topology,
	.generation = t_generation,
	.set = t_set,
	.cpu = t_cpu,
	.n_units = t_n_units,
	.unit = t_unit,
	.node = t_node,
	.distance = t_distance,
	.n_caches = t_n_caches,
	.cache = t_cache,
	.device = t_device,
	.memory = t_memory,
	.device_path = t_device_path,
	.simulated = t_simulated,
};

static uint32_t g_kind(void *ctx, rp_cfg node)
{
	(void)shim_enter(ctx, "kind");
	return host_config_service.kind(ctx, node);
}

static rp_cfg g_get(void *ctx, rp_cfg node, const char *path)
{
	(void)shim_enter(ctx, "get");
	return host_config_service.get(ctx, node, path);
}

static uint32_t g_count(void *ctx, rp_cfg node)
{
	(void)shim_enter(ctx, "count");
	return host_config_service.count(ctx, node);
}

static rp_cfg g_item(void *ctx, rp_cfg node, uint32_t i)
{
	(void)shim_enter(ctx, "item");
	return host_config_service.item(ctx, node, i);
}

static const char *g_key(void *ctx, rp_cfg node, uint32_t i)
{
	(void)shim_enter(ctx, "key");
	return host_config_service.key(ctx, node, i);
}

static const char *g_text(void *ctx, rp_cfg node, const char *fallback)
{
	(void)shim_enter(ctx, "text");
	return host_config_service.text(ctx, node, fallback);
}

static int64_t g_value(void *ctx, rp_cfg node, uint32_t type, int64_t fallback)
{
	(void)shim_enter(ctx, "value");
	return host_config_service.value(ctx, node, type, fallback);
}

static double g_number(void *ctx, rp_cfg node, double fallback)
{
	(void)shim_enter(ctx, "number");
	return host_config_service.number(ctx, node, fallback);
}

static int32_t g_fail_at(void *ctx, rp_cfg node, int32_t code, const char *text)
{
	(void)shim_enter(ctx, "fail_at");
	return host_config_service.fail_at(ctx, node, code, text);
}

static const char *g_where(void *ctx, rp_cfg node)
{
	(void)shim_enter(ctx, "where");
	return host_config_service.where(ctx, node);
}

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
	.kind = g_kind,
	.get = g_get,
	.count = g_count,
	.item = g_item,
	.key = g_key,
	.text = g_text,
	.value = g_value,
	.number = g_number,
	.fail_at = g_fail_at,
	.where = g_where,
	.parse = g_parse,
};

static void e_note(void *ctx, rp_ctr ctr, const char *text)
{
	struct shim *s = shim_enter(ctx, "note");
	if (!text || !*text)
		shim_broken(s, "note() without a text");
	host_explain_service.note(ctx, ctr, text ? text : "");
}

static void e_decided_by(void *ctx, rp_ctr ctr, rp_cfg node, const char *text)
{
	(void)shim_enter(ctx, "decided_by");
	host_explain_service.decided_by(ctx, ctr, node, text);
}

const struct rp_host_explain shim_explain = {
	.size = sizeof shim_explain,
	.note = e_note,
	.decided_by = e_decided_by,
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

static uint64_t m_now_ms(void *ctx)
{
	(void)shim_enter(ctx, "now_ms");
	return host_timer_service.now_ms(ctx);
}

const struct rp_host_timer shim_timer = {
	.size = sizeof shim_timer,
	.arm = m_arm,
	.now_ms = m_now_ms,
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

static int32_t w_cgroup_dir(void *ctx, rp_ctr ctr, const char *controller, char *buf, uint32_t cap)
{
	int32_t r = shim_try(ctx, "cgroup_dir");
	return shim_result(ctx,
			   r ? r : host_work_service.cgroup_dir(ctx, ctr, controller, buf, cap));
}

static int32_t w_cgroup_ref(void *ctx, rp_ctr ctr, char *buf, uint32_t cap)
{
	int32_t r = shim_try(ctx, "cgroup_ref");
	return shim_result(ctx, r ? r : host_work_service.cgroup_ref(ctx, ctr, buf, cap));
}

static int32_t w_write_file(void *ctx, const char *path, const char *text)
{
	shim_writes(ctx, "write_file", path);
	return host_work_service.write_file(ctx, path, text);
}

static int32_t w_make_dir(void *ctx, const char *path)
{
	shim_writes(ctx, "make_dir", path);
	return host_work_service.make_dir(ctx, path);
}

static int32_t w_remove_dir(void *ctx, const char *path)
{
	shim_writes(ctx, "remove_dir", path);
	return host_work_service.remove_dir(ctx, path);
}

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
	.cgroup_dir = w_cgroup_dir,
	.cgroup_ref = w_cgroup_ref,
	.write_file = w_write_file,
	.make_dir = w_make_dir,
	.remove_dir = w_remove_dir,
	.figure = w_figure,
	.post = w_post,
	.read_node = w_read_node,
};
