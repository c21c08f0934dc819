/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.settings/1: who has set which file of the machine to what. The worker uses it, and the main thread when an instance ends. */
#define HASH_NONFATAL_OOM 1 /* a module is told, and does not change the file */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/services.h"
#include "core/util/hash.h"

struct claim {
	const struct instance *instance;
	struct claim *next; /* said before */
	char value[];
};

struct setting {
	UT_hash_handle hh;
	struct claim *claims; /* the last one first; never empty */
	const char *path; /* behind what was found */
	char found[];
};

static struct setting *find(const struct host_env *env, const char *path)
{
	struct setting *s;
	HASH_FIND_STR(env->settings, path, s);
	return s;
}

static struct setting *find_or_add(struct host_env *env, const char *path, const char *found)
{
	struct setting *s = find(env, path);
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

static struct claim *take(struct setting *s, const struct instance *i)
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

static void forget_if_free(struct host_env *env, struct setting *s)
{
	if (s->claims)
		return;
	HASH_DEL(env->settings, s);
	free(s);
}

static int32_t claim(struct instance *i, const char *path, const char *value, const char *found)
{
	struct setting *s = find_or_add(i->env, path, found);
	if (!s)
		return -RP_ENOMEM;
	size_t n = strlen(value) + 1;
	struct claim *c = malloc(sizeof *c + n);
	if (!c) {
		forget_if_free(i->env, s);
		return -RP_ENOMEM;
	}
	free(take(s, i));
	c->instance = i;
	memcpy(c->value, value, n);
	c->next = s->claims;
	s->claims = c;
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
	int32_t r = claim(i, path, value, found);
	pthread_mutex_unlock(&i->env->settings_lock);
	return r;
}

static const char *rest(const struct setting *s, const struct instance *i)
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

static int32_t without(void *ctx, const char *path, char *buf, uint32_t cap)
{
	const struct instance *i = ctx;
	if (i->env->trial)
		return -RP_ENOTSUP;
	pthread_mutex_lock(&i->env->settings_lock);
	const char *text = rest(find(i->env, path), i);
	size_t len = text ? strlen(text) : 0;
	int32_t r = !text ? -RP_ENOENT : len >= cap ? -RP_E2BIG : (int32_t)len;
	if (r >= 0)
		memcpy(buf, text, len + 1);
	pthread_mutex_unlock(&i->env->settings_lock);
	return r;
}

static void drop(void *ctx, const char *path)
{
	const struct instance *i = ctx;
	if (i->env->trial)
		return;
	pthread_mutex_lock(&i->env->settings_lock);
	struct setting *s = find(i->env, path);
	if (s) {
		free(take(s, i));
		forget_if_free(i->env, s);
	}
	pthread_mutex_unlock(&i->env->settings_lock);
}

void instance_drop_settings(struct instance *i)
{
	struct setting *s, *next;
	if (i->env->trial) /* the worker's thread, which may have had the lock, is not in this process */
		return;
	pthread_mutex_lock(&i->env->settings_lock);
	HASH_ITER (hh, i->env->settings, s, next) {
		free(take(s, i));
		forget_if_free(i->env, s);
	}
	pthread_mutex_unlock(&i->env->settings_lock);
}

const struct rp_host_settings host_settings_service = {
	.size = sizeof host_settings_service,
	.keep = keep,
	.without = without,
	.drop = drop,
};
