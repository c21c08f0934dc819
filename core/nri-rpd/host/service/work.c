/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.explain/1, nri-rp.host.timer/1 and nri-rp.host.work/1. */
#include <assert.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/cgroup.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/host/service/work.h"

#define LOG_SOURCE "module"
#define MOVE_PORTION 1024u /* number of pages per system call */
#define TRAIL_STEP ((size_t)128) /* bytes by which a trail grows */

/* ---- explanations ---------------------------------------------------------------------------- */

static const char cut_mark[] = "(more output than is kept)\n";

void host_note(struct cache *c, struct ctr *ctr, const char *text)
{
	rp_txn txn = cache_running_txn(c);
	size_t len = strlen(text),
	       had = ctr->trail.text && ctr->trail.txn == txn ? strlen(ctr->trail.text) : 0;
	if (had + len + 2 + sizeof cut_mark > RP_TRAIL_MAX) {
		if (had < sizeof cut_mark ||
		    strcmp(ctr->trail.text + had - sizeof cut_mark + 1, cut_mark) == 0)
			return;
		text = "(more output than is kept)";
		len = sizeof cut_mark - 2;
	}
	/* rounded up, so that most further lines find room */
	char *grown =
		realloc(ctr->trail.text, (had + len + 2 + TRAIL_STEP - 1) & ~(TRAIL_STEP - 1));
	if (!grown)
		return;
	memcpy(grown + had, text, len);
	grown[had + len] = '\0';
	str_one_line(grown + had); /* the text may quote annotations */
	memcpy(grown + had + len, "\n", 2);
	ctr->trail.text = grown;
	ctr->trail.txn = txn;
}

static void note(void *ctx, rp_ctr handle, const char *text)
{
	MAIN_ONLY(ctx, RP_HOST_EXPLAIN_1, );
	struct cache *c = instance_of(ctx)->env->cache;
	struct ctr *ctr = cache_ctr_of(c, handle);
	if (ctr)
		host_note(c, ctr, text);
}

static void decided_by(void *ctx, rp_ctr handle, rp_cfg node, const char *text)
{
	MAIN_ONLY(ctx, RP_HOST_EXPLAIN_1, );
	char line[RP_TRAIL_MAX], place[CONF_PLACE_MAX];
	(void)snprintf(line, sizeof line, "%s: %s",
		       node ? conf_place(node, place, sizeof place) : "default", text);
	note(ctx, handle, line);
}

const struct rp_host_explain host_explain_service = {
	.size = sizeof host_explain_service,
	.note = note,
	.decided_by = decided_by,
};

/* ---- timers ---------------------------------------------------------------------------------- */

struct instance_timer {
	struct instance *instance;
	uint64_t cookie;
	struct loop_timer *timer;
	struct instance_timer *next;
};

/* Frees a timer that is no longer armed, so that it does not count towards RP_TIMERS_MAX. */
static void drop_timer(struct instance *i, uint64_t cookie)
{
	for (struct instance_timer **at = &i->timers; *at; at = &(*at)->next) {
		struct instance_timer *t = *at;
		if (t->cookie != cookie)
			continue;
		*at = t->next;
		loop_timer_free(t->timer);
		free(t);
		assert(i->n_timers);
		i->n_timers--;
		return;
	}
}

static void timer_fired(void *arg)
{
	const struct instance_timer *t = arg;
	struct instance *i = t->instance;
	uint64_t cookie = t->cookie;
	drop_timer(i, cookie);
	const struct rp_event ev = {.size = sizeof ev, .type = RP_EVENT_TIMER, .cookie = cookie};
	if (i->env->event)
		i->env->event(i, &ev, i->env->arg);
}

static struct instance_timer *timer_of(struct instance *i, uint64_t cookie)
{
	for (struct instance_timer *t = i->timers; t; t = t->next)
		if (t->cookie == cookie)
			return t;
	if (i->n_timers == RP_TIMERS_MAX)
		return NULL;
	struct instance_timer *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->instance = i;
	t->cookie = cookie;
	t->timer = loop_timer_new(i->env->loop, timer_fired, t);
	if (!t->timer) {
		free(t);
		return NULL;
	}
	t->next = i->timers;
	i->timers = t;
	i->n_timers++;
	return t;
}

static int32_t arm(void *ctx, uint64_t cookie, uint64_t delay_ms)
{
	MAIN_ONLY(ctx, RP_HOST_TIMER_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	if (i->env->trial || i->closing) /* done() of the last job may try to start another */
		return 0;
	if (!delay_ms) {
		drop_timer(i, cookie);
		return 0;
	}
	struct instance_timer *t = timer_of(i, cookie);
	if (!t)
		return -RP_E2BIG;
	return loop_timer_arm(t->timer, delay_ms);
}

SERVICE_CALL(uint64_t, RP_HOST_TIMER_1, 0, now_ms, (void *ctx), clock_ms())
void instance_drop_timers(struct instance *i)
{
	while (i->timers)
		drop_timer(i, i->timers->cookie);
}

const struct rp_host_timer host_timer_service = {
	.size = sizeof host_timer_service,
	.arm = arm,
	.now_ms = now_ms,
};

/* ---- events that an instance posts ----------------------------------------------------------- */

/* A posted event. Each event has one pending call of deliver_post(), which does nothing if the
 * event's instance was destroyed. */
struct post {
	struct instance *instance;
	struct post *next;
	uint64_t cookie;
	uint32_t size;
	_Alignas(max_align_t) char data[];
};

static struct post *take_post(struct host_env *env)
{
	(void)pthread_mutex_lock(&env->posts_lock);
	struct post *p = env->posts;
	if (p) {
		env->posts = p->next;
		p->instance->n_posts--;
	}
	(void)pthread_mutex_unlock(&env->posts_lock);
	return p;
}

static void deliver_post(void *arg)
{
	struct host_env *env = arg;
	_free_ struct post *p = take_post(env);
	if (!p)
		return;
	const struct rp_event ev = {.size = sizeof ev,
				    .type = RP_EVENT_POSTED,
				    .cookie = p->cookie,
				    .data = p->size ? p->data : NULL,
				    .data_size = p->size};
	if (env->event && !p->instance->closing)
		env->event(p->instance, &ev, env->arg);
}

/* Appends an event to the list of posted events and queues its delivery on the loop. The lock is
 * held for both, so that deliveries find the events in the order of their posts. -RP_E2BIG: the
 * instance has too many posted events. */
static int add_post(struct host_env *env, struct post *p)
{
	struct instance *i = p->instance;
	int r = -RP_E2BIG;
	(void)pthread_mutex_lock(&env->posts_lock);
	if (i->n_posts < RP_POSTS_MAX)
		r = loop_post(env->loop, deliver_post, env);
	if (!r) {
		*(env->posts ? env->posts_end : &env->posts) = p;
		env->posts_end = &p->next;
		i->n_posts++;
	}
	(void)pthread_mutex_unlock(&env->posts_lock);
	return r;
}

static int32_t post(void *ctx, uint64_t cookie, const void *data, uint32_t data_size)
{
	struct instance *i = ctx;
	if (i->env->trial || !instance_handles_events(i))
		return -RP_ENOTSUP;
	if (data_size > RP_POST_BYTES_MAX)
		return -RP_E2BIG;
	struct post *p = calloc(1, sizeof *p + data_size);
	if (!p)
		return -RP_ENOMEM;
	p->instance = i;
	p->cookie = cookie;
	p->size = data_size;
	if (data_size)
		memcpy(p->data, data, data_size);
	int r = add_post(i->env, p);
	if (r)
		free(p);
	return r == -RP_E2BIG ? r : r ? -RP_ENOMEM : 0;
}

void instance_drop_posts(struct instance *i)
{
	/* In a trial, a worker may have held the lock at the fork. */
	if (i->env->trial)
		return;
	(void)pthread_mutex_lock(&i->env->posts_lock);
	struct post **at = &i->env->posts;
	while (*at) {
		struct post *p = *at;
		if (p->instance != i) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
	i->env->posts_end = at;
	i->n_posts = 0;
	(void)pthread_mutex_unlock(&i->env->posts_lock);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct job {
	struct instance *instance;
	int32_t (*run)(void *arg);
	void (*done)(void *arg, int32_t result);
	void *arg;
};

static int job_run(void *arg)
{
	struct job *j = arg;
	crumb_enter(j->instance->env->crumb, CRUMB_WORKER, j->instance->module->name, CRUMB_WORK,
		    NULL);
	int r = j->run(j->arg);
	crumb_leave(j->instance->env->crumb, CRUMB_WORKER);
	return r;
}

static void job_done(void *arg, int result)
{
	assert(((struct job *)arg)->instance->jobs);
	struct job *j = arg;
	struct instance *i = j->instance;
	crumb_enter(i->env->crumb, CRUMB_LOOP, i->module->name, CRUMB_WORK_DONE, NULL);
	if (j->done)
		j->done(j->arg, result);
	instance_check_robbed(i);
	crumb_leave(i->env->crumb, CRUMB_LOOP);
	instance_report_foreign(i);
	free(j);
	if (--i->jobs == 0 && i->closing)
		instance_finish(i);
}

static int32_t submit(void *ctx, int32_t (*run)(void *arg), void (*done)(void *arg, int32_t result),
		      void *arg)
{
	MAIN_ONLY(ctx, RP_HOST_WORK_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	if (i->env->trial || i->closing || !i->env->worker)
		return -RP_ENOTSUP;
	struct job *j = malloc(sizeof *j);
	if (!j)
		return -RP_ENOMEM;
	*j = (struct job){i, run, done, arg};
	int r = worker_submit(i->env->worker, job_run, job_done, j);
	if (r) {
		free(j);
		return r;
	}
	i->jobs++;
	return 0;
}

static int32_t read_file(void *ctx, const char *path, char *buf, uint32_t cap)
{
	return (int32_t)fs_read(((struct instance *)ctx)->env->root, path, buf, cap);
}

static bool leads_up(const char *path)
{
	return strstr(path, "/../") || str_has_suffix(path, "/..");
}

/* Reads a file without waiting for the writer of a pipe. A file that was regular when it was opened
 * stays one. */
static int32_t read_node(void *ctx, const char *path, char *buf, uint32_t cap)
{
	struct stat st;
	uint32_t len = 0;
	ssize_t n = 1;
	if (*path != '/' || leads_up(path) || !cap)
		return -RP_EINVAL;
	_close_ int fd = fs_open(((struct instance *)ctx)->env->root, path,
				 O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -RP_EINVAL;
	if (cap > RP_NODE_FILE_MAX + 1)
		cap = RP_NODE_FILE_MAX + 1;
	while (n > 0 && len < cap) {
		n = read(fd, buf + len, cap - len);
		len += n > 0 ? (uint32_t)n : 0;
	}
	if (n < 0 || len == cap)
		return n < 0 ? -errno : -RP_E2BIG;
	buf[len] = '\0';
	return (int32_t)len;
}

SERVICE_CHANGE(write_file, (void *ctx, const char *path, const char *text),
	       fs_write(root, path, text))

static void report(void *ctx, rp_ctr ctr, uint32_t result, const char *text)
{
	MAIN_ONLY(ctx, RP_HOST_WORK_1, );
	struct instance *i = instance_of(ctx);
	if (i->env->reported)
		i->env->reported(i, ctr, result, text, i->env->arg);
}

static int32_t cgroup_dir(void *ctx, rp_ctr handle, const char *controller, char *buf, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_WORK_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	const struct ctr *ctr = cache_ctr_of(i->env->cache, handle);
	if (!ctr)
		return -RP_ESTALE;
	return cgroup_dir_of(i->env->root, ctr->cgroups_path, controller, buf, cap);
}

/* Writes "PID PATH" of the container's cgroup. */
static int32_t cgroup_ref(void *ctx, rp_ctr handle, char *buf, uint32_t cap)
{
	MAIN_ONLY(ctx, RP_HOST_WORK_1, -RP_EPERM);
	struct instance *i = instance_of(ctx);
	const struct ctr *ctr = cache_ctr_of(i->env->cache, handle);
	if (!ctr)
		return -RP_ESTALE;
	int n = snprintf(buf, cap, "%u %s", ctr->pid, ctr->cgroups_path);
	return n < 0 || (uint32_t)n >= cap ? -RP_E2BIG : 0;
}

static int32_t cgroup_find(void *ctx, const char *ref, const char *controller, char *buf,
			   uint32_t cap)
{
	char *path;
	unsigned long pid = strtoul(ref, &path, 10);
	if (*path != ' ' || pid > INT32_MAX)
		return -RP_EINVAL;
	return cgroup_find_dir(((struct instance *)ctx)->env->root, path + 1, (uint32_t)pid,
			       controller, buf, cap);
}

struct listing {
	int dir;
	int32_t (*each)(void *arg, const char *name, uint32_t kind);
	void *arg;
};

static int list_entry(const char *name, void *arg)
{
	const struct listing *l = arg;
	struct stat st;
	if (fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* the process has ended meanwhile */
	return l->each(l->arg, name,
		       S_ISDIR(st.st_mode)   ? RP_FILE_DIR
		       : S_ISLNK(st.st_mode) ? RP_FILE_LINK
					     : RP_FILE_OTHER);
}

static int32_t list_dir(void *ctx, const char *path,
			int32_t (*each)(void *arg, const char *name, uint32_t kind), void *arg)
{
	const struct fs_root *root = ((struct instance *)ctx)->env->root;
	_close_ int fd = fs_open_dir(root, path);
	if (fd < 0)
		return fd;
	struct listing l = {fd, each, arg};
	return fs_list(root, path, list_entry, &l);
}

SERVICE_CHANGE(make_dir, (void *ctx, const char *path), fs_mkdir(root, path, 0755))
SERVICE_CHANGE(remove_dir, (void *ctx, const char *path), fs_rmdir(root, path))

/* Replaces libnuma's functions of these names, which print to stderr and may end the program.
 * libnuma finds both by name. */
__attribute__((visibility("default"))) void numa_error(char *where)
{
	log_warning("libnuma: %s: %s", where, strerror(errno));
}

__attribute__((visibility("default"), format(printf, 2, 3))) void numa_warn(int number, char *fmt,
									    ...)
{
	va_list ap;
	va_start(ap, fmt);
	log_vwrite(LOG_SOURCE, LOG_WARNING, fmt, ap);
	va_end(ap);
}

/*
 * Moves pages in portions, because the kernel holds the process's memory map during one call.
 * Process ids of another root are invalid in this kernel. numa_available() is not needed:
 * numa_move_pages() is the bare system call and returns -ENOSYS on a kernel without NUMA.
 */
static int64_t move_pages_by_portions(void *ctx, int32_t pid, uint64_t n, void **pages,
				      const int32_t *nodes, int32_t *status)
{
	if (!((struct instance *)ctx)->env->root->real)
		return -RP_ENOTSUP;
	for (uint64_t at = 0; at < n; at += MOVE_PORTION) {
		uint64_t portion = n - at < MOVE_PORTION ? n - at : MOVE_PORTION;
		int r = numa_move_pages(pid, portion, pages + at, nodes ? nodes + at : NULL,
					status + at, MPOL_MF_MOVE);
		if (r < 0)
			return -errno;
		if (r > 0) /* the kernel stopped there and has not moved later pages either */
			return r + (int64_t)(n - at - portion);
	}
	return 0;
}

static int32_t read_link(void *ctx, const char *path, char *buf, uint32_t cap)
{
	return (int32_t)fs_readlink(((struct instance *)ctx)->env->root, path, buf, cap);
}

const struct rp_host_work host_work_service = {
	.size = sizeof host_work_service,
	.submit = submit,
	.read_file = read_file,
	.write_file = write_file,
	.report = report,
	.cgroup_dir = cgroup_dir,
	.cgroup_ref = cgroup_ref,
	.cgroup_find = cgroup_find,
	.list_dir = list_dir,
	.make_dir = make_dir,
	.remove_dir = remove_dir,
	.move_pages = move_pages_by_portions,
	.read_link = read_link,
	.figure = host_figure,
	.post = post,
	.read_node = read_node,
};
