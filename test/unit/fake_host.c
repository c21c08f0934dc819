/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "test/unit/fake_impl.h"

/* ---- helpers --------------------------------------------------------------------------------- */

void fake_die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)fputs("fake host: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	abort();
}

void *fake_grow(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n, size);
	if (!q)
		fake_die("out of memory");
	return q;
}

void *fake_alloc(size_t size)
{
	return memset(fake_grow(NULL, 1, size ? size : 1), 0, size);
}

char *fake_strdup(const char *s)
{
	if (!s)
		return NULL;
	size_t n = strlen(s) + 1;
	return memcpy(fake_alloc(n), s, n);
}

void fake_parse_set(struct rp_idset *ret, const char *list)
{
	if (rp_idset_parse(ret, list ? list : "", RP_CPUS_MAX))
		fake_die("\"%s\" is not a list", list);
}

void fake_print(struct fake_out *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (o->len + (size_t)n + 1 > o->cap) {
		o->cap = 2 * o->cap + (size_t)n + 1;
		o->text = fake_grow(o->text, o->cap, 1);
	}
	va_start(ap, fmt);
	(void)vsnprintf(o->text + o->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	o->len += (size_t)n;
}

void fake_out_clear(struct fake_out *o)
{
	o->len = 0;
	if (o->text)
		o->text[0] = '\0';
}

void fake_out_fini(struct fake_out *o)
{
	free(o->text);
	*o = (struct fake_out){0};
}

const char *fake_answer(struct fake_host *f, struct rp_ids ids)
{
	char *text = f->answers[f->next_answer++ % (sizeof f->answers / sizeof f->answers[0])];
	(void)rp_ids_format(ids, text, RP_IDSET_TEXT_MAX);
	return text;
}

int32_t fake_call(struct fake_host *f)
{
	f->calls++;
	return f->fail_at && f->calls == f->fail_at ? -f->fail_code : 0;
}

void fake_fail_after(struct fake_host *f, uint32_t n_calls, int32_t code)
{
	f->calls = 0;
	f->fail_at = n_calls;
	f->fail_code = code;
}

uint32_t fake_n_calls(const struct fake_host *f)
{
	return f->calls;
}

/* ---- small services -------------------------------------------------------------------------- */

static void host_log(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	struct fake_host *f = ctx;
	fake_print(&f->log, "<%u>%s\n", level, text);
}

static int32_t host_fail(void *ctx, int32_t code, const char *text)
{
	struct fake_host *f = ctx;
	fake_out_clear(&f->error);
	fake_print(&f->error, "%s", text);
	return code;
}

static void explain_note(void *ctx, rp_ctr ctr, const char *text)
{
	struct fake_host *f = ctx;
	struct fake_container *c = fake_container(f, ctr);
	if (strchr(text, '\n'))
		fake_die("a note of several lines: %s", text);
	if (c->trail_of != f->last_txn)
		fake_out_clear(&c->trail);
	c->trail_of = f->last_txn;
	fake_print(&c->trail, "%s\n", text);
}

static void explain_decided_by(void *ctx, rp_ctr ctr, rp_cfg node, const char *text)
{
	struct fake_out line = {0};
	if (!node)
		fake_die("decided by no configuration: %s", text);
	fake_print(&line, "[%s] %s", node->path, text);
	explain_note(ctx, ctr, fake_out_text(&line));
	fake_out_fini(&line);
}

static int32_t timer_arm(void *ctx, uint64_t cookie, uint64_t delay_ms)
{
	struct fake_host *f = ctx;
	uint32_t i = 0;
	while (i < f->n_timers && f->timers[i].cookie != cookie)
		i++;
	if (i == f->n_timers) {
		f->timers = fake_grow(f->timers, i + 1, sizeof *f->timers);
		f->n_timers++;
	}
	f->timers[i] = (struct fake_timer){cookie, delay_ms};
	return 0;
}

static uint64_t timer_now(void *ctx)
{
	return ((struct fake_host *)ctx)->now_ms;
}

int64_t fake_timer(const struct fake_host *f, uint64_t cookie)
{
	for (uint32_t i = 0; i < f->n_timers; i++)
		if (f->timers[i].cookie == cookie && f->timers[i].delay_ms)
			return (int64_t)f->timers[i].delay_ms;
	return -1;
}

void fake_set_now(struct fake_host *f, uint64_t now_ms)
{
	f->now_ms = now_ms;
}

static int32_t work_submit(void *ctx, int32_t (*run)(void *arg),
			   void (*done)(void *arg, int32_t result), void *arg)
{
	struct fake_host *f = ctx;
	f->jobs = fake_grow(f->jobs, f->n_jobs + 1, sizeof *f->jobs);
	f->jobs[f->n_jobs++] = (struct fake_job){run, done, arg};
	return 0;
}

static int32_t work_post(void *ctx, uint64_t cookie, const void *data, uint32_t data_size)
{
	struct fake_host *f = ctx;
	if (data_size > RP_POST_BYTES_MAX || f->n_posts == RP_POSTS_MAX)
		return -RP_E2BIG;
	struct fake_post *p = fake_grow(NULL, 1, sizeof *p + data_size);
	p->cookie = cookie;
	p->size = data_size;
	if (data_size)
		memcpy(p->data, data, data_size);
	f->posts[f->n_posts++] = p;
	return 0;
}

uint32_t fake_deliver_posts(struct fake_host *f)
{
	uint32_t n = 0;
	for (; f->n_posts; n++) {
		struct fake_post *p = f->posts[0]; /* the event may post another event */
		memmove(f->posts, f->posts + 1, --f->n_posts * sizeof f->posts[0]);
		(void)fake_event(f, &(struct rp_event){.size = sizeof(struct rp_event),
						       .type = RP_EVENT_POSTED,
						       .cookie = p->cookie,
						       .data = p->size ? p->data : NULL,
						       .data_size = p->size});
		free(p);
	}
	return n;
}

uint32_t fake_run_work(struct fake_host *f)
{
	uint32_t n = 0;
	for (; n < f->n_jobs; n++) {
		struct fake_job job = f->jobs[n]; /* a job may submit another one */
		int32_t r = job.run(job.arg);
		if (job.done)
			job.done(job.arg, r);
	}
	f->n_jobs = 0;
	return n;
}

static struct fake_file *find_file(struct fake_host *f, const char *path)
{
	for (uint32_t i = 0; i < f->n_files; i++)
		if (strcmp(f->files[i].path, path) == 0)
			return &f->files[i];
	return NULL;
}

static void put_file(struct fake_host *f, const char *path, const char *content, bool written)
{
	struct fake_file *file = find_file(f, path);
	if (!file) {
		f->files = fake_grow(f->files, f->n_files + 1, sizeof *f->files);
		file = &f->files[f->n_files++];
		*file = (struct fake_file){.path = fake_strdup(path)};
	}
	free(file->content);
	file->content = fake_strdup(content);
	file->written = written;
}

void fake_file(struct fake_host *f, const char *path, const char *content)
{
	put_file(f, path, content, false);
}

const char *fake_written(struct fake_host *f, const char *path)
{
	const struct fake_file *file = find_file(f, path);
	return file && file->written ? file->content : NULL;
}

static int32_t work_read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct fake_file *file = find_file(ctx, path);
	if (!file)
		return -RP_ENOENT;
	int n = snprintf(buf, cap, "%s", file->content);
	return (uint32_t)n < cap ? n : (int32_t)cap - 1;
}

static int32_t work_read_node(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct fake_file *file = find_file(ctx, path);
	if (file && strlen(file->content) >= cap)
		return -RP_E2BIG;
	return work_read_file(ctx, path, buf, cap);
}

static int32_t work_write_file(void *ctx, const char *path, const char *text)
{
	put_file(ctx, path, text, true);
	return 0;
}

static void work_report(void *ctx, rp_ctr ctr, uint32_t result, const char *text)
{
	struct fake_host *f = ctx;
	fake_print(&f->log, "report %llu: %u %s\n", (unsigned long long)ctr, result, text);
}

static int32_t work_cgroup_dir(void *ctx, rp_ctr ctr, const char *controller, char *buf,
			       uint32_t cap)
{
	const struct fake_container *c = fake_container(ctx, ctr);
	int n = snprintf(buf, cap, "/sys/fs/cgroup/%s%s%s", controller, controller[0] ? "/" : "",
			 c->name);
	return (uint32_t)n < cap ? 0 : -RP_E2BIG;
}

static const struct rp_host_explain explain_service = {
	.size = sizeof(struct rp_host_explain),
	.note = explain_note,
	.decided_by = explain_decided_by,
};

static const struct rp_host_timer timer_service = {
	.size = sizeof(struct rp_host_timer),
	.arm = timer_arm,
	.now_ms = timer_now,
};

static const struct rp_host_work work_service = {
	.size = sizeof(struct rp_host_work),
	.submit = work_submit,
	.read_file = work_read_file,
	.write_file = work_write_file,
	.report = work_report,
	.cgroup_dir = work_cgroup_dir,
	.post = work_post,
	.read_node = work_read_node,
};

/* Returns NULL: the fake Node has no name and no labels, and node wishes are only logged. */
static const char *node_name(void *ctx)
{
	return NULL;
}

static const char *node_text(void *ctx, const char *key)
{
	return NULL;
}

static int32_t node_taint(void *ctx, uint32_t index, struct rp_node_taint *out)
{
	return -RP_ENOENT;
}

static int32_t node_amount(void *ctx, const char *resource, int64_t *ret)
{
	return -RP_ENOENT;
}

static int32_t node_set(void *ctx, const char *key, const char *value)
{
	struct fake_host *f = ctx;
	fake_print(&f->log, "node %s=%s\n", key, value ? value : "-");
	return 0;
}

static int32_t node_set_taint(void *ctx, const char *key, const char *effect, const char *value)
{
	struct fake_host *f = ctx;
	fake_print(&f->log, "node %s=%s:%s\n", key, value ? value : "-", effect);
	return 0;
}

static int32_t node_set_resource(void *ctx, const char *name, int64_t amount)
{
	struct fake_host *f = ctx;
	fake_print(&f->log, "node %s: %lld\n", name, (long long)amount);
	return 0;
}

static const struct rp_host_node node_service = {
	.size = sizeof(struct rp_host_node),
	.name = node_name,
	.label = node_text,
	.annotation = node_text,
	.taint = node_taint,
	.capacity = node_amount,
	.allocatable = node_amount,
	.set_label = node_set,
	.set_annotation = node_set,
	.set_taint = node_set_taint,
	.set_resource = node_set_resource,
};

/* Returns the flags of a runtime with every optional feature. */
static uint32_t runtime_flags(void *ctx)
{
	return RP_RUNTIME_CAN_REFUSE | RP_RUNTIME_CAN_INJECT | RP_RUNTIME_CAN_CDI |
	       RP_RUNTIME_CAN_ARGS | RP_RUNTIME_CAN_SCHEDULE | RP_RUNTIME_CAN_MEMPOLICY;
}

static const char *runtime_name(void *ctx)
{
	return "fake";
}

static const struct rp_host_runtime runtime_service = {.size = sizeof(struct rp_host_runtime),
						       .flags = runtime_flags,
						       .name = runtime_name,
						       .version = runtime_name};

static const void *host_service(void *ctx, const char *id)
{
	static const struct {
		const char *id;
		const void *service;
	} services[] = {
		{RP_HOST_TOPOLOGY_1, &fake_topology_service},
		{RP_HOST_CACHE_1, &fake_cache_service},
		{RP_HOST_CONFIG_1, &fake_config_service},
		{RP_HOST_EXPLAIN_1, &explain_service},
		{RP_HOST_TIMER_1, &timer_service},
		{RP_HOST_WORK_1, &work_service},
		{RP_HOST_SPEEDSELECT_1, &fake_speedselect_service},
		{RP_HOST_NODE_1, &node_service},
		{RP_HOST_RUNTIME_1, &runtime_service},
	};
	const struct fake_host *f = ctx;
	if (f->hidden && strcmp(id, f->hidden) == 0)
		return NULL;
	for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
		if (strcmp(id, services[i].id) == 0)
			return services[i].service;
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct fake_host *fake_host_new(const struct fake_machine *m)
{
	struct fake_host *f = fake_alloc(sizeof *f);
	f->host = (struct rp_host){
		.size = sizeof f->host,
		.abi_minor = RP_ABI_MINOR,
		.ctx = f,
		.service = host_service,
		.log = host_log,
		.fail = host_fail,
	};
	fake_topology_init(&f->topology, m);
	return f;
}

struct fake_host *fake_host_free(struct fake_host *f)
{
	if (!f)
		return NULL;
	fake_policy_close(f);
	fake_topology_fini(&f->topology);
	fake_sst_fini(f);
	fake_cache_fini(f);
	while (f->cfg_nodes) {
		struct rp_cfg_node *n = f->cfg_nodes;
		f->cfg_nodes = n->next;
		for (uint32_t i = 0; i < n->n; i++)
			free(n->keys[i]);
		free(n->keys);
		free(n->items);
		free(n->text);
		free(n->path);
		free(n);
	}
	for (uint32_t i = 0; i < f->n_files; i++) {
		free(f->files[i].path);
		free(f->files[i].content);
	}
	free(f->files);
	for (uint32_t i = 0; i < f->n_devices; i++) {
		free(f->devices[i].what);
		free(f->devices[i].path);
	}
	free(f->devices);
	free(f->timers);
	free(f->jobs);
	while (f->n_posts)
		free(f->posts[--f->n_posts]);
	free(f->config_text);
	free(f->state);
	fake_out_fini(&f->error);
	fake_out_fini(&f->log);
	fake_out_fini(&f->report);
	free(f);
	return NULL;
}

const struct rp_host *fake_rp_host(struct fake_host *f)
{
	return &f->host;
}

void fake_hide_service(struct fake_host *f, const char *name)
{
	f->hidden = name;
}

const char *fake_error(const struct fake_host *f)
{
	return fake_out_text(&f->error);
}

const char *fake_log(const struct fake_host *f)
{
	return fake_out_text(&f->log);
}

void fake_log_clear(struct fake_host *f)
{
	fake_out_clear(&f->log);
}

uint32_t fake_n_changed(const struct fake_host *f)
{
	return f->n_changed;
}

void fake_stop_pod(struct fake_host *f, rp_ctr ctr)
{
	f->ctrs[ctr - 1]->pod_stopped = true;
}
