/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of pods, and what the kubelet makes of requests and limits: shares of 1024 a CPU, a
 * quota of 100 ms a CPU, QoS and OOM scores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rpd/pipeline/try/manifest.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define MEMORY (UINT64_C(8) << 30)

#define POD(meta, spec) "{apiVersion: v1, kind: Pod, metadata: {" meta "}, spec: {" spec "}}"
#define ONE(resources) POD("name: web", "containers: [{name: app, resources: {" resources "}}]")

static struct arena *arena;
static struct err err;

static int setup(void **state)
{
	arena = arena_new(4096, MANIFEST_ARENA_MAX);
	err = (struct err)ERR_INIT;
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena = arena_free(arena);
	return 0;
}

static struct manifest read_good(const char *text)
{
	struct manifest m;
	int r = manifest_read(arena, "pod.yaml", text, MEMORY, &m, &err);
	if (r)
		fail_msg("%s: %s", text, err.text);
	return m;
}

/* Returns the only pod of the manifest. */
static struct manifest_pod read_pod(const char *text)
{
	struct manifest m = read_good(text);
	assert_int_equal(m.n, 1);
	return m.pods[0];
}

static const struct ctr_desc *first(const char *text)
{
	struct manifest_pod m = read_pod(text);
	assert_int_equal(m.n, 1);
	return &m.ctrs[0].desc;
}

static void refuse(const char *text, int code, const char *why)
{
	struct manifest m;
	assert_int_equal(manifest_read(arena, "pod.yaml", text, MEMORY, &m, &err), code);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, err.text);
}

/* ---- resources ------------------------------------------------------------------------------- */

static void test_guaranteed(void **state)
{
	const struct ctr_desc *d =
		first(ONE("requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2000m, memory: 1024Mi}"));
	assert_int_equal(d->res.shares, 2048);
	assert_int_equal(d->res.quota, 200000);
	assert_int_equal(d->res.period, 100000);
	assert_int_equal(d->res.mem_limit, GIB);
	assert_int_equal(d->oom_score_adj, -997);
	assert_int_equal(d->state, RP_STATE_CREATING);
}

static void test_limits_are_requests(void **state)
{
	struct manifest_pod m = read_pod(ONE("limits: {cpu: 1500m, memory: 64Mi}"));
	assert_int_equal(m.ctrs[0].desc.res.shares, 1536);
	assert_int_equal(m.ctrs[0].desc.oom_score_adj, -997);
	assert_null(strstr(m.pod.cgroup_parent, "burstable"));
	assert_null(strstr(m.pod.cgroup_parent, "besteffort"));
}

static void test_burstable(void **state)
{
	struct manifest_pod m =
		read_pod(ONE("requests: {cpu: 200m, memory: 1Gi}, limits: {cpu: 1}"));
	const struct ctr_desc *d = &m.ctrs[0].desc;
	assert_non_null(strstr(m.pod.cgroup_parent, "burstable"));
	assert_int_equal(d->res.shares, 204);
	assert_int_equal(d->res.quota, 100000);
	assert_int_equal(d->res.mem_limit, RP_NOT_SET);
	assert_int_equal(d->oom_score_adj, 1000 - 1000 / 8);
	/* an amount of one kind for one of two containers is enough */
	m = read_pod(POD("name: web", "containers: [{name: a}, {name: b, resources: {requests: "
				      "{memory: 1Mi}}}]"));
	assert_non_null(strstr(m.pod.cgroup_parent, "burstable"));
	assert_int_equal(m.ctrs[0].desc.res.shares, 2);
	assert_int_equal(m.ctrs[0].desc.oom_score_adj, 999);
	/* all of the memory, and more than that */
	assert_int_equal(first(ONE("requests: {memory: 8Gi}"))->oom_score_adj, 3);
	assert_int_equal(first(ONE("requests: {memory: 80Gi}"))->oom_score_adj, 3);
}

static void test_best_effort(void **state)
{
	struct manifest_pod m = read_pod(ONE(""));
	const struct ctr_desc *d = &m.ctrs[0].desc;
	assert_non_null(strstr(m.pod.cgroup_parent, "besteffort"));
	assert_int_equal(d->res.shares, 2);
	assert_int_equal(d->res.quota, RP_NOT_SET);
	assert_int_equal(d->res.period, RP_NOT_SET);
	assert_int_equal(d->res.mem_limit, RP_NOT_SET);
	assert_int_equal(d->oom_score_adj, 1000);
}

static void test_edges(void **state)
{
	assert_int_equal(first(ONE("requests: {cpu: 1m}"))->res.shares, 2);
	assert_int_equal(first(ONE("requests: {cpu: 300}"))->res.shares, 262144);
	assert_int_equal(first(ONE("requests: {cpu: 1m}, limits: {cpu: 1m}"))->res.quota, 1000);
	/* more CPUs than any machine has: no product of it may overflow */
	assert_int_equal(first(ONE("limits: {cpu: \"9e15\"}"))->res.quota, 819200000);
	assert_int_equal(first(ONE("limits: {memory: 64M}"))->res.mem_limit, 64000000);
	assert_int_equal(first(ONE("limits: {memory: 64Mi}"))->res.mem_limit, 64 * MIB);
	assert_int_equal(first(ONE("limits: {cpu: \"0.5\"}"))->res.shares, 512);
	/* amounts that are none of ours */
	assert_int_equal(first(ONE("limits: {example.com/gpu: 1, hugepages-2Mi: 4Mi}"))->res.shares,
			 2);
}

static void test_critical(void **state)
{
	assert_int_equal(first(POD("name: a", "priorityClassName: system-node-critical, "
					      "containers: [{name: c, resources: {requests: {cpu: "
					      "100m}}}]"))
				 ->oom_score_adj,
			 -997);
	assert_int_equal(first(POD("name: a", "priorityClassName: mine, containers: [{name: c}]"))
				 ->oom_score_adj,
			 1000);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void test_pod(void **state)
{
	struct manifest_pod m = read_pod(
		POD("name: web, namespace: shop, labels: {app: web, tier: front}, "
		    "annotations: {prefer-shared-cpus.resource-policy.nri.io/pod: \"true\"}",
		    "containers: [{name: app}, {name: side}]"));
	assert_string_equal(m.pod.name, "web");
	assert_string_equal(m.pod.ns, "shop");
	assert_int_equal(m.pod.n_labels, 2);
	assert_string_equal(m.pod.labels[1].key, "tier");
	assert_string_equal(m.pod.labels[1].value, "front");
	assert_int_equal(m.pod.n_annotations, 1);
	assert_string_equal(m.pod.annotations[0].key,
			    "prefer-shared-cpus.resource-policy.nri.io/pod");
	assert_string_equal(m.pod.annotations[0].value, "true");
	assert_int_equal(m.n, 2);
	assert_string_equal(m.ctrs[0].desc.name, "app");
	assert_string_equal(m.ctrs[1].desc.name, "side");
	assert_string_not_equal(m.ctrs[0].desc.id, m.ctrs[1].desc.id);
	assert_string_equal(m.ctrs[1].desc.pod_id, m.pod.id);
}

static void test_names_that_are_not_given(void **state)
{
	struct manifest_pod m = read_pod("{spec: {containers: [{name: c}]}}");
	assert_string_equal(m.pod.ns, "default");
	assert_true(*m.pod.name);
	assert_int_equal(m.pod.n_labels, 0);
}

static void test_init_containers(void **state)
{
	struct manifest_pod m = read_pod(
		POD("name: a", "containers: [{name: main}], initContainers: [{name: first}, "
			       "{name: sidecar, restartPolicy: Always}]"));
	assert_int_equal(m.n, 3);
	assert_string_equal(m.ctrs[0].desc.name, "first");
	assert_true(m.ctrs[0].ends);
	assert_string_equal(m.ctrs[1].desc.name, "sidecar");
	assert_false(m.ctrs[1].ends);
	assert_string_equal(m.ctrs[2].desc.name, "main");
	assert_false(m.ctrs[2].ends);
	/* Init containers count for the QoS class of the pod. */
	m = read_pod(POD("name: a", "containers: [{name: main, resources: {limits: {cpu: 1, "
				    "memory: 1Mi}}}], initContainers: [{name: first}]"));
	assert_non_null(strstr(m.pod.cgroup_parent, "burstable"));
}

static void test_templates(void **state)
{
	struct manifest_pod m = read_pod(
		"{kind: Deployment, metadata: {name: shop, namespace: prod}, spec: {replicas: 1, "
		"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: "
		"{limits: {cpu: 1, memory: 1Mi}}}]}}}}");
	assert_string_equal(m.pod.name, "shop");
	assert_string_equal(m.pod.ns, "prod");
	assert_int_equal(m.pod.n_labels, 1);
	assert_int_equal(m.ctrs[0].desc.res.shares, 1024);
}

#define TEMPLATE "template: {spec: {containers: [{name: c}]}}"

static void check_names(const char *text, uint32_t n, const char *first, const char *last)
{
	struct manifest m = read_good(text);
	assert_int_equal(m.n, n);
	assert_int_equal(m.n_ctrs, n);
	assert_string_equal(m.pods[0].pod.name, first);
	assert_string_equal(m.pods[n - 1].pod.name, last);
	for (uint32_t i = 1; i < n; i++)
		assert_string_not_equal(m.pods[i].pod.id, m.pods[i - 1].pod.id);
}

static void test_replicas(void **state)
{
	check_names("{kind: Deployment, metadata: {name: a}, spec: {replicas: 3, " TEMPLATE "}}", 3,
		    "a-0", "a-2");
	check_names("{kind: Deployment, metadata: {name: a}, spec: {" TEMPLATE "}}", 1, "a", "a");
	check_names("{kind: StatefulSet, metadata: {name: a}, spec: {" TEMPLATE "}}", 1, "a-0",
		    "a-0");
	check_names("{kind: DaemonSet, metadata: {name: a}, spec: {replicas: 9, " TEMPLATE "}}", 1,
		    "a", "a");
	check_names(
		"{kind: Job, metadata: {name: a}, spec: {parallelism: 4, completions: 2, " TEMPLATE
		"}}",
		2, "a-0", "a-1");
	check_names("{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {parallelism: "
		    "2, " TEMPLATE "}}}}",
		    2, "a-0", "a-1");
	check_names("{kind: Rollout, metadata: {name: a}, spec: {replicas: 2, " TEMPLATE "}}", 2,
		    "a-0", "a-1");
	check_names("{kind: Pod, metadata: {generateName: a-}, spec: {containers: [{name: c}]}}", 1,
		    "a-x", "a-x");
}

static void test_several(void **state)
{
	struct manifest m = read_good(
		"kind: List\nitems:\n- {kind: Service, metadata: {name: s}}\n"
		"- {kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}\n"
		"---\n---\nkind: Deployment\nmetadata: {name: b}\nspec: {replicas: 2, " TEMPLATE
		"}\n---\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 0, " TEMPLATE
		"}\n");
	assert_int_equal(m.n, 3);
	assert_string_equal(m.pods[0].pod.name, "a");
	assert_string_equal(m.pods[2].pod.name, "b-1");
	assert_string_equal(m.pods[2].owner, "Deployment default/b");
	assert_int_equal(m.pods[2].replica, 2);
	assert_int_equal(m.pods[2].n_replicas, 2);
	assert_int_equal(m.n_notes, 2);
	assert_string_equal(m.notes[0], "Service s has no pods");
	assert_string_equal(m.notes[1], "Deployment d has no replicas");
}

/* Checks that the pod-level resources determine its QoS class, and are the limits of containers
 * that set none. */
static void test_resources_of_the_pod(void **state)
{
	struct manifest_pod m = read_pod(
		POD("name: a", "resources: {limits: {cpu: 2, memory: 1Gi}}, containers: [{name: a, "
			       "resources: {limits: {cpu: 500m}}}, {name: b}]"));
	assert_null(strstr(m.pod.cgroup_parent, "burstable"));
	assert_int_equal(m.ctrs[0].desc.res.quota, 50000);
	assert_int_equal(m.ctrs[0].desc.res.mem_limit, GIB);
	assert_int_equal(m.ctrs[1].desc.res.quota, 200000);
	assert_int_equal(m.ctrs[1].desc.oom_score_adj, -997);
	/* Each container gets half of the request that exceeds the containers' own requests. */
	m = read_pod(POD("name: a", "resources: {requests: {memory: 4Gi}}, containers: [{name: a, "
				    "resources: {requests: {memory: 2Gi}}}, {name: b}]"));
	assert_non_null(strstr(m.pod.cgroup_parent, "burstable"));
	assert_int_equal(m.ctrs[0].desc.oom_score_adj, 1000 - 1000 * 3 / 8);
	assert_int_equal(m.ctrs[1].desc.oom_score_adj, 1000 - 1000 / 8);
	refuse(POD("name: a", "resources: {requests: {cpu: 1}}, containers: [{name: a, resources: "
			      "{requests: {cpu: 2}}}]"),
	       -EINVAL, "its containers request more CPU than the pod's own resources");
	refuse(POD("name: a", "resources: {requests: {cpu: 2}, limits: {cpu: 1}}, containers: "
			      "[{name: a}]"),
	       -EINVAL, "the pod: it requests 2 of cpu");
}

/* ---- invalid manifests ----------------------------------------------------------------------- */

static void test_wrong(void **state)
{
	refuse("", -EINVAL, "it is empty");
	refuse("[1, 2]", -EINVAL, "pod.yaml:1:1");
	refuse("{spec: {containers: [}}", -EINVAL, "pod.yaml:1:");
	refuse("{kind: Pod, metadata: {name: a}}", -EINVAL, "no spec.containers");
	refuse(POD("name: a", "containers: []"), -EINVAL, "no spec.containers");
	refuse(POD("name: a", "containers: [{image: b}]"), -EINVAL, "without a name");
	refuse(ONE("requests: {cpu: many}"), -EINVAL,
	       "container app: resources.requests.cpu: \"many\" is not an amount");
	refuse(ONE("limits: {memory: -1}"), -EINVAL, "resources.limits.memory");
	refuse(POD("name: a", "containers: [{name: a}, {name: b}, {name: a}]"), -EINVAL,
	       "Pod a: two containers are named a");
	refuse(ONE("requests: {cpu: 2}, limits: {cpu: 1500m}"), -EINVAL,
	       "container app: it requests 2 of cpu, which is above its limit of 1500m");
	refuse(ONE("requests: {memory: 2Gi}, limits: {memory: 1Gi}"), -EINVAL,
	       "it requests 2Gi of memory");
	refuse("{kind: Service, metadata: {name: web}}", -EINVAL,
	       "it contains no pod: Service web has no pods");
	refuse("{kind: Job, metadata: {name: a}, spec: {parallelism: lots, template: {spec: "
	       "{containers: [{name: c}]}}}}",
	       -EINVAL, "Job a: spec.parallelism: \"lots\" is not a number of replicas");
}

static void test_too_much(void **state)
{
	static char text[1u << 15];
	char *p = text + sprintf(text, "{spec: {containers: [");
	for (unsigned i = 0; i <= MANIFEST_CTRS_MAX; i++)
		p += sprintf(p, "%s{name: c%u}", i ? ", " : "", i);
	(void)strcpy(p, "]}}");
	refuse(text, -E2BIG, "more than 256 containers");
	struct manifest m = read_good(
		"{kind: Deployment, metadata: {name: a}, spec: {replicas: 1000000, " TEMPLATE "}}");
	assert_int_equal(m.n, MANIFEST_PODS_MAX);
	assert_string_equal(m.notes[0],
			    "Deployment a: only trying the first 256 of 1000000 replicas");
	p = text + sprintf(text, "{kind: Deployment, spec: {replicas: 100, template: {spec: "
				 "{containers: [");
	for (unsigned i = 0; i <= MANIFEST_ALL_CTRS_MAX / 99; i++)
		p += sprintf(p, "%s{name: c%u}", i ? ", " : "", i);
	(void)strcpy(p, "]}}}}");
	refuse(text, -E2BIG, "more than 2048 containers in total");
	refuse("{kind: Deployment, spec: {replicas: 200, " TEMPLATE "}}\n---\n"
	       "{kind: Deployment, spec: {replicas: 100, " TEMPLATE "}}",
	       -E2BIG, "more than 256 pods");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_guaranteed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits_are_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_burstable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_best_effort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_edges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_critical, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pod, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_that_are_not_given, setup, teardown),
		cmocka_unit_test_setup_teardown(test_init_containers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_templates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replicas, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resources_of_the_pod, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_much, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
