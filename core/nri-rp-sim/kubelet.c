/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's calculations of runtime values from requests and limits: a second copy of those in
 * core/nri-rpd/cache/derive.c, so that scenarios test the daemon against another source. */
#include "core/nri-rp-sim/kubelet.h"

#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define SHARES_MIN 2
#define SHARES_MAX 262144
#define QUOTA_MIN 1000

typedef int (*parser)(const char *s, int64_t *ret);

/* Parses one side of "1/2"; "-" and "" are 0. */
static int parse_side(const char *text, parser parse, int64_t *ret)
{
	*ret = 0;
	if (!*text || str_eq(text, "-"))
		return 0;
	int r = parse(text, ret);
	return r ? r : *ret < 0 ? -EINVAL : 0;
}

/* Parses "2" (request and limit), "500m/2" (request/limit) or "500m/-" (a request without
 * limit). */
static int parse_short(const char *text, parser parse, int64_t *request, int64_t *limit)
{
	_free_ char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	char *slash = strchr(copy, '/');
	if (slash)
		*slash = '\0';
	int r = parse_side(copy, parse, request);
	if (r || !slash) {
		*limit = *request;
		return r;
	}
	r = parse_side(slash + 1, parse, limit);
	if (!r && !*request)
		*request = *limit;
	return r;
}

static int read_short(const json_t *spec, const char *key, parser parse, int64_t *request,
		      int64_t *limit, struct err *err)
{
	char buf[ARG_NUMBER_MAX];
	const json_t *node = json_object_get(spec, key);
	const char *text = arg_scalar(node, buf);
	if (!node)
		return 0;
	if (!text || parse_short(text, parse, request, limit))
		return err_set(err, -EINVAL, "%s: expected REQUEST/LIMIT, or one amount for both",
			       key);
	return 0;
}

static int read_long(const json_t *spec, const char *key, int64_t *cpu, int64_t *memory,
		     struct err *err)
{
	struct args a = arg_sub(ARGS(spec, err), key, "cpu memory");
	(void)arg_amount(&a, "cpu", ARG_MILLI, *cpu, cpu);
	return arg_amount(&a, "memory", ARG_BYTES, *memory, memory);
}

int kubelet_wants(const json_t *spec, struct wants *ret, struct err *err)
{
	struct wants w = *ret;
	int r = read_short(spec, "cpu", str_to_milli, &w.cpu_request, &w.cpu_limit, err);
	if (!r)
		r = read_short(spec, "memory", str_to_bytes, &w.memory_request, &w.memory_limit,
			       err);
	if (!r)
		r = read_long(spec, "limits", &w.cpu_limit, &w.memory_limit, err);
	if (!r)
		r = read_long(spec, "requests", &w.cpu_request, &w.memory_request, err);
	if (r)
		return r;
	/* the API server's default for requests is the limit */
	if (!w.cpu_request)
		w.cpu_request = w.cpu_limit;
	if (!w.memory_request)
		w.memory_request = w.memory_limit;
	*ret = w;
	return 0;
}

enum qos kubelet_qos(const struct wants *wants, size_t n)
{
	bool any = false, all = n > 0;
	for (size_t i = 0; i < n; i++) {
		const struct wants *w = &wants[i];
		any |= w->cpu_request || w->cpu_limit || w->memory_request || w->memory_limit;
		all &= w->cpu_limit && w->cpu_request == w->cpu_limit && w->memory_limit &&
		       w->memory_request == w->memory_limit;
	}
	if (!any)
		return QOS_BEST_EFFORT;
	return all ? QOS_GUARANTEED : QOS_BURSTABLE;
}

/* Sums an amount: of all containers, or of an init container with the sidecars before it, if
 * that is larger. A limit is 0 if a container has none. */
static int64_t kubelet_sum_of(const struct wants *wants, const bool *init, size_t n, size_t offset,
			      bool limit)
{
	int64_t all = 0, most = 0;
	for (size_t i = 0; i < n; i++) {
		const int64_t *one = (const void *)((const char *)&wants[i] + offset);
		if (limit && !init[i] && !*one)
			return 0;
		if (!init[i])
			all += *one;
		else if (all + *one > most)
			most = all + *one;
	}
	return all > most ? all : most;
}

void kubelet_sum(const struct wants *wants, const bool *init, size_t n, struct wants *ret)
{
#define SUM(amount, limit) kubelet_sum_of(wants, init, n, offsetof(struct wants, amount), limit)
	*ret = (struct wants){
		.cpu_request = SUM(cpu_request, false),
		.cpu_limit = SUM(cpu_limit, true),
		.memory_request = SUM(memory_request, false),
		.memory_limit = SUM(memory_limit, true),
	};
#undef SUM
}

static void own_or(int64_t *amount, int64_t own)
{
	if (own)
		*amount = own;
}

void kubelet_put_own(const struct wants *own, struct wants *sums)
{
	own_or(&sums->cpu_request, own->cpu_request);
	own_or(&sums->cpu_limit, own->cpu_limit);
	own_or(&sums->memory_request, own->memory_request);
	own_or(&sums->memory_limit, own->memory_limit);
}

void kubelet_hand_down(const struct wants *own, struct wants *ctr)
{
	if (!ctr->cpu_limit)
		ctr->cpu_limit = own->cpu_limit;
	if (!ctr->cpu_request)
		ctr->cpu_request = own->cpu_limit;
	if (!ctr->memory_limit)
		ctr->memory_limit = own->memory_limit;
}

const char *kubelet_qos_name(enum qos qos)
{
	static const char *const names[] = {"guaranteed", "burstable", "besteffort"};
	return names[qos];
}

int64_t kubelet_shares(const struct wants *w)
{
	if (w->cpu_request >= INT64_C(1000) * SHARES_MAX / 1024)
		return SHARES_MAX;
	int64_t shares = w->cpu_request * 1024 / 1000;
	return shares < SHARES_MIN ? SHARES_MIN : shares;
}

int64_t kubelet_quota(const struct wants *w)
{
	if (!w->cpu_limit)
		return 0;
	int64_t quota = w->cpu_limit * (KUBELET_PERIOD / 1000);
	return quota < QUOTA_MIN ? QUOTA_MIN : quota;
}

int64_t kubelet_oom_score_adj(const struct wants *w, enum qos qos, bool critical, int64_t capacity)
{
	if (qos == QOS_GUARANTEED || critical)
		return -997;
	if (qos == QOS_BEST_EFFORT || capacity <= 0)
		return 1000;
	int64_t adj = 1000 - (int64_t)((__int128)1000 * w->memory_request / capacity);
	if (adj < 3)
		return 3;
	return adj > 999 ? 999 : adj;
}

char *kubelet_cgroup_parent(enum sim_cgroups driver, enum qos qos, const char *uid)
{
	static const char *const slash[] = {"", "burstable/", "besteffort/"};
	static const char *const dash[] = {"", "-burstable", "-besteffort"};
	if (driver == CGROUPS_FS)
		return str_printf("/kubepods/%spod%s", slash[qos], uid);
	_free_ char *escaped = strdup(uid);
	if (!escaped)
		return NULL;
	for (char *p = escaped; *p; p++)
		if (*p == '-')
			*p = '_';
	return str_printf("kubepods%s-pod%s.slice", dash[qos], escaped);
}

char *kubelet_cgroups_path(enum sim_cgroups driver, enum sim_runtime runtime, const char *parent,
			   const char *id)
{
	if (driver == CGROUPS_FS)
		return str_printf("%s/%s", parent, id);
	return str_printf("%s:%s:%s", parent, runtime == RUNTIME_CRIO ? "crio" : "cri-containerd",
			  id);
}
