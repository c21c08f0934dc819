/* SPDX-License-Identifier: Apache-2.0 */
/* From requests and limits to what the runtime is told, and back by what nri-rpd makes of it. */
#include "core/nri-rpd/cache/derive.h"
#include "t_sim.h"
#include "core/nri-rp-sim/kubelet.h"

static struct wants wants(const char *spec)
{
	struct wants w = {0};
	struct err err = ERR_INIT;
	_json_ json_t *map = sim_json(spec);
	if (kubelet_wants(map, &w, &err))
		fail_msg("%s: %s", spec, err.text);
	return w;
}

static void amounts(void **state)
{
	static const struct {
		const char *spec;
		struct wants w;
	} table[] = {
		{"{}", {0, 0, 0, 0}},
		{"{\"cpu\": 2}", {2000, 2000, 0, 0}},
		{"{\"cpu\": \"500m/2\", \"memory\": \"1Gi\"}", {500, 2000, 1 << 30, 1 << 30}},
		{"{\"cpu\": \"500m/-\"}", {500, 0, 0, 0}},
		{"{\"cpu\": \"-/2\"}", {2000, 2000, 0, 0}},
		{"{\"memory\": \"/64\"}", {0, 0, 64, 64}},
		{"{\"limits\": {\"cpu\": \"1\"}}", {1000, 1000, 0, 0}},
		{"{\"requests\": {\"cpu\": \"1\"}, \"limits\": {\"cpu\": \"3\", \"memory\": "
		 "\"1k\"}}",
		 {1000, 3000, 1000, 1000}},
	};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct wants w = wants(table[i].spec);
		assert_memory_equal(&w, &table[i].w, sizeof w);
	}
}

static void wrong_amounts(void **state)
{
	static const char *const table[] = {
		"{\"cpu\": \"lots\"}",
		"{\"cpu\": \"1/2/3\"}",
		"{\"cpu\": \"-1\"}",
		"{\"cpu\": []}",
		"{\"memory\": \"1/x\"}",
		"{\"limits\": 3}",
		"{\"limits\": {\"disk\": \"1\"}}",
		"{\"requests\": {\"cpu\": \"x\"}}",
	};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct wants w = {1, 2, 3, 4}, before = w;
		struct err err = ERR_INIT;
		_json_ json_t *map = sim_json(table[i]);
		assert_true(kubelet_wants(map, &w, &err) < 0);
		assert_true(err.text[0]);
		assert_memory_equal(&w, &before, sizeof w);
	}
}

static void classes(void **state)
{
	const struct wants none = {0}, whole = {1000, 1000, 64, 64}, part = {500, 1000, 64, 64},
			   no_memory = {1000, 1000, 0, 0}, only_memory = {0, 0, 64, 0};
	assert_int_equal(kubelet_qos(&none, 1), QOS_BEST_EFFORT);
	assert_int_equal(kubelet_qos(NULL, 0), QOS_BEST_EFFORT);
	assert_int_equal(kubelet_qos(&whole, 1), QOS_GUARANTEED);
	assert_int_equal(kubelet_qos(&part, 1), QOS_BURSTABLE);
	assert_int_equal(kubelet_qos(&no_memory, 1), QOS_BURSTABLE);
	assert_int_equal(kubelet_qos(&only_memory, 1), QOS_BURSTABLE);
	const struct wants mixed[] = {whole, none};
	assert_int_equal(kubelet_qos(mixed, 2), QOS_BURSTABLE);
	const struct wants both[] = {whole, whole};
	assert_int_equal(kubelet_qos(both, 2), QOS_GUARANTEED);
	assert_string_equal(kubelet_qos_name(QOS_BEST_EFFORT), "besteffort");
}

static void numbers(void **state)
{
	static const struct {
		int64_t cpu_request, cpu_limit, shares, quota;
	} table[] = {
		{0, 0, 2, 0},
		{1, 1, 2, 1000},
		{10, 10, 10, 1000},
		{700, 700, 716, 70000},
		{1000, 2000, 1024, 200000},
		{256000, 256000, 262144, 25600000},
		{512000, 512000, 262144, 51200000},
	};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct wants w = {table[i].cpu_request, table[i].cpu_limit, 0, 0};
		assert_int_equal(kubelet_shares(&w), table[i].shares);
		assert_int_equal(kubelet_quota(&w), table[i].quota);
	}
}

static void scores(void **state)
{
	const int64_t gib = 1 << 30;
	const struct wants w = {0, 0, gib, 0}, little = {0, 0, 1, 0}, all = {0, 0, 8 * gib, 0};
	assert_int_equal(kubelet_oom_score_adj(&w, QOS_GUARANTEED, false, 8 * gib), -997);
	assert_int_equal(kubelet_oom_score_adj(&w, QOS_BURSTABLE, true, 8 * gib), -997);
	assert_int_equal(kubelet_oom_score_adj(&w, QOS_BEST_EFFORT, false, 8 * gib), 1000);
	assert_int_equal(kubelet_oom_score_adj(&w, QOS_BURSTABLE, false, 8 * gib), 875);
	assert_int_equal(kubelet_oom_score_adj(&little, QOS_BURSTABLE, false, 8 * gib), 999);
	assert_int_equal(kubelet_oom_score_adj(&all, QOS_BURSTABLE, false, 8 * gib), 3);
	assert_int_equal(kubelet_oom_score_adj(&all, QOS_BURSTABLE, false, 0), 1000);
}

static void cgroups(void **state)
{
	static const struct {
		enum sim_cgroups driver;
		enum sim_runtime runtime;
		enum qos qos;
		const char *parent, *path;
	} table[] = {
		{CGROUPS_SYSTEMD, RUNTIME_CONTAINERD, QOS_GUARANTEED, "kubepods-podu_1.slice",
		 "kubepods-podu_1.slice:cri-containerd:c"},
		{CGROUPS_SYSTEMD, RUNTIME_CRIO, QOS_BURSTABLE, "kubepods-burstable-podu_1.slice",
		 "kubepods-burstable-podu_1.slice:crio:c"},
		{CGROUPS_FS, RUNTIME_CRIO, QOS_BEST_EFFORT, "/kubepods/besteffort/podu-1",
		 "/kubepods/besteffort/podu-1/c"},
		{CGROUPS_FS, RUNTIME_CONTAINERD, QOS_GUARANTEED, "/kubepods/podu-1",
		 "/kubepods/podu-1/c"},
	};
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		char *parent = kubelet_cgroup_parent(table[i].driver, table[i].qos, "u-1");
		char *path = kubelet_cgroups_path(table[i].driver, table[i].runtime, parent, "c");
		assert_string_equal(parent, table[i].parent);
		assert_string_equal(path, table[i].path);
		assert_int_equal(derive_qos(parent),
				 table[i].qos == QOS_GUARANTEED	 ? RP_QOS_GUARANTEED
				 : table[i].qos == QOS_BURSTABLE ? RP_QOS_BURSTABLE
								 : RP_QOS_BEST_EFFORT);
		free(parent);
		free(path);
	}
}

/* Checks that nri-rpd derives the original requests from shares, quotas and scores, without
 * losing a CPU. */
static void there_and_back(void **state)
{
	const int64_t capacity = INT64_C(8) << 30;
	for (int64_t cpus = 1; cpus <= 600; cpus++) {
		struct wants w = {cpus * 1000, cpus * 1000, 1 << 20, 1 << 20};
		struct values v = {.shares = kubelet_shares(&w),
				   .quota = kubelet_quota(&w),
				   .period = KUBELET_PERIOD,
				   .mem_limit = w.memory_limit};
		struct needs n;
		bool estimated;
		derive_needs(RP_QOS_GUARANTEED, &v, -997, (uint64_t)capacity, &n, &estimated);
		assert_int_equal(n.cpu_request, cpus * 1000);
		assert_int_equal(n.cpu_limit, cpus * 1000);
		assert_int_equal(n.mem_request, 1 << 20);
	}
	for (int64_t mib = 16; mib < 8000; mib += 97) {
		struct wants w = {100, 0, mib << 20, 0};
		int64_t adj = kubelet_oom_score_adj(&w, QOS_BURSTABLE, false, capacity);
		int64_t back = derive_mem_request(adj, (uint64_t)capacity);
		assert_true(back <= (mib << 20) && back >= (mib << 20) - capacity / 1000 - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts),	  cmocka_unit_test(wrong_amounts),
		cmocka_unit_test(classes),	  cmocka_unit_test(numbers),
		cmocka_unit_test(scores),	  cmocka_unit_test(cgroups),
		cmocka_unit_test(there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
