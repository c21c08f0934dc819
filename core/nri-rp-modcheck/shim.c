/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/services.h"
#include "core/util/str.h"

const char *const shim_services[SHIM_SERVICES] = {RP_HOST_CACHE_1,  RP_HOST_TOPOLOGY_1,
						  RP_HOST_CONFIG_1, RP_HOST_EXPLAIN_1,
						  RP_HOST_TIMER_1,  RP_HOST_WORK_1,
						  RP_HOST_NODERES_1};

static const struct {
	const void *real, *cover; /* what a cover leaves out goes to the host */
	size_t size;
} covers[SHIM_SERVICES] = {
	{&host_cache_service, &shim_cache, sizeof shim_cache},
	{&host_topology_service, &shim_topology, sizeof shim_topology},
	{&host_config_service, &shim_config, sizeof shim_config},
	{&host_explain_service, &shim_explain, sizeof shim_explain},
	{&host_timer_service, &shim_timer, sizeof shim_timer},
	{&host_work_service, &shim_work, sizeof shim_work},
	{&host_noderes_service, &host_noderes_service, sizeof host_noderes_service},
};

struct longer_host {
	struct rp_host host;
	unsigned char tail[SHIM_TAIL];
	struct longer_host *next;
};

/* ---- rules --------------------------------------------------------------------------------------------------------- */

struct shim *shim_of(void *ctx)
{
	return (struct shim *)((struct instance *)ctx)->module;
}

void shim_broken(struct shim *s, const char *fmt, ...)
{
	va_list ap;
	if (s->broken[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(s->broken, sizeof s->broken, fmt, ap);
	va_end(ap);
}

struct shim *shim_enter(void *ctx, const char *name)
{
	struct shim *s = shim_of(ctx);
	if (!pthread_equal(pthread_self(), s->thread))
		shim_broken(s, "%s() was called on another thread than the host's", name);
	return s;
}

int32_t shim_try(void *ctx, const char *name)
{
	struct shim *s = shim_enter(ctx, name);
	if (++s->n_calls != s->fail_at)
		return 0;
	s->fired = true;
	s->fired_in = name;
	return s->fail_code;
}

void shim_out(void *ctx, const char *name, const void *out, uint32_t known)
{
	uint32_t size;
	memcpy(&size, out, sizeof size);
	if (size <= sizeof size || size > known + 4096)
		shim_broken(
			shim_of(ctx),
			"%s() was handed a struct of size %u: .size has to be set to its sizeof",
			name, size);
}

void shim_asked(struct shim *s, const char *key)
{
	for (unsigned i = 0; i < s->n_asked; i++)
		if (str_eq(s->asked[i], key))
			return;
	if (s->n_asked < SHIM_KEYS_MAX && strlen(key) < SHIM_KEY_MAX)
		(void)snprintf(s->asked[s->n_asked++], SHIM_KEY_MAX, "%s", key);
}

int shim_check(const struct shim *s, struct err *err)
{
	return s->broken[0] ? err_set(err, -EPROTO, "%s", s->broken) : 0;
}

/* ---- the host's own functions -------------------------------------------------------------------------------------- */

static const void *service(void *ctx, const char *id)
{
	struct shim *s = shim_enter(ctx, "service");
	for (unsigned i = 0; i < SHIM_SERVICES; i++)
		if (str_eq(shim_services[i], id))
			return (s->withheld & 1u << i) ? NULL : s->services[i];
	return NULL;
}

/* Annotations end up in messages, whatever is in them: the host escapes what is no text. */
static void say(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	struct shim *s = shim_enter(ctx, "log");
	(void)object;
	if (level < RP_LOG_ERROR || level > RP_LOG_DEBUG)
		shim_broken(s, "log() at level %u, which there is not", level);
	if (!text)
		shim_broken(s, "log() without a text");
}

static int32_t explain_failure(void *ctx, int32_t code, const char *text)
{
	struct instance *i = ctx;
	struct shim *s = shim_enter(ctx, "fail");
	if (code >= 0)
		shim_broken(s, "fail() with code %d: codes are negative", code);
	if (!text || !*text)
		shim_broken(s, "fail() without a text");
	return err_set(&i->failed, code, "%s", text ? text : "");
}

/* ---- the module's side --------------------------------------------------------------------------------------------- */

static const struct rp_host *lengthen(struct shim *s, const struct rp_host *host)
{
	struct longer_host *l = malloc(sizeof *l);
	if (!l)
		return host;
	l->host = *host;
	l->host.size = offsetof(struct longer_host, next);
	l->host.abi_minor = RP_ABI_MINOR + 7;
	memset(l->tail, SHIM_POISON, sizeof l->tail);
	l->next = s->longer_hosts;
	s->longer_hosts = l;
	return &l->host;
}

/* All members behind the size are functions. */
static void put_cover(void *service, unsigned i)
{
	typedef void (*function)(void);
	for (size_t at = 2 * sizeof(uint32_t); at + sizeof(function) <= covers[i].size;
	     at += sizeof(function)) {
		function f;
		memcpy(&f, (const char *)covers[i].cover + at, sizeof f);
		if (f)
			memcpy((char *)service + at, &f, sizeof f);
	}
}

static void fill_services(struct shim *s)
{
	for (unsigned i = 0; i < SHIM_SERVICES; i++) {
		uint32_t size = (uint32_t)(covers[i].size + (s->longer ? SHIM_TAIL : 0));
		memset(s->services[i], SHIM_POISON, covers[i].size + SHIM_TAIL);
		memcpy(s->services[i], covers[i].real, covers[i].size);
		memcpy(s->services[i], &size, sizeof size);
		put_cover(s->services[i], i);
	}
}

static int32_t create(const struct rp_host *host, struct rp_instance **ret)
{
	struct instance *i = host->ctx;
	struct shim *s = shim_of(i);
	fill_services(s);
	i->host.service = service;
	i->host.log = say;
	i->host.fail = explain_failure;
	return s->real->create(s->longer ? lengthen(s, &i->host) : &i->host, ret);
}

int shim_init(struct shim *s, struct module *m)
{
	*s = (struct shim){.module = *m, .real = m->abi, .thread = pthread_self()};
	s->abi = (struct rp_module){.size = sizeof s->abi,
				    .create = create,
				    .destroy = m->abi->destroy,
				    .service = m->abi->service};
	s->module.abi = &s->abi;
	for (unsigned i = 0; i < SHIM_SERVICES; i++) {
		s->services[i] = malloc(covers[i].size + SHIM_TAIL);
		if (!s->services[i])
			return -ENOMEM;
	}
	return 0;
}

void shim_fini(struct shim *s)
{
	for (unsigned i = 0; i < SHIM_SERVICES; i++)
		free(s->services[i]);
	while (s->longer_hosts) {
		struct longer_host *l = s->longer_hosts;
		s->longer_hosts = l->next;
		free(l);
	}
}
