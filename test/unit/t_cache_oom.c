/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and containers with memory ending at each point: refused, nothing is lost, and the process
 * goes on. */
#include <stdio.h>
#include <string.h>

#include "test/unit/t_oom_arena.h"

#include "core/nri-rpd/cache/cache.h"
#include "test/unit/t_oom.h"

#define N_CTRS 330u /* enough for a table to grow its buckets */

static int put_one(struct cache *c, const char *id, const char *name)
{
	const struct ctr_desc d = {
		.id = id,
		.pod_id = "p",
		.name = name,
		.cgroups_path = "",
		.state = RP_STATE_CREATING,
		.oom_score_adj = RP_NOT_SET,
		.res = {.amounts = CPU_AMOUNTS_NONE},
	};
	struct ctr *ctr;
	int r = cache_put_ctr(c, &d, &ctr, NULL);
	if (r)
		OOM_CHECK(!cache_ctr(c, id));
	return r;
}

static int fill(struct cache *c)
{
	const struct pod_desc d = {.id = "p",
				   .name = "pod",
				   .uid = "u",
				   .ns = "default",
				   .runtime_handler = "",
				   .cgroup_parent = ""};
	struct pod *pod;
	int r = cache_put_pod(c, &d, &pod, NULL);
	OOM_CHECK((r == 0) == (cache_pod(c, "p") != NULL));
	for (unsigned i = 0; !r && i < N_CTRS; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "c%u", i);
		r = put_one(c, id, i == N_CTRS - 1 ? "c0" : id);
		OOM_CHECK(cache_n_ctrs(c) == i + (r == 0));
	}
	OOM_CHECK(!cache_n_ctrs(c) || cache_ctr_by_name(c, "default/pod/c0"));
	return r;
}

static int work(void *arg)
{
	struct cache *c = cache_new(1u << 30);
	if (!c)
		return -ENOMEM;
	int r = fill(c);
	if (cache_pod(c, "p"))
		cache_del_pod(c, cache_pod(c, "p"));
	cache_free(c);
	return r;
}

static void test_each_allocation(void **state)
{
	oom_each(work, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
