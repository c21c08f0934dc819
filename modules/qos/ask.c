/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the request of a pod from its annotations. Any user of the cluster can write annotations,
 * so a malformed one refuses the pod. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/lib/section.h>
#include "modules/qos/qos.h"

#define DOMAIN "katalyst.kubewharf.io/"
#define LEVEL_KEY DOMAIN "qos_level"
#define MEMORY_KEY DOMAIN "memory_enhancement"
#define CPU_KEY DOMAIN "cpu_enhancement"
#define BIND_RESULT_KEY DOMAIN "numa_bind_result"
#define BURST_PERCENT_MAX 10000
#define AGGREGATED_KEY "pod.kubernetes.io/pod-aggregated-requests"

enum key {
	KEY_LEVEL,
	KEY_MEMORY,
	KEY_CPU,
	KEY_BIND_RESULT,
	KEY_NUMA_NUMBER,
	KEY_NUMA_IDS,
	KEY_NUMA_BINDING,
	KEY_NUMA_EXCLUSIVE,
	KEY_RSS_OVERUSE,
	KEY_OOM_PRIORITY,
	KEY_NUMA_SHARE,
	KEY_ALIGN_SOCKET,
	KEY_EVEN,
	KEY_PAIRING,
	KEY_BURST_POLICY,
	KEY_BURST_PERCENT,
	KEY_BURST_THRESHOLD,
	KEY_SUPPRESSION,
	KEY_POOL,
	N_KEYS
};

/* Keys of annotations. Those of enhancements are followed by their spelling with the domain. */
#define FULL(key) key, key
#define SHORT(key) key, DOMAIN key
static const char *const ask_keys[2 * N_KEYS] = {
	FULL(LEVEL_KEY),
	FULL(MEMORY_KEY),
	FULL(CPU_KEY),
	FULL(BIND_RESULT_KEY),
	FULL(DOMAIN "numa_number"),
	FULL(DOMAIN "numa_ids"),
	SHORT("numa_binding"),
	SHORT("numa_exclusive"),
	SHORT("rss_overuse_threshold"),
	SHORT("oom_priority"),
	SHORT("numa_share"),
	SHORT("align_by_socket"),
	SHORT("distribute_evenly_across_numa"),
	SHORT("full_pcpus_pairing"),
	SHORT("cpu_burst_policy"),
	SHORT("cpu_burst_percent"),
	SHORT("cpu_burst_threshold"),
	SHORT("suppression_tolerance_rate"),
	SHORT("cpuset_pool"),
};

static const char *key_name(enum key key)
{
	return ask_keys[2 * key];
}

/* An enhancement of a pod: the JSON of its annotation, else separate annotations, else defaults of
 * the configuration. */
struct enhancement {
	struct rp_instance *inst;
	const char *texts[2 * N_KEYS]; /* values of the annotations in ask_keys */
	rp_cfg json;
};

static int32_t open_json(struct rp_instance *inst, const char *key, const char *text, rp_cfg *ret)
{
	const struct modhost *h = &inst->h;
	int32_t r = 0;
	*ret = NULL;
	if (!text)
		return 0;
	*ret = h->config->parse(h->ctx, key, text, &r);
	for (uint32_t i = 0; !r && i < h->config->count(h->ctx, *ret); i++) {
		uint32_t kind = h->config->kind(h->ctx, h->config->item(h->ctx, *ret, i));
		if (kind == RP_NODE_LIST || kind == RP_NODE_MAP)
			r = modhost_fail(h, -RP_EINVAL, "annotation %s: %s: expected a text", key,
					 h->config->key(h->ctx, *ret, i));
	}
	return r;
}

/* Returns the value of an annotation; NULL: the pod has none. */
static const char *ask_text(const struct enhancement *e, enum key key)
{
	return e->texts[2 * key] ? e->texts[2 * key] : e->texts[2 * key + 1];
}

static const char *ask_get(const struct enhancement *e, enum key key)
{
	const struct modhost *h = &e->inst->h;
	for (uint32_t i = 0; e->json && i < h->config->count(h->ctx, e->json); i++)
		if (!strcmp(h->config->key(h->ctx, e->json, i), key_name(key)))
			return h->config->text(h->ctx, h->config->item(h->ctx, e->json, i), "");
	const char *text = ask_text(e, key);
	return text ? text : plan_default(h, e->inst->plan, key_name(key));
}

static bool ask_is(const struct enhancement *e, enum key key, const char *value)
{
	const char *text = ask_get(e, key);
	return text && !strcmp(text, value);
}

static int32_t ask_bad(struct rp_instance *inst, enum key key, const char *value,
		       const char *expected)
{
	return modhost_fail(&inst->h, -RP_EINVAL, "annotation %s: \"%.64s\": expected %s",
			    key_name(key), value, expected);
}

/* Parses a number of at least 0. */
static int32_t read_number(struct rp_instance *inst, enum key key, const char *text, int64_t max,
			   int64_t *ret)
{
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > max) {
		char expected[64];
		(void)snprintf(expected, sizeof expected, "a number of 0 to %lld", (long long)max);
		return ask_bad(inst, key, text, expected);
	}
	*ret = n;
	return 0;
}

static int32_t read_nodes(struct rp_instance *inst, enum key key, const char *text, uint64_t *ret)
{
	struct rp_idset set;
	if (rp_idset_parse(&set, text, NODES_MAX) || rp_ids_empty(rp_ids_of(&set)))
		return ask_bad(inst, key, text, "a list of NUMA nodes");
	*ret = rp_ids_word(rp_ids_of(&set), 0);
	if (*ret & ~inst->plan->node_mask)
		return ask_bad(inst, key, text, "NUMA nodes of this machine");
	return 0;
}

/* Notes a key that pods may set, but that this policy does not support. */
static void look_for(const struct enhancement *e, enum key key, struct ask *a)
{
	uint32_t n = 0;
	while (a->not_followed[n])
		n++;
	if (ask_get(e, key))
		a->not_followed[n] = key_name(key);
}

static int32_t read_memory(struct enhancement *e, struct ask *a)
{
	int32_t r = open_json(e->inst, MEMORY_KEY, ask_text(e, KEY_MEMORY), &e->json);
	if (r)
		return r;
	if (ask_is(e, KEY_NUMA_BINDING, "true"))
		a->flags |= ASK_BOUND;
	if (a->level == LEVEL_DEDICATED && ask_is(e, KEY_NUMA_EXCLUSIVE, "true"))
		a->flags |= ASK_EXCLUSIVE;
	look_for(e, KEY_RSS_OVERUSE, a);
	look_for(e, KEY_OOM_PRIORITY, a);
	return 0;
}

static int32_t read_numa(struct enhancement *e, struct ask *a)
{
	const char *number = ask_get(e, KEY_NUMA_NUMBER), *ids = ask_get(e, KEY_NUMA_IDS);
	int64_t n = 0;
	int32_t r =
		number ? read_number(e->inst, KEY_NUMA_NUMBER, number, e->inst->plan->n_nodes, &n)
		       : 0;
	if (!r && ids)
		r = read_nodes(e->inst, KEY_NUMA_IDS, ids, &a->numa_ids);
	a->numa_number = a->numa_ids ? hints_size(a->numa_ids) : (uint32_t)n;
	return r;
}

static int32_t read_pool(struct enhancement *e, struct ask *a)
{
	const char *pool = ask_get(e, KEY_POOL);
	if (!pool)
		pool = "";
	if (strlen(pool) > POOL_NAME_MAX)
		return ask_bad(e->inst, KEY_POOL, pool, "a shorter name of a pool");
	if (!*pool && a->level == LEVEL_SHARED)
		pool = SHARE_POOL;
	memcpy(a->pool, pool, strlen(pool) + 1);
	return 0;
}

static int32_t read_cpu(struct enhancement *e, struct ask *a)
{
	static const struct {
		enum key key;
		uint32_t flag;
		const char *value;
	} flags[] = {
		{KEY_NUMA_SHARE, ASK_ALONE, "false"},
		{KEY_ALIGN_SOCKET, ASK_ALIGN_SOCKET, "true"},
		{KEY_EVEN, ASK_EVEN, "true"},
		{KEY_PAIRING, ASK_PAIRING, "true"},
	};
	int32_t r = open_json(e->inst, CPU_KEY, ask_text(e, KEY_CPU), &e->json);
	if (r)
		return r;
	for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (ask_is(e, flags[i].key, flags[i].value))
			a->flags |= flags[i].flag;
	a->burst_policy = ask_get(e, KEY_BURST_POLICY);
	const char *percent = ask_get(e, KEY_BURST_PERCENT);
	look_for(e, KEY_SUPPRESSION, a);
	look_for(e, KEY_BURST_THRESHOLD, a);
	a->burst_percent = 100;
	if (percent)
		r = read_number(e->inst, KEY_BURST_PERCENT, percent, BURST_PERCENT_MAX,
				&a->burst_percent);
	if (!r)
		r = read_numa(e, a);
	return r ? r : read_pool(e, a);
}

static int32_t read_level(struct rp_instance *inst, const char *text, struct ask *a)
{
	a->level = LEVEL_SHARED;
	if (!text)
		return 0;
	for (a->level = 0; a->level < N_LEVELS; a->level++)
		if (!strcmp(text, level_names[a->level]))
			return 0;
	inst->counters.refused[REFUSED_LEVEL]++;
	return modhost_fail(&inst->h, -RP_EINVAL,
			    "invalid QoS level \"%.64s\": expected dedicated_cores, shared_cores, "
			    "reclaimed_cores or system_cores",
			    text);
}

static int32_t ask_check(struct rp_instance *inst, const struct ask *a)
{
	if (a->level == LEVEL_DEDICATED && !(a->flags & ASK_BOUND))
		return modhost_fail(&inst->h, -RP_EINVAL,
				    "dedicated_cores need NUMA binding: set numa_binding in the "
				    "annotation " MEMORY_KEY);
	if ((a->flags & ASK_EXCLUSIVE) && (a->flags & (ASK_EVEN | ASK_PAIRING)))
		return modhost_fail(&inst->h, -RP_EINVAL,
				    "numa_exclusive and %s are mutually exclusive",
				    a->flags & ASK_EVEN ? "distribute_evenly_across_numa"
							: "full_pcpus_pairing");
	return 0;
}

int32_t ask_read(struct rp_instance *inst, rp_pod pod, struct ask *ret)
{
	const struct modhost *h = &inst->h;
	struct enhancement e = {.inst = inst};
	*ret = (struct ask){.level = LEVEL_SHARED};
	if (RP_HAS(h->cache, pod_annotations))
		h->cache->pod_annotations(h->ctx, pod, ask_keys, 2 * N_KEYS, e.texts);
	for (uint32_t i = 0; i < 2 * N_KEYS && !RP_HAS(h->cache, pod_annotations); i++)
		e.texts[i] = h->cache->pod_annotation(h->ctx, pod, ask_keys[i]);
	int32_t r = read_level(inst, ask_text(&e, KEY_LEVEL), ret);
	if (r)
		return r;
	r = read_memory(&e, ret);
	if (!r)
		r = read_cpu(&e, ret);
	if (!r)
		r = ask_check(inst, ret);
	const char *wished = ask_text(&e, KEY_BIND_RESULT);
	if (!r && wished && *wished)
		r = read_nodes(inst, KEY_BIND_RESULT, wished, &ret->wished);
	if (r)
		inst->counters.refused[REFUSED_OTHER]++;
	return r;
}

static int32_t read_amount(struct rp_instance *inst, rp_cfg json, const char *key, uint32_t type,
			   int64_t *ret)
{
	const struct modhost *h = &inst->h;
	rp_cfg node = section_get(h, json, key);
	int64_t n = h->config->value(h->ctx, node, type, -1);
	if (node && n < 0)
		return modhost_fail(h, -RP_EINVAL,
				    "annotation " AGGREGATED_KEY
				    ": %s: \"%.64s\": expected a quantity",
				    key, h->config->text(h->ctx, node, ""));
	*ret = node ? n : 0;
	return 0;
}

int32_t ask_aggregated(struct rp_instance *inst, rp_pod pod, int64_t *ret_cpu, int64_t *ret_mem)
{
	rp_cfg json;
	int32_t r =
		open_json(inst, AGGREGATED_KEY,
			  inst->h.cache->pod_annotation(inst->h.ctx, pod, AGGREGATED_KEY), &json);
	*ret_cpu = *ret_mem = 0;
	if (!r)
		r = read_amount(inst, json, "cpu", RP_T_CPU, ret_cpu);
	return r ? r : read_amount(inst, json, "memory", RP_T_BYTES, ret_mem);
}

bool ask_main(const struct rp_instance *inst, rp_pod pod, struct rp_pod_ctr_info *ret)
{
	const struct modhost *h = &inst->h;
	if (!RP_HAS(h->cache, pod_ctr))
		return false;
	const char *name = h->cache->pod_annotation(h->ctx, pod, MAIN_KEY);
	for (uint32_t i = 0;; i++) {
		struct rp_pod_ctr_info c = {.size = sizeof c};
		if (h->cache->pod_ctr(h->ctx, pod, i, &c))
			return false;
		if (name && *name ? strcmp(name, c.name) != 0 : c.kind != RP_POD_CTR_APP)
			continue;
		*ret = c;
		return true;
	}
}

static bool is_debugged(const struct rp_instance *inst, rp_pod pod)
{
	const struct texts *keys = &inst->plan->debug;
	for (uint32_t i = 0; i < keys->n; i++)
		if (inst->h.cache->pod_annotation(inst->h.ctx, pod, keys->list[i]))
			return true;
	return false;
}

/* Returns true if the pod belongs to a DaemonSet and is not at level system_cores. Such pods run on
 * every node and are not pinned. */
static bool is_of_daemon_set(const struct rp_instance *inst, rp_pod pod)
{
	const struct modhost *h = &inst->h;
	struct rp_pod_info info = {.size = sizeof info};
	const char *level = h->cache->pod_annotation(h->ctx, pod, LEVEL_KEY);
	return !h->cache->get_pod(h->ctx, pod, &info) && info.flags & RP_POD_DAEMON_SET &&
	       !(level && !strcmp(level, level_names[LEVEL_SYSTEM]));
}

static const char left_alone[] = "unmanaged";

static bool was_left_alone(const struct rp_instance *inst, rp_pod pod)
{
	const void *data;
	uint32_t size;
	return !inst->h.cache->get_pod_private(inst->h.ctx, pod, &data, &size) &&
	       size == sizeof left_alone && !memcmp(data, left_alone, size);
}

/* Saves with the pod what only the cluster reports, as the cluster may be unavailable after a
 * restart. */
int32_t ask_for_nothing(struct rp_instance *inst, rp_txn txn, rp_pod pod, const char **ret_why)
{
	const struct modhost *h = &inst->h;
	*ret_why = is_debugged(inst, pod) ? "its pod is annotated for debugging: unmanaged" : NULL;
	if (*ret_why)
		return 0;
	bool known = was_left_alone(inst, pod), is = known || is_of_daemon_set(inst, pod);
	*ret_why = is ? "its pod belongs to a DaemonSet: unmanaged" : NULL;
	return is && !known
		       ? h->cache->set_pod_private(h->ctx, txn, pod, left_alone, sizeof left_alone)
		       : 0;
}

/* Returns the memory to count: the request if it is known, else the limit, else 0. */
int64_t ask_memory(int64_t request, int64_t limit)
{
	int64_t mem = request > 0 ? request : limit;
	return mem > 0 ? mem : 0;
}

/* ---- defaults of the configuration ----------------------------------------------------------- */

/* Returns what a value of this key has to be; NULL: the value is valid. */
static const char *ask_wrong(const struct rp_plan *p, enum key key, const char *text)
{
	struct rp_idset set;
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	bool number = !errno && end != text && !*end && n >= 0;
	switch (key) {
	case KEY_NUMA_NUMBER:
		return number && n <= p->n_nodes ? NULL : "a number of NUMA nodes of this machine";
	case KEY_NUMA_IDS:
		return !rp_idset_parse(&set, text, NODES_MAX) && !rp_ids_empty(rp_ids_of(&set)) &&
				       !(rp_ids_word(rp_ids_of(&set), 0) & ~p->node_mask)
			       ? NULL
			       : "a list of NUMA nodes of this machine";
	case KEY_BURST_PERCENT:
		return number && n <= BURST_PERCENT_MAX ? NULL : "a number of 0 to 10000";
	case KEY_POOL:
		return strlen(text) <= POOL_NAME_MAX ? NULL : "a shorter name of a pool";
	case KEY_NUMA_BINDING:
	case KEY_NUMA_EXCLUSIVE:
	case KEY_NUMA_SHARE:
	case KEY_ALIGN_SOCKET:
	case KEY_EVEN:
	case KEY_PAIRING:
		return !strcmp(text, "true") || !strcmp(text, "false") ? NULL : "true or false";
	default:
		return NULL;
	}
}

int32_t ask_check_defaults(const struct modhost *h, const struct rp_plan *p)
{
	for (uint32_t i = 0; i < p->n_defaults; i++) {
		rp_cfg node = h->config->item(h->ctx, p->defaults, i);
		const char *name = h->config->key(h->ctx, p->defaults, i);
		enum key key = KEY_NUMA_NUMBER;
		while (key < N_KEYS && strcmp(name, key_name(key)) != 0)
			key++;
		if (key == N_KEYS)
			return modhost_refuse(h, node,
					      "no key of an enhancement: " MEMORY_KEY
					      " and " CPU_KEY " have keys such as "
					      "numa_binding, cpuset_pool and %s",
					      key_name(KEY_NUMA_NUMBER));
		const char *text = h->config->text(h->ctx, node, "");
		const char *expected = ask_wrong(p, key, text);
		if (expected)
			return modhost_refuse(h, node, "\"%.64s\": expected %s", text, expected);
	}
	return 0;
}
