/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the API server does not take: how many wait, and what is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/lib/kube/kubeconfig.h"
#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/report.h"

/* A server address on which no process listens. */
#define CONFIG                                                                                     \
	"current-context: x\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n"   \
	"contexts: [{name: x, context: {cluster: c}}]\n"

static void count_call(void *arg)
{
	++*(unsigned *)arg;
}

static void tell(struct report *r, const char *pod, const char *text)
{
	Agent__ClusterEvent e = AGENT__CLUSTER_EVENT__INIT, *list[] = {&e};
	Agent__TellRequest m = AGENT__TELL_REQUEST__INIT;
	char ns[] = "default", reason[] = "PlacementRefused", name[32], said[32];
	(void)snprintf(name, sizeof name, "%s", pod);
	(void)snprintf(said, sizeof said, "%s", text);
	e.namespace_ = ns;
	e.pod = name;
	e.reason = reason;
	e.text = said;
	e.count = 1;
	m.events = list;
	m.n_events = 1;
	report_tell(r, &m);
}

static void is(const struct report *r, uint32_t waiting, uint64_t lost)
{
	const struct report_counts c = report_counts(r);
	assert_int_equal(c.waiting, waiting);
	assert_int_equal(c.lost, lost);
}

static void test_bound(void **state)
{
	struct kubeconfig config;
	struct err err = ERR_INIT;
	struct loop *loop = loop_new();
	struct kube *kube;
	unsigned n_changed = 0;
	char pod[32];
	assert_non_null(loop);
	assert_int_equal(kubeconfig_parse("/k", CONFIG, strlen(CONFIG), NULL, &config, &err), 0);
	assert_int_equal(kube_new(loop, &config, &kube, &err), 0);
	struct report *r = report_new(kube, "n1", count_call, &n_changed);
	assert_non_null(r);
	for (unsigned i = 0; i < REPORT_MAX; i++) {
		(void)snprintf(pod, sizeof pod, "pod%u", i);
		tell(r, pod, "no room");
	}
	is(r, REPORT_MAX, 0);
	assert_int_equal(n_changed, REPORT_MAX);
	/* once more the same is counted, something else is not; the oldest one goes, but for the
	 * one that is under way */
	tell(r, "pod1", "no room");
	is(r, REPORT_MAX, 0);
	tell(r, "pod1", "no room at all");
	is(r, REPORT_MAX, 1);
	tell(r, "pod1", "no room");
	is(r, REPORT_MAX, 2);
	tell(r, "pod0", "no room");
	is(r, REPORT_MAX, 3);
	is(r, REPORT_MAX, 3);
	report_free(r);
	kube_free(kube);
	loop_free(loop);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
