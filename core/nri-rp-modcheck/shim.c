/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-modcheck/shim.h"
#include "core/nri-rp-modcheck/shim_module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/service/services.h"
#include "core/lib/util/str.h"

const char *const shim_services[SHIM_SERVICES] = {
	RP_HOST_CACHE_1,    RP_HOST_TOPOLOGY_1, RP_HOST_CONFIG_1, RP_HOST_EXPLAIN_1,
	RP_HOST_TIMER_1,    RP_HOST_WORK_1,	RP_HOST_USAGE_1,  RP_HOST_SPEEDSELECT_1,
	RP_HOST_SETTINGS_1, RP_HOST_NODERES_1,	RP_HOST_NODE_1,	  RP_HOST_EVICT_1,
	RP_HOST_RUNTIME_1,  RP_HOST_HINTS_1};

static const struct {
	const void *real, *cover; /* members missing in the cover are the host's own */
	size_t size;
	uint32_t since; /* ABI minor that introduced the service */
} covers[SHIM_SERVICES] = {
	{&host_cache_service, &shim_cache, sizeof shim_cache, 0},
	{&host_topology_service, &shim_topology, sizeof shim_topology, 0},
	{&host_config_service, &shim_config, sizeof shim_config, 0},
	{&host_explain_service, &shim_explain, sizeof shim_explain, 0},
	{&host_timer_service, &shim_timer, sizeof shim_timer, 0},
	{&host_work_service, &shim_work, sizeof shim_work, 0},
	{&host_usage_service, NULL, sizeof host_usage_service, 1},
	{&host_speedselect_service, NULL, sizeof host_speedselect_service, 2},
	{&host_settings_service, NULL, sizeof host_settings_service, 2},
	{&host_noderes_service, NULL, sizeof host_noderes_service, 3},
	{&host_node_service, NULL, sizeof host_node_service, 3},
	{&host_evict_service, NULL, sizeof host_evict_service, 3},
	{&host_runtime_service, NULL, sizeof host_runtime_service, 3},
	{&host_hints_service, NULL, sizeof host_hints_service, 3},
};

struct longer_host {
	struct rp_host host;
	unsigned char tail[SHIM_TAIL];
	struct longer_host *next;
};

/* ---- rules ----------------------------------------------------------------------------------- */

struct shim *shim_of(void *ctx)
{
	return (struct shim *)((struct instance *)ctx)->module;
}

bool shim_may_return(int32_t code)
{
	static const int32_t known[] = {RP_ENOENT, RP_EAGAIN, RP_ENOMEM,  RP_EBUSY, RP_EINVAL,
					RP_ENOSPC, RP_E2BIG,  RP_ENOTSUP, RP_ESTALE};
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (code == -known[i])
			return true;
	return false;
}

void shim_broken(struct shim *s, const char *fmt, ...)
{
	va_list ap;
	if (s->scene->broken[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(s->scene->broken, sizeof s->scene->broken, fmt, ap);
	va_end(ap);
}

void shim_foreign(struct instance *i, const char *function)
{
	shim_broken(shim_of(i), "%s() was called on a thread other than the host's",
		    function + (function[1] == '_' ? 2 : 0));
}

struct shim *shim_enter(void *ctx, const char *name)
{
	struct shim *s = shim_of(ctx);
	if (!pthread_equal(pthread_self(), s->thread))
		shim_foreign(ctx, name);
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

int32_t shim_result(void *ctx, int32_t result)
{
	struct shim *s = shim_of(ctx);
	s->host_failed = s->host_failed || result < 0;
	return result;
}

/* Reports writes on the main thread: files can block, which only the worker may wait for; and a
 * trial must not change files. */
void shim_writes(void *ctx, const char *name, const char *path)
{
	struct shim *s = shim_of(ctx);
	if (s->call && pthread_equal(pthread_self(), s->thread))
		shim_broken(s,
			    "%s(\"%.80s\") in %s(): only jobs (submit()) may change files, after "
			    "the decision",
			    name, path, s->call);
}

void shim_out(void *ctx, const char *name, const void *out, uint32_t known)
{
	uint32_t size;
	memcpy(&size, out, sizeof size);
	if (size <= sizeof size || size > known + 4096)
		shim_broken(shim_of(ctx),
			    "%s() received a struct of size %u: set .size to its sizeof", name,
			    size);
}

void shim_shorten(void *ctx, void *out, uint32_t known)
{
	uint32_t size;
	memcpy(&size, out, sizeof size);
	if (shim_of(ctx)->minor == RP_ABI_MINOR || size <= known || size > known + 4096)
		return;
	memset((char *)out + known, SHIM_POISON, size - known);
	memcpy(out, &known, sizeof known);
}

void shim_asked(struct shim *s, const char *key)
{
	for (unsigned i = 0; i < s->n_asked; i++)
		if (str_eq(s->asked[i], key))
			return;
	if (s->n_asked < SHIM_KEYS_MAX && strlen(key) < SHIM_KEY_MAX)
		(void)snprintf(s->asked[s->n_asked++], SHIM_KEY_MAX, "%s", key);
}

/* ---- functions of the host ------------------------------------------------------------------- */

static const void *service(void *ctx, const char *id)
{
	struct shim *s = shim_enter(ctx, "service");
	for (unsigned i = 0; i < SHIM_SERVICES; i++)
		if (str_eq(shim_services[i], id))
			return (s->withheld & 1u << i) || s->minor < covers[i].since
				       ? NULL
				       : s->services[i];
	return NULL;
}

/* Checks a log call. Its text is not checked: it may contain annotations, and the host escapes
 * them. */
static void shim_say(void *ctx, uint32_t level, uint64_t object, const char *text)
{
	struct shim *s = shim_enter(ctx, "log");
	if (level < RP_LOG_ERROR || level > RP_LOG_DEBUG)
		shim_broken(s, "log() at the unknown level %u", level);
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

/* ---- longer and shorter structs -------------------------------------------------------------- */

typedef void (*function)(void);

/* Members added to services later. Calling them without RP_HAS fails on older hosts. */
#define LATER_MEMBERS(X)                                                                           \
	X(WORK, rp_host_work, figure, 1)                                                           \
	X(WORK, rp_host_work, post, 3)                                                             \
	X(WORK, rp_host_work, read_node, 3)                                                        \
	X(CACHE, rp_host_cache, pod_resource, 2)                                                   \
	X(CACHE, rp_host_cache, arg, 3)                                                            \
	X(CACHE, rp_host_cache, set_args, 3)                                                       \
	X(CACHE, rp_host_cache, set_group, 3)                                                      \
	X(CACHE, rp_host_cache, list_pods, 3)                                                      \
	X(CACHE, rp_host_cache, get_pod_private, 3)                                                \
	X(CACHE, rp_host_cache, set_pod_private, 3)                                                \
	X(CACHE, rp_host_cache, may_wait, 3)                                                       \
	X(CACHE, rp_host_cache, pod_ctr, 3)                                                        \
	X(CACHE, rp_host_cache, add_mount, 3)                                                      \
	X(CACHE, rp_host_cache, add_device, 3)                                                     \
	X(CACHE, rp_host_cache, add_cdi, 3)                                                        \
	X(CACHE, rp_host_cache, cdi, 3)                                                            \
	X(CACHE, rp_host_cache, pod_annotations, 3)                                                \
	X(CACHE, rp_host_cache, memory, 3)                                                         \
	X(CACHE, rp_host_cache, leave_unpinned, 3)                                                 \
	X(TOPOLOGY, rp_host_topology, simulated, 3)

enum { CACHE, TOPOLOGY, CONFIG, EXPLAIN, TIMER, WORK };

/* Reports a call to a missing member. Returns NULL, which is also 0 for members that return
 * numbers. */
static void *shim_absent(void *ctx, const char *name, uint32_t since)
{
	struct shim *s = shim_of(ctx);
	shim_broken(s,
		    "%s() of ABI %u.%u was called on a host of %u.%u, which lacks it: check "
		    "RP_HAS() first",
		    name, RP_ABI_MAJOR, since, RP_ABI_MAJOR, s->minor);
	return NULL;
}
#define ABSENT(service, type, member, since)                                                       \
	static void *no_##member(void *ctx)                                                        \
	{                                                                                          \
		return shim_absent(ctx, #member, since);                                           \
	}
LATER_MEMBERS(ABSENT)

static const struct later {
	unsigned service;
	uint32_t since;
	size_t offset;
	function absent;
} later[] = {
#define LATER(service, type, member, since)                                                        \
	{service, since, offsetof(struct type, member), (function)no_##member},
	LATER_MEMBERS(LATER)};

/* Returns the size of a service on a host of the shim's minor version. */
static uint32_t size_of_service(const struct shim *s, unsigned i)
{
	size_t size = covers[i].size + (s->longer ? SHIM_TAIL : 0);
	for (unsigned k = 0; k < sizeof later / sizeof *later; k++)
		if (later[k].service == i && later[k].since > s->minor && later[k].offset < size)
			size = later[k].offset;
	return (uint32_t)size;
}

static const struct rp_host *shim_lengthen(struct shim *s, const struct rp_host *host)
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

void shim_put_covers(void *table, const void *by, size_t size)
{
	for (size_t at = 2 * sizeof(uint32_t); at + sizeof(function) <= size;
	     at += sizeof(function)) {
		function f, theirs;
		memcpy(&f, (const char *)by + at, sizeof f);
		memcpy(&theirs, (const char *)table + at, sizeof theirs);
		if (f && theirs)
			memcpy((char *)table + at, &f, sizeof f);
	}
}

static void fill_services(struct shim *s)
{
	for (unsigned i = 0; i < SHIM_SERVICES; i++) {
		uint32_t size = size_of_service(s, i);
		memset(s->services[i], SHIM_POISON, covers[i].size + SHIM_TAIL);
		memcpy(s->services[i], covers[i].real, covers[i].size);
		memcpy(s->services[i], &size, sizeof size);
		if (covers[i].cover)
			shim_put_covers(s->services[i], covers[i].cover, covers[i].size);
	}
	for (unsigned k = 0; k < sizeof later / sizeof *later; k++)
		if (later[k].since > s->minor)
			memcpy((char *)s->services[later[k].service] + later[k].offset,
			       &later[k].absent, sizeof later[k].absent);
}

/* ---- life of a shim -------------------------------------------------------------------------- */

static int32_t create(const struct rp_host *host, struct rp_instance **ret)
{
	struct instance *i = host->ctx;
	struct shim *s = shim_of(i);
	fill_services(s);
	i->host.abi_minor = s->minor;
	i->host.service = service;
	i->host.log = shim_say;
	i->host.fail = explain_failure;
	return shim_create(s, s->longer ? shim_lengthen(s, &i->host) : &i->host, ret);
}

int shim_init(struct shim *s, const struct check *c)
{
	*s = (struct shim){.module = *c->module,
			   .real = c->module->abi,
			   .scene = c->scene,
			   .thread = pthread_self(),
			   .minor = RP_ABI_MINOR};
	s->abi = (struct rp_module){.size = sizeof s->abi,
				    .create = create,
				    .destroy = shim_destroy,
				    .service = shim_service};
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
