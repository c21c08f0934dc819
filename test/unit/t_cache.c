/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, containers, derived values, annotations, packed pairs, values and their differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/derive.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/cache/resources.h"

#define GIB (UINT64_C(1) << 30)

static int setup(void **state)
{
	*state = cache_new(64 * GIB);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	cache_free(*state);
	return 0;
}

static struct pod_desc pod_desc(const char *id, const char *name, const char *parent)
{
	return (struct pod_desc){.id = id,
				 .name = name,
				 .uid = "u",
				 .ns = "default",
				 .runtime_handler = "",
				 .cgroup_parent = parent};
}

static struct ctr_desc ctr_desc(const char *id, const char *pod, const char *name)
{
	return (struct ctr_desc){
		.id = id,
		.pod_id = pod,
		.name = name,
		.cgroups_path = "",
		.state = RP_STATE_CREATING,
		.oom_score_adj = RP_NOT_SET,
		.res = {.amounts = CPU_AMOUNTS_NONE},
	};
}

static struct pod *put_pod(struct cache *c, const char *id, const char *name, const char *parent)
{
	const struct pod_desc d = pod_desc(id, name, parent);
	struct pod *pod;
	assert_int_equal(cache_put_pod(c, &d, &pod, NULL), 0);
	return pod;
}

static struct ctr *put_ctr(struct cache *c, const char *id, const char *pod, const char *name)
{
	const struct ctr_desc d = ctr_desc(id, pod, name);
	struct ctr *ctr;
	assert_int_equal(cache_put_ctr(c, &d, &ctr, NULL), 0);
	return ctr;
}

/* ---- packed pairs ---------------------------------------------------------------------------- */

static void test_kvs_sorts_and_keeps_the_last(void **state)
{
	const struct kv pairs[] = {{"b", "1"}, {"a", "2"}, {"b", "3"}, {"c", ""}};
	struct kvs s;
	char seen[32] = "";
	assert_int_equal(kvs_init(&s, pairs, 4), 0);
	assert_int_equal(s.n, 3);
	KVS_EACH(k, v, &s)
	{
		strcat(seen, k);
		strcat(seen, v);
	}
	assert_string_equal(seen, "a2b3c");
	assert_string_equal(kvs_get(&s, "b"), "3");
	assert_string_equal(kvs_get(&s, "c"), "");
	assert_null(kvs_get(&s, "bb"));
	assert_null(kvs_get(&s, "d"));
	kvs_fini(&s);
	assert_null(kvs_get(&s, "a"));
}

static void test_kvs_leaves_out_what_is_too_long(void **state)
{
	char *value = malloc(KVS_VALUE_MAX + 1);
	struct kvs s;
	memset(value, 'x', KVS_VALUE_MAX);
	value[KVS_VALUE_MAX] = '\0';
	const struct kv pairs[] = {{"long", value}, {"short", "v"}, {value, "k"}};
	assert_int_equal(kvs_init(&s, pairs, 3), 2);
	assert_int_equal(s.n, 1);
	assert_string_equal(kvs_get(&s, "short"), "v");
	kvs_fini(&s);
	struct kv many[16];
	char keys[16][4];
	value[KVS_VALUE_MAX - 1] = '\0';
	for (unsigned i = 0; i < 16; i++) {
		(void)snprintf(keys[i], sizeof keys[i], "%u", i);
		many[i] = (struct kv){keys[i], value};
	}
	assert_true(kvs_init(&s, many, 16) > 0);
	assert_true(s.size <= KVS_TOTAL_MAX);
	kvs_fini(&s);
	assert_int_equal(kvs_init(&s, NULL, 0), 0);
	kvs_fini(&s);
	free(value);
}

/* ---- derived values -------------------------------------------------------------------------- */

static void test_qos_by_cgroup_parent(void **state)
{
	assert_int_equal(derive_qos("/kubepods/burstable/podx"), RP_QOS_BURSTABLE);
	assert_int_equal(derive_qos("kubepods-besteffort-podx.slice"), RP_QOS_BEST_EFFORT);
	assert_int_equal(derive_qos("/kubepods/podx"), RP_QOS_GUARANTEED);
	assert_int_equal(derive_qos("/burstable-nodes/kubepods/podx"), RP_QOS_GUARANTEED);
	assert_int_equal(derive_qos("/burstable/x/kubepods/podx"), RP_QOS_GUARANTEED);
	assert_int_equal(derive_qos("burstable-kubepods-podx.slice"), RP_QOS_GUARANTEED);
	assert_int_equal(derive_qos("/besteffort/kubepods/burstable/podx/"), RP_QOS_BURSTABLE);
	assert_int_equal(derive_qos("/kubepods.slice/kubepods-besteffort.slice/"
				    "kubepods-besteffort-podx.slice"),
			 RP_QOS_BEST_EFFORT);
	assert_int_equal(derive_qos("/kubepods.slice/kubepods-system.slice/"
				    "kubepods-system-burstable.slice/"
				    "kubepods-system-burstable-podx.slice"),
			 RP_QOS_BURSTABLE);
	assert_int_equal(derive_qos("kubepods-system-podx.slice"), RP_QOS_GUARANTEED);
	assert_int_equal(derive_qos("/kubepods/system/besteffort/podx"), RP_QOS_BEST_EFFORT);
	assert_int_equal(derive_qos(""), RP_QOS_GUARANTEED);
}

static void test_shares_and_back(void **state)
{
	assert_int_equal(derive_shares_to_mcpu(2), 0);
	assert_int_equal(derive_shares_to_mcpu(0), 0);
	assert_int_equal(derive_shares_to_mcpu(1024), 1000);
	assert_int_equal(derive_shares_to_mcpu(INT64_MAX), 256000);
	assert_int_equal(derive_mcpu_to_shares(0), 2);
	assert_int_equal(derive_mcpu_to_shares(1), 2);
	assert_int_equal(derive_mcpu_to_shares(700), 716);
	assert_int_equal(derive_mcpu_to_shares(INT64_MAX), 262144);
	for (int64_t m = 3; m < 256000; m++)
		assert_int_equal(derive_shares_to_mcpu(derive_mcpu_to_shares(m)), m);
}

/* The table a naive reading of the kubelet's formula gives: the smallest request with that adj. */
static void test_memory_request_from_oom_score(void **state)
{
	const uint64_t capacity = 1000003;
	int64_t smallest[1001];
	for (unsigned i = 0; i <= 1000; i++)
		smallest[i] = -1;
	for (int64_t request = 0; request <= (int64_t)capacity; request++) {
		int64_t adj = 1000 - 1000 * request / (int64_t)capacity;
		if (smallest[adj] < 0)
			smallest[adj] = request;
	}
	for (int64_t adj = 3; adj <= 999; adj++)
		assert_int_equal(derive_mem_request(adj, capacity), smallest[adj]);
	assert_int_equal(derive_mem_request(2, capacity), 0);
	assert_int_equal(derive_mem_request(1000, capacity), 0);
	assert_int_equal(derive_mem_request(-997, capacity), 0);
	assert_int_equal(derive_mem_request(500, 0), 0);
	assert_int_equal(derive_mem_request(500, UINT64_MAX), 0);
}

static struct needs needs_of(uint32_t qos, int64_t shares, int64_t quota, int64_t period,
			     int64_t limit, int64_t adj)
{
	const struct values v = {.amounts = {shares, quota, period, limit}};
	struct needs n;
	bool estimated;
	derive_needs(qos, &v, adj, 1000 * 1000, &n, &estimated);
	assert_int_equal(estimated, qos == RP_QOS_BURSTABLE && n.mem_request != 0);
	return n;
}

static void test_needs_by_class(void **state)
{
	struct needs n = needs_of(RP_QOS_GUARANTEED, 2048, 200000, 100000, 1 << 20, -997);
	assert_int_equal(n.cpu_request, 2000);
	assert_int_equal(n.cpu_limit, 2000);
	assert_int_equal(n.mem_request, 1 << 20);
	n = needs_of(RP_QOS_BURSTABLE, 512, 150000, 100000, RP_NOT_SET, 900);
	assert_int_equal(n.cpu_request, 500);
	assert_int_equal(n.cpu_limit, 1500);
	assert_int_equal(n.mem_request, 100000);
	n = needs_of(RP_QOS_BURSTABLE, 512, RP_NOT_SET, 100000, 50000, 900);
	assert_int_equal(n.cpu_limit, 0);
	assert_int_equal(n.mem_request, 0); /* the estimate is above the limit: not believed */
	n = needs_of(RP_QOS_BEST_EFFORT, 2, -1, 100000, RP_NOT_SET, 1000);
	assert_int_equal(n.cpu_request | n.cpu_limit | n.mem_request | n.mem_limit, 0);
}

/* ---- annotations ----------------------------------------------------------------------------- */

/* Returns a pod with these annotations. The annotations of a pod never change, so another set needs
 * another pod. */
static struct pod *annotated(struct cache *c, const struct kv *pairs, uint32_t n)
{
	struct pod_desc d = pod_desc("p", "pod", "");
	struct pod *pod = cache_pod(c, "p");
	if (pod)
		cache_del_pod(c, pod);
	d.annotations = pairs;
	d.n_annotations = n;
	assert_int_equal(cache_put_pod(c, &d, &pod, NULL), 0);
	return pod;
}

static void test_annotation_scopes_and_spellings(void **state)
{
	static const struct {
		const char *key;
		uint32_t scope;
	} order[] = {
		{"cpu.preserve.resource-policy.nri.io/container.c", RP_SCOPE_CONTAINER},
		{"resource-policy.nri.io/cpu.preserve/container.c", RP_SCOPE_CONTAINER},
		{"cpu.preserve.cri-resource-manager.intel.com/container.c", RP_SCOPE_CONTAINER},
		{"cri-resource-manager.intel.com/cpu.preserve/container.c", RP_SCOPE_CONTAINER},
		{"cpu.preserve.resource-policy.nri.io/pod", RP_SCOPE_POD},
		{"cri-resource-manager.intel.com/cpu.preserve/pod", RP_SCOPE_POD},
		{"cpu.preserve.resource-policy.nri.io", RP_SCOPE_UNSCOPED},
		{"cri-resource-manager.intel.com/cpu.preserve", RP_SCOPE_UNSCOPED},
	};
	const unsigned n = sizeof order / sizeof *order;
	struct kv pairs[8];
	uint32_t scope;
	for (unsigned i = 0; i < n; i++)
		pairs[i] = (struct kv){order[i].key, order[i].key};
	for (unsigned first = 0; first < n; first++) {
		const struct pod *pod = annotated(*state, pairs + first, n - first);
		assert_string_equal(annotation_effective(pod, "c", "cpu.preserve", &scope),
				    order[first].key);
		assert_int_equal(scope, order[first].scope);
		assert_string_equal(
			annotation_effective(pod, "c", "cpu.preserve.resource-policy.nri.io", NULL),
			order[first].key);
	}
}

static void test_annotation_of_others(void **state)
{
	const struct kv pairs[] = {{"cpu.preserve.resource-policy.nri.io/container.other", "x"},
				   {"cpu.preserve.resource-policy.nri.io/elsewhere", "x"},
				   {"cpu.preserve.resource-policy.nri.iox", "x"},
				   {"xcpu.preserve.resource-policy.nri.io", "x"},
				   {"example.com/key", "y"},
				   {"example.com/key/pod", "z"},
				   {"class.other.nri.io", "y"},
				   {"class.other.nri.io/container.c", "z"}};
	const struct pod *pod = annotated(*state, pairs, 8);
	assert_null(annotation_effective(pod, "c", "cpu.preserve", NULL));
	assert_string_equal(annotation_effective(pod, "c", "example.com/key", NULL), "z");
	assert_string_equal(annotation_effective(pod, "c", "class.other.nri.io", NULL), "z");
	assert_null(annotation_effective(put_pod(*state, "q", "q", ""), "c", "cpu.preserve", NULL));
	pod = annotated(*state, &pairs[4], 2); /* none of our domain */
	assert_string_equal(annotation_effective(pod, "c", "example.com/key", NULL), "z");
	assert_null(annotation_effective(pod, "c", "example.com/kex", NULL));
	assert_null(annotation_effective(pod, "c", "cpu.preserve", NULL));
}

static void test_resources_annotation(void **state)
{
	const struct kv pairs[] = {
		{"noderesource.dev/resources",
		 "{\"containers\": {\"a\": {\"requests\": {\"cpu\": \"500m\", \"memory\": \"1Mi\", "
		 "\"x.io/d\": 2},"
		 "\"limits\": {\"cpu\": 2, \"x.io/e\": \"3\"}}, \"bad\": {\"requests\": {\"cpu\": "
		 "\"-1\"}}},"
		 "\"initContainers\": {\"i\": {\"limits\": {\"cpu\": \"1\"}}}}"}};
	const struct pod *pod = annotated(*state, pairs, 1);
	struct needs n;
	struct err err = ERR_INIT;
	int64_t request, limit;
	bool init;
	assert_int_equal(resources_annotation(pod, "a", &n, &init, NULL), 0);
	assert_int_equal(n.cpu_request, 500);
	assert_int_equal(n.cpu_limit, 2000);
	assert_int_equal(n.mem_request, 1 << 20);
	assert_false(init);
	assert_int_equal(resources_annotation(pod, "i", &n, &init, NULL), 0);
	assert_int_equal(n.cpu_request, 1000);
	assert_true(init);
	assert_int_equal(resources_annotation(pod, "none", &n, &init, NULL), -ENOENT);
	assert_int_equal(resources_annotation(pod, "bad", &n, &init, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cpu of container bad"));
	assert_int_equal(resources_annotation_extended(pod, "a", "x.io/d", &request, &limit), 0);
	assert_int_equal(request, 2);
	assert_int_equal(resources_annotation_extended(pod, "a", "x.io/e", &request, &limit), 0);
	assert_int_equal(request, 3);
	assert_int_equal(limit, 3);
	assert_int_equal(resources_annotation_extended(pod, "a", "none", &request, &limit),
			 -ENOENT);
	assert_int_equal(resources_annotation_extended(pod, "none", "x.io/d", &request, &limit),
			 -ENOENT);
}

static void test_resources_annotation_garbage(void **state)
{
	static const char *const garbage[] = {
		"",
		"[]",
		"{",
		"{\"containers\": 1}",
		"{\"containers\": {\"a\": []}}",
		"{\"containers\": {\"a\": {\"requests\": {\"cpu\": {}}}}}",
		"{\"containers\": {}, \"containers\": {}}"};
	for (unsigned i = 0; i < sizeof garbage / sizeof *garbage; i++) {
		const struct kv pair = {"noderesource.dev/resources", garbage[i]};
		struct needs n;
		int64_t request, limit;
		bool init;
		const struct pod *pod = annotated(*state, &pair, 1);
		assert_true(resources_annotation(pod, "a", &n, &init, NULL) < 0);
		assert_true(resources_annotation_extended(pod, "a", "cpu", &request, &limit) < 0);
	}
}

static void test_annotated_needs_and_flags(void **state)
{
	const struct kv pairs[] = {{"noderesource.dev/resources",
				    "{\"containers\": {\"a\": {\"requests\": {\"cpu\": \"3\"}}}}"},
				   {"cpu.preserve.resource-policy.nri.io", "true"},
				   {"memory.preserve.resource-policy.nri.io/container.a", "yes"}};
	(void)annotated(*state, pairs, 3);
	struct ctr_desc d = ctr_desc("1", "p", "a");
	struct ctr *ctr;
	d.res.shares = 1024;
	assert_int_equal(cache_put_ctr(*state, &d, &ctr, NULL), 0);
	assert_int_equal(ctr->wanted.cpu_request, 3000);
	assert_int_equal(ctr->flags, RP_CTR_PRESERVE_CPU | RP_CTR_EXACT_NEEDS);
	const struct kv broken = {"noderesource.dev/resources", "{"};
	(void)annotated(*state, &broken, 1);
	assert_int_equal(cache_put_ctr(*state, &d, &ctr, NULL), 0);
	assert_int_equal(ctr->wanted.cpu_request, 1000);
	assert_false(ctr->flags & RP_CTR_EXACT_NEEDS);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void test_look_ups_and_removal(void **state)
{
	struct cache *c = *state;
	struct pod *p = put_pod(c, "p1", "web", "/kubepods/burstable/pod1");
	struct ctr *a = put_ctr(c, "aaa1", "p1", "app"), *b = put_ctr(c, "aab2", "p1", "side");
	struct err err = ERR_INIT;
	assert_ptr_equal(cache_pod(c, "p1"), p);
	assert_ptr_equal(cache_ctr(c, "aaa1"), a);
	assert_ptr_equal(cache_ctr_by_name(c, "default/web/app"), a);
	assert_ptr_equal(cache_pod_of(c, p->handle), p);
	assert_ptr_equal(cache_ctr_of(c, b->handle), b);
	assert_null(cache_ctr_of(c, 0));
	assert_null(cache_ctr_of(c, UINT64_MAX));
	assert_ptr_equal(cache_ctr_find(c, "aab", &err), b);
	assert_ptr_equal(cache_ctr_find(c, "web/side", &err), b);
	assert_ptr_equal(cache_ctr_find(c, "side", &err), b);
	assert_ptr_equal(cache_ctr_find(c, "default/web/app", &err), a);
	assert_null(cache_ctr_find(c, "aa", &err));
	assert_non_null(strstr(err.text, "2 containers"));
	assert_null(cache_ctr_find(c, "zzz", &err));
	assert_null(cache_ctr_find(c, "", &err));
	uint64_t stale = a->handle;
	assert_ptr_equal(cache_ctr(c, "aaa1"), a); /* searched last */
	cache_del_ctr(c, a);
	assert_null(cache_ctr_of(c, stale));
	assert_null(cache_ctr(c, "aaa1"));
	assert_null(cache_ctr_by_name(c, "default/web/app"));
	a = put_ctr(c, "aaa9", "p1", "app");
	assert_true(a->handle != stale && (uint32_t)a->handle == (uint32_t)stale);
	assert_null(cache_ctr(c, "aaa1"));
	assert_ptr_equal(cache_ctr(c, "aaa9"), a);
	assert_ptr_equal(cache_pod(c, "p1"), p);
	cache_del_pod(c, p);
	assert_null(cache_pod(c, "p1"));
	assert_int_equal(cache_n_pods(c) + cache_n_ctrs(c), 0);
	assert_null(cache_ctrs(c));
	assert_null(cache_pods(c));
}

/* Sandboxes of a pod are found by its UID, whichever of them is removed. */
static void test_sandboxes_by_uid(void **state)
{
	struct cache *c = *state;
	struct pod *first = put_pod(c, "p1", "web", ""), *second = put_pod(c, "p2", "web", "");
	struct pod *third = put_pod(c, "p3", "web", "");
	assert_ptr_equal(cache_pod_by_uid(c, "u"), first);
	assert_ptr_equal(put_pod(c, "p1", "web", ""), first); /* reported again */
	cache_del_pod(c, cache_pod_by_uid(c, "u"));
	unsigned n = 0;
	for (const struct pod *p = cache_pod_by_uid(c, "u"); p; p = p->uid_next)
		n++;
	assert_int_equal(n, 2);
	cache_del_pod(c, cache_pod_by_uid(c, "u"));
	const struct pod *last = cache_pod_by_uid(c, "u");
	assert_true(last == first || last == second || last == third);
	assert_null(last->uid_next);
	cache_del_pod(c, cache_pod_by_uid(c, "u"));
	assert_null(cache_pod_by_uid(c, "u"));
}

static void test_names_move_to_the_newer(void **state)
{
	struct cache *c = *state;
	(void)put_pod(c, "p1", "web", "");
	struct ctr *old = put_ctr(c, "1", "p1", "app"), *new = put_ctr(c, "2", "p1", "app");
	assert_ptr_equal(cache_ctr_by_name(c, "default/web/app"), new);
	cache_del_ctr(c, old);
	assert_ptr_equal(cache_ctr_by_name(c, "default/web/app"), new);
}

static void test_refresh_keeps_what_is_not_told(void **state)
{
	struct cache *c = *state;
	const struct kv label = {"k", "v"};
	struct pod_desc d = pod_desc("p", "web", "/kubepods/besteffort/p"),
			bare = pod_desc("p", "", "");
	struct pod *pod, *again;
	d.labels = &label;
	d.n_labels = 1;
	assert_int_equal(cache_put_pod(c, &d, &pod, NULL), 0);
	bare.ns = bare.uid = "";
	assert_int_equal(cache_put_pod(c, &bare, &again, NULL), 0);
	assert_ptr_equal(pod, again);
	assert_string_equal(pod->name, "web");
	assert_string_equal(kvs_get(&pod->labels, "k"), "v");
	struct ctr_desc cd = ctr_desc("1", "p", "a");
	struct ctr *ctr;
	cd.created_ns = 5;
	cd.pid = 7;
	cd.labels = &label;
	cd.n_labels = 1;
	assert_int_equal(cache_put_ctr(c, &cd, &ctr, NULL), 0);
	struct ctr_desc later = ctr_desc("1", "p", "a");
	later.cgroups_path = "/x";
	assert_int_equal(cache_put_ctr(c, &later, &ctr, NULL), 0);
	assert_int_equal(ctr->created_ns, 5);
	assert_int_equal(ctr->pid, 7);
	assert_string_equal(ctr->cgroups_path, "/x");
	assert_string_equal(kvs_get(&ctr->labels, "k"), "v");
}

static void test_limits_and_missing_things(void **state)
{
	struct cache *c = *state;
	char long_id[CACHE_ID_MAX + 2];
	struct pod_desc pd = pod_desc("", "x", "");
	struct ctr_desc cd = ctr_desc("1", "nope", "a");
	struct pod *pod;
	struct ctr *ctr;
	struct err err = ERR_INIT;
	memset(long_id, 'i', sizeof long_id - 1);
	long_id[sizeof long_id - 1] = '\0';
	assert_int_equal(cache_put_pod(c, &pd, &pod, &err), -EINVAL);
	const char **fields[] = {&pd.id, &pd.name, &pd.uid, &pd.ns, &pd.runtime_handler};
	for (unsigned i = 0; i < 5; i++) {
		pd = pod_desc("p", "x", "");
		*fields[i] = long_id;
		assert_int_equal(cache_put_pod(c, &pd, &pod, &err), -EINVAL);
		assert_non_null(strstr(err.text, "longer than"));
	}
	assert_int_equal(cache_put_ctr(c, &cd, &ctr, &err), -ENOENT);
	assert_non_null(strstr(err.text, "pod nope"));
	(void)put_pod(c, "p", "p", "");
	cd = ctr_desc("", "p", "a");
	assert_int_equal(cache_put_ctr(c, &cd, &ctr, &err), -EINVAL);
	cd = ctr_desc(long_id, "p", "a");
	assert_int_equal(cache_put_ctr(c, &cd, &ctr, &err), -EINVAL);
	cd = ctr_desc("1", "p", long_id);
	assert_int_equal(cache_put_ctr(c, &cd, &ctr, &err), -EINVAL);
	assert_int_equal(cache_n_ctrs(c), 0);
}

static void test_policy_numbers(void **state)
{
	struct cache *c = *state;
	char name[16];
	uint32_t first = cache_policy_number(c, "static");
	assert_int_equal(cache_policy_number(c, "static"), first);
	assert_string_equal(cache_policy_name(c, first), "static");
	assert_string_equal(cache_policy_name(c, 0), "");
	assert_string_equal(cache_policy_name(c, 99), "");
	for (unsigned i = 0; i < 63; i++) {
		(void)snprintf(name, sizeof name, "p%u", i);
		assert_true(cache_policy_number(c, name) > 0);
	}
	assert_int_equal(cache_policy_number(c, "one too many"), 0);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_values_overlay(void **state)
{
	struct values v = VALUES_NONE;
	struct res_desc res = {.amounts = {100, 0, RP_NOT_SET, 5}, .cpus = "0-3", .mems = ""};
	assert_int_equal(values_overlay(*state, &v, &res, true), 0);
	assert_int_equal(v.shares, 100);
	assert_true(v.quota == RP_NOT_SET);
	assert_string_equal(v.cpus->text, "0-3");
	assert_null(v.mems);
	assert_int_equal(values_overlay(*state, &v, &res, false), 0);
	assert_int_equal(v.quota, 0);
	res.cpus = "zero";
	res.shares = 7;
	assert_int_equal(values_overlay(*state, &v, &res, false), -EINVAL);
	assert_int_equal(v.shares, 7);
	assert_string_equal(v.cpus->text, "0-3");
	values_fini(*state, &v);
	assert_null(v.cpus);
}

static void test_differences_and_acknowledgement(void **state)
{
	struct cache *c = *state;
	struct rp_idset cpus;
	(void)put_pod(c, "p", "p", "");
	struct ctr *ctr = put_ctr(c, "1", "p", "a");
	assert_int_equal(ctr_diff(ctr), 0);
	struct txn *t = txn_begin(c);
	struct decision *d = txn_stage(t, ctr);
	assert_int_equal(rp_idset_parse(&cpus, "2-3", RP_CPUS_MAX), 0);
	txn_put_set(c, &d->cpus, intern_get(cache_sets(c), rp_ids_of(&cpus)));
	txn_put_set(c, &d->mems, intern_get(cache_sets(c), rp_ids_of(&cpus)));
	d->shares = 512;
	d->quota = -1;
	d->period = 100000;
	d->mem_limit = 4096;
	const uint32_t all =
		DIFF_CPUS | DIFF_MEMS | DIFF_SHARES | DIFF_QUOTA | DIFF_PERIOD | DIFF_MEM_LIMIT;
	assert_int_equal(ctr_diff(ctr), all);
	txn_commit(t);
	txn_end(t);
	assert_int_equal(ctr_diff(ctr), all);
	ctr_ack(c, ctr, DIFF_CPUS | DIFF_SHARES);
	assert_int_equal(ctr_diff(ctr), all & ~(DIFF_CPUS | DIFF_SHARES));
	ctr_ack(c, ctr, all);
	assert_int_equal(ctr_diff(ctr), 0);
}

/* Checks that decisions equal to the previous request follow the new request; other decisions
 * belong to the policy. */
static void test_decisions_follow(void **state)
{
	const struct values was = {.amounts = {2048, 200000, 100000, 1 << 20}},
			    now = {.amounts = {1024, 100000, 50000, 2 << 20}},
			    nothing = VALUES_NONE;
	struct decision d = {
		.shares = 2048, .quota = 200000, .period = 100000, .mem_limit = 1 << 20};
	decision_follow(&d, &was, &now);
	assert_int_equal(d.shares, 1024);
	assert_int_equal(d.quota, 100000);
	assert_int_equal(d.period, 50000);
	assert_int_equal(d.mem_limit, 2 << 20);
	/* other values than those asked for, and none at all */
	d = (struct decision){
		.shares = 512, .quota = -1, .period = RP_NOT_SET, .mem_limit = RP_NOT_SET};
	decision_follow(&d, &was, &now);
	assert_int_equal(d.shares, 512);
	assert_int_equal(d.quota, -1);
	assert_int_equal(d.period, RP_NOT_SET);
	assert_int_equal(d.mem_limit, RP_NOT_SET);
	/* no previous request: undecided values remain undecided */
	decision_follow(&d, &nothing, &now);
	assert_int_equal(d.shares, 512);
	assert_int_equal(d.period, RP_NOT_SET);
}

static void test_blobs(void **state)
{
	struct blob *a = blob_str("x"), *b = blob_new("x", 1), *c = blob_new(NULL, 0);
	assert_true(blob_equal(a, b));
	assert_false(blob_equal(a, c));
	assert_false(blob_equal(a, NULL));
	assert_true(blob_equal(NULL, NULL));
	assert_string_equal(blob_text(c), "");
	assert_null(blob_text(NULL));
	assert_null(blob_ref(NULL));
	assert_ptr_equal(blob_ref(a), a);
	blob_unref(a);
	blob_unref(a);
	blob_unref(b);
	blob_unref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kvs_sorts_and_keeps_the_last),
		cmocka_unit_test(test_kvs_leaves_out_what_is_too_long),
		cmocka_unit_test(test_qos_by_cgroup_parent),
		cmocka_unit_test(test_shares_and_back),
		cmocka_unit_test(test_memory_request_from_oom_score),
		cmocka_unit_test(test_needs_by_class),
		cmocka_unit_test_setup_teardown(test_annotation_scopes_and_spellings, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_annotation_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resources_annotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resources_annotation_garbage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_annotated_needs_and_flags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_look_ups_and_removal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sandboxes_by_uid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_move_to_the_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refresh_keeps_what_is_not_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_limits_and_missing_things, setup, teardown),
		cmocka_unit_test_setup_teardown(test_policy_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_overlay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_differences_and_acknowledgement, setup,
						teardown),
		cmocka_unit_test(test_decisions_follow),
		cmocka_unit_test(test_blobs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
