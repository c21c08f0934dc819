/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which of two sources of pods podlist.c uses: the test plays a kubelet and an agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/nri-rp-bridge/feed.h"
#include "core/nri-rp-bridge/fetch.h"

static struct {
	fetched answer;
	void (*told)(bool connected, void *arg);
	void *arg;
	bool telling;
} fake;

int fetch_new(const struct podlist_config *config, fetched done, void *arg, struct fetch **ret,
	      struct err *err)
{
	fake.answer = done;
	fake.arg = arg;
	*ret = (struct fetch *)&fake;
	return 0;
}

struct fetch *fetch_free(struct fetch *f)
{
	return NULL;
}

bool fetch_may_be_secure(const struct fetch *f)
{
	return false;
}

void fetch_begin(struct fetch *f, bool secure)
{
}

int feed_new(const struct podlist_config *config, struct podlist *p,
	     void (*told)(bool connected, void *arg), struct feed **ret, struct err *err)
{
	fake.told = told;
	*ret = (struct feed *)&fake;
	return 0;
}

struct feed *feed_free(struct feed *f)
{
	return NULL;
}

bool feed_is_telling(const struct feed *f)
{
	return fake.telling;
}

static void changed(void *arg)
{
}

static struct podlist *new_list(struct loop *loop)
{
	struct podlist_config config = {
		.loop = loop, .source = PODS_AUTO, .poll_ms = 30000, .changed = changed};
	struct err err = ERR_INIT;
	struct podlist *p;
	memset(&fake, 0, sizeof fake);
	assert_int_equal(podlist_new(&config, &p, &err), 0);
	return p;
}

static void agent_tells(struct podlist *p, const char *uid)
{
	Agent__FedPod pod;
	agent__fed_pod__init(&pod);
	pod.uid = (char *)uid;
	pod.name = (char *)"told by the agent";
	podlist_take(p, &pod);
}

static void kubelet_answers(const char *uid)
{
	char text[200];
	(void)snprintf(text, sizeof text,
		       "{\"kind\": \"PodList\", \"items\": [{\"metadata\": {\"uid\": \"%s\", "
		       "\"name\": \"listed\", \"namespace\": \"n\"}}]}",
		       uid);
	fake.answer(NULL, text, strlen(text), fake.arg);
}

static void assert_known(const struct podlist *p, const char *uid, const char *name)
{
	const Agent__FedPod *pod = podlist_find(p, uid);
	assert_non_null(pod);
	assert_string_equal(pod->name, name);
	assert_int_equal(podlist_gone_ms(p, uid), 0);
}

/* Checks that the kubelet's answer to a request from before the agent connected, received while the
 * agent sends its pods, neither removes nor replaces pods of the agent. */
static void test_a_kubelets_answer_while_the_agent_tells(void **state)
{
	struct loop *loop = loop_new();
	struct podlist *p = new_list(loop);
	kubelet_answers("a");
	assert_known(p, "a", "listed");
	podlist_begin(p);
	fake.telling = true;
	agent_tells(p, "a");
	agent_tells(p, "b");
	kubelet_answers("c");
	assert_null(podlist_find(p, "c"));
	kubelet_answers("a");
	agent_tells(p, "d");
	fake.telling = false;
	fake.told(true, fake.arg);
	podlist_end(p);
	assert_known(p, "a", "told by the agent");
	assert_known(p, "b", "told by the agent");
	assert_known(p, "d", "told by the agent");
	kubelet_answers("e");
	assert_null(podlist_find(p, "e"));
	podlist_free(p);
	loop_free(loop);
}

/* Checks that an agent which disconnects before the end of its list is ignored: the kubelet's
 * answer is used again. */
static void test_an_agent_that_does_not_come_to_the_end(void **state)
{
	struct loop *loop = loop_new();
	struct podlist *p = new_list(loop);
	podlist_begin(p);
	fake.telling = true;
	agent_tells(p, "a");
	fake.telling = false;
	kubelet_answers("b");
	assert_known(p, "b", "listed");
	assert_true(podlist_gone_ms(p, "a") > 0);
	podlist_free(p);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_kubelets_answer_while_the_agent_tells),
		cmocka_unit_test(test_an_agent_that_does_not_come_to_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
