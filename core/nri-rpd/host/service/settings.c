/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp.host.settings/1: which instance has set which file of the machine to which value. The
 * worker uses the table, and the main thread when an instance ends.
 *
 * Every file in the table is to be restored later: by the module that has set it, or by the host if
 * that module or the whole process has ended without doing so (former_settings.h).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/former_settings.h"
#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/host/service/settings.h"

#define LOG_SOURCE "settings"
#define POSSIBLE "sys/devices/system/cpu/possible"

struct claim {
	const struct instance *instance;
	struct claim *next; /* earlier claim of the file */
	char value[];
};

struct setting {
	UT_hash_handle hh;
	struct claim *claims; /* latest first; NULL: the host is to restore the file */
	const char *path; /* stored behind the previous value */
	bool former; /* set by the previous process; a module may still claim it */
	/* from the previous process; a module that drops it may not have restored the file */
	bool adopted;
	bool changed; /* set to another value than the previous one: belongs in the log */
	bool noted; /* the original value is recorded in the log */
	char found[];
};

/* ---- the table ------------------------------------------------------------------------------- */

static struct setting *settings_find(const struct host_env *env, const char *path)
{
	struct setting *s;
	HASH_FIND_STR(env->settings, path, s);
	return s;
}

static struct setting *find_or_add(struct host_env *env, const char *path, const char *found)
{
	struct setting *s = settings_find(env, path);
	size_t len = strlen(path), n = strlen(found) + 1;
	if (s)
		return s;
	s = calloc(1, sizeof *s + n + len + 1);
	if (!s)
		return NULL;
	memcpy(s->found, found, n);
	s->path = memcpy(s->found + n, path, len + 1);
	HASH_ADD_KEYPTR(hh, env->settings, s->path, len, s);
	if (s->hh.tbl)
		return s;
	free(s);
	return NULL;
}

static void settings_forget(struct host_env *env, struct setting *s)
{
	HASH_DEL(env->settings, s);
	free(s);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Warns that the log of former settings cannot be written. This is no reason to leave the CPUs
 * unset. */
static void settings_complain(struct host_env *env, int r)
{
	if (r && !env->found_fails)
		log_warning("original values of kernel files cannot be saved (%s): if nri-rpd is "
			    "killed, they are not restored",
			    strerrordesc_np(-r));
	env->found_fails = r != 0;
}

static bool belongs_in_file(const struct setting *s)
{
	return s->changed && found_storable(s->path, s->found);
}

static int write_anew(struct host_env *env)
{
	struct setting *s;
	int r = reclog_begin_anew(&env->found->log, NULL);
	for (s = env->settings; !r && s; s = s->hh.next)
		if (belongs_in_file(s))
			r = found_put(env->found, s->path, s->found);
	if (!r)
		r = reclog_commit(&env->found->log, NULL);
	for (s = env->settings; !r && s; s = s->hh.next)
		s->noted = belongs_in_file(s);
	return r;
}

/* Appends a record to the log; value NULL: the file has been restored. */
static int settings_append(struct host_env *env, const char *path, const char *value)
{
	int r = found_put(env->found, path, value);
	return r ? r : reclog_commit(&env->found->log, NULL);
}

/* Records the previous value in the log before the module writes the file. */
static void settings_note(struct host_env *env, struct setting *s)
{
	if (!env->found || s->noted || !belongs_in_file(s))
		return;
	int r = HASH_COUNT(env->settings) > FOUND_RECORDS_MAX
			? -E2BIG
			: settings_append(env, s->path, s->found);
	s->noted = r == 0;
	if (r == -EBADF || (!r && reclog_is_long(&env->found->log)))
		r = write_anew(env);
	settings_complain(env, r);
}

/* Removes a restored setting from the table and from the log, which may have it even if a write has
 * failed. */
static void is_back(struct host_env *env, struct setting *s)
{
	bool known = env->found && belongs_in_file(s);
	int r = known ? settings_append(env, s->path, NULL) : 0;
	settings_forget(env, s);
	if (r == -EBADF)
		r = write_anew(env);
	if (known)
		settings_complain(env, r);
}

static int settings_adopt(void *arg, const char *path, const char *value)
{
	struct host_env *env = arg;
	struct setting *s = settings_find(env, path);
	if (s)
		settings_forget(env, s);
	if (!value)
		return 0;
	if (HASH_COUNT(env->settings) >= FOUND_RECORDS_MAX)
		return -E2BIG;
	s = find_or_add(env, path, value);
	if (s)
		s->former = s->adopted = s->changed = true;
	return s ? 0 : -ENOMEM;
}

int settings_open(struct host_env *env, const char *path, const char *origin, struct err *err)
{
	struct err why = ERR_INIT;
	int r = found_open(path, origin, settings_adopt, env, &env->found, &why);
	if (r)
		return err_errno(err, r, "%s", path);
	unsigned n = HASH_COUNT(env->settings);
	if (why.code)
		log_warning("%s: %u original values of kernel files are known from the previous "
			    "process",
			    why.text, n);
	else if (n)
		log_info("%u kernel files have the values of the previous process", n);
	settings_complain(env, write_anew(env));
	return 0;
}

/* ---- functions of the service ---------------------------------------------------------------- */

static struct claim *settings_take(struct setting *s, const struct instance *i)
{
	for (struct claim **at = &s->claims; *at; at = &(*at)->next) {
		struct claim *c = *at;
		if (c->instance != i)
			continue;
		*at = c->next;
		return c;
	}
	return NULL;
}

/* Marks the setting as restored, unless another instance claims it or it is from the previous
 * process: such a file is not restored merely because a module failed to set it. */
static void back_if_free(struct host_env *env, struct setting *s)
{
	if (!s->claims && !s->adopted)
		is_back(env, s);
}

static int32_t settings_claim(struct instance *i, const char *path, const char *value,
			      const char *found)
{
	struct setting *s = find_or_add(i->env, path, found);
	if (!s)
		return -RP_ENOMEM;
	size_t n = strlen(value) + 1;
	struct claim *c = malloc(sizeof *c + n);
	if (!c) {
		back_if_free(i->env, s);
		return -RP_ENOMEM;
	}
	free(settings_take(s, i));
	c->instance = i;
	memcpy(c->value, value, n);
	c->next = s->claims;
	s->claims = c;
	s->former = false;
	s->changed |= !str_eq(value, s->found);
	settings_note(i->env, s);
	return 0;
}

static int32_t keep(void *ctx, const char *path, const char *value, const char *found)
{
	struct instance *i = ctx;
	if (i->env->trial)
		return -RP_ENOTSUP;
	if (strlen(value) >= RP_SETTING_MAX || strlen(found) >= RP_SETTING_MAX ||
	    strlen(path) >= RP_SETTING_PATH_MAX)
		return -RP_E2BIG;
	pthread_mutex_lock(&i->env->settings_lock);
	int32_t r = settings_claim(i, path, value, found);
	pthread_mutex_unlock(&i->env->settings_lock);
	return r;
}

static const char *settings_rest(const struct setting *s, const struct instance *i)
{
	bool is_mine = false;
	const char *other = NULL;
	for (const struct claim *c = s ? s->claims : NULL; c; c = c->next) {
		is_mine |= c->instance == i;
		if (c->instance != i && !other)
			other = c->value;
	}
	return !is_mine ? NULL : other ? other : s->found;
}

/* Copies `text` to the caller's buffer and returns its length; NULL: -RP_ENOENT. */
static int32_t settings_give(const char *text, char *buf, uint32_t cap)
{
	size_t len = text ? strlen(text) : 0;
	if (!text)
		return -RP_ENOENT;
	if (len >= cap)
		return -RP_E2BIG;
	memcpy(buf, text, len + 1);
	return (int32_t)len;
}

static int32_t without(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct instance *i = ctx;
	if (i->env->trial)
		return -RP_ENOTSUP;
	pthread_mutex_lock(&i->env->settings_lock);
	int32_t r = settings_give(settings_rest(settings_find(i->env, path), i), buf, cap);
	pthread_mutex_unlock(&i->env->settings_lock);
	return r;
}

static int32_t found(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct instance *i = ctx;
	if (i->env->trial)
		return -RP_ENOTSUP;
	pthread_mutex_lock(&i->env->settings_lock);
	const struct setting *s = settings_find(i->env, path);
	int32_t r = settings_give(s ? s->found : NULL, buf, cap);
	pthread_mutex_unlock(&i->env->settings_lock);
	return r;
}

static bool is_as_found(const struct host_env *env, const char *path, const char *found)
{
	char has[RP_SETTING_MAX];
	return fs_read(env->root, path, has, sizeof has) >= 0 && str_eq(has, found);
}

/* Returns a copy of the value that was found before the previous process set the file; NULL: none,
 * or set by this process. */
static char *adopted_value(struct host_env *env, const char *path)
{
	pthread_mutex_lock(&env->settings_lock);
	const struct setting *s = settings_find(env, path);
	char *value = s && s->adopted ? strdup(s->found) : NULL;
	pthread_mutex_unlock(&env->settings_lock);
	return value;
}

/* Reads the file without the lock, because the main thread waits for the lock. */
static void drop(void *ctx, const char *path)
{
	const struct instance *i = ctx;
	if (i->env->trial)
		return;
	_free_ char *value = adopted_value(i->env, path);
	bool is_back_already = value && is_as_found(i->env, path, value);
	pthread_mutex_lock(&i->env->settings_lock);
	struct setting *s = settings_find(i->env, path);
	if (s) {
		free(settings_take(s, i));
		if (is_back_already)
			s->adopted = false;
		back_if_free(i->env, s);
	}
	pthread_mutex_unlock(&i->env->settings_lock);
}

/* ---- restoring abandoned settings ------------------------------------------------------------ */

struct left {
	char *path, *found;
	bool done;
};

struct put_back_job {
	struct host_env *env;
	struct left *list;
	unsigned n;
	struct err err; /* error of the first failure */
	unsigned n_failed;
};

static bool is_left(const struct setting *s)
{
	return !s->claims && !s->former;
}

static bool any_left(const struct host_env *env)
{
	for (const struct setting *s = env->settings; s; s = s->hh.next)
		if (is_left(s))
			return true;
	return false;
}

static void list_left(struct put_back_job *job)
{
	const struct host_env *env = job->env;
	job->n = 0;
	job->list = calloc(HASH_COUNT(env->settings) + 1, sizeof *job->list);
	for (const struct setting *s = env->settings; job->list && s; s = s->hh.next) {
		if (!is_left(s))
			continue;
		char *path = strdup(s->path), *found = strdup(s->found);
		if (!path || !found) {
			free(path);
			free(found);
			return; /* a later job restores the remaining settings */
		}
		job->list[job->n++] = (struct left){path, found, false};
	}
}

static int write_back(const struct host_env *env, const struct left *l)
{
	if (is_as_found(env, l->path, l->found))
		return 0;
	/* an empty write has no effect: a line without content clears a file of the kernel */
	int r = fs_write(env->root, l->path, *l->found ? l->found : "\n");
	/* the CPUs of a cgroup with tasks cannot be cleared: all possible ones restrict no task */
	char all[RP_SETTING_MAX];
	if (r == -ENOSPC && !*l->found && fs_read(env->root, POSSIBLE, all, sizeof all) > 0)
		r = fs_write(env->root, l->path, all);
	bool gone = r == -ENOENT || r == -ENODEV;
	/* a cgroup ends with its container */
	return gone && str_has_prefix(l->path, FOUND_CGROUPS) ? 0 : r;
}

/* Returns the setting if it still has to be restored: a module may have claimed it meanwhile. */
static struct setting *find_left(const struct host_env *env, const struct left *l)
{
	struct setting *s = settings_find(env, l->path);
	return s && is_left(s) ? s : NULL;
}

static int put_one_back(struct host_env *env, const struct left *l)
{
	pthread_mutex_lock(&env->settings_lock);
	const struct setting *was = find_left(env, l);
	bool due = was && was->changed;
	pthread_mutex_unlock(&env->settings_lock);
	int r = due ? write_back(env, l) : 0;
	if (r)
		return r;
	pthread_mutex_lock(&env->settings_lock);
	struct setting *s = find_left(env, l);
	if (s)
		is_back(env, s);
	pthread_mutex_unlock(&env->settings_lock);
	return 0;
}

/* [worker] Writes all values twice: older kernels accept a lowest frequency only if the highest,
 * which may follow later, is above it. */
static int put_back_run(void *arg)
{
	struct put_back_job *job = arg;
	pthread_mutex_lock(&job->env->settings_lock);
	list_left(job);
	pthread_mutex_unlock(&job->env->settings_lock);
	for (unsigned attempt = 0; attempt < 2; attempt++)
		for (unsigned i = 0; i < job->n; i++) {
			struct left *l = &job->list[i];
			int r = l->done ? 0 : put_one_back(job->env, l);
			l->done = r == 0;
			if (!r || !attempt)
				continue;
			if (!job->n_failed++)
				(void)err_errno(&job->err, r, "%s cannot be restored to %.100s",
						l->path, l->found);
		}
	return 0;
}

static void put_back_free(struct put_back_job *job)
{
	for (unsigned i = 0; i < job->n; i++) {
		free(job->list[i].path);
		free(job->list[i].found);
	}
	free(job->list);
	free(job);
}

static void put_back_done(void *arg, int result)
{
	struct put_back_job *job = arg;
	if (job->n > job->n_failed)
		log_info("restored %u kernel files to their original values",
			 job->n - job->n_failed);
	if (job->n_failed)
		log_warning("%s (%u files; retried after a hot-plug, and at the next start)",
			    job->err.text, job->n_failed);
	put_back_free(job);
}

void settings_put_back(struct host_env *env)
{
	if (env->trial || !env->worker)
		return;
	pthread_mutex_lock(&env->settings_lock);
	bool any = any_left(env);
	pthread_mutex_unlock(&env->settings_lock);
	struct put_back_job *job = any ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return;
	job->env = env;
	if (worker_submit(env->worker, put_back_run, put_back_done, job))
		put_back_free(job); /* the record stays in the log */
}

/* Restores the settings of instances that end with the worker, which no other component would
 * restore later. */
static void put_back_now(struct host_env *env)
{
	bool may = !env->trial && env->root && any_left(env);
	struct put_back_job *job = may ? calloc(1, sizeof *job) : NULL;
	if (!job)
		return;
	job->env = env;
	put_back_done(job, put_back_run(job));
}

void settings_close(struct host_env *env)
{
	struct setting *s, *next;
	put_back_now(env);
	HASH_ITER (hh, env->settings, s, next) {
		while (s->claims) {
			struct claim *c = s->claims;
			s->claims = c->next;
			free(c);
		}
		settings_forget(env, s);
	}
	env->found = found_close(env->found);
}

void settings_release_former(struct host_env *env)
{
	if (env->trial)
		return;
	pthread_mutex_lock(&env->settings_lock);
	for (struct setting *s = env->settings; s; s = s->hh.next)
		s->former = false;
	pthread_mutex_unlock(&env->settings_lock);
	settings_put_back(env);
}

void instance_drop_settings(struct instance *i)
{
	/* A trial has no worker thread, which may have held the lock at the fork. */
	if (i->env->trial)
		return;
	pthread_mutex_lock(&i->env->settings_lock);
	for (struct setting *s = i->env->settings; s; s = s->hh.next)
		free(settings_take(s, i));
	pthread_mutex_unlock(&i->env->settings_lock);
	settings_put_back(i->env);
}

const struct rp_host_settings host_settings_service = {
	.size = sizeof host_settings_service,
	.keep = keep,
	.without = without,
	.drop = drop,
	.found = found,
};
