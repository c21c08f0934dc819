/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what nri-rp-agent reads of the cluster: kubeconfig files, streams of events, objects that
 * configure a node, and which of those objects wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rpd/agent/node.h"
#include "core/nri-rpd/agent/pods.h"
#include "core/lib/kube/token.h"
#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/candidate.h"
#include "core/lib/kube/kubeconfig.h"
#include "core/lib/kube/objects.h"
#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/node.h"
#include "core/nri-rp-agent/watch.h"
#include "core/nri-rp-agent/node_patch.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/str.h"

/* ---- kubeconfig ---- */

#define CLUSTER(server)                                                                            \
	"clusters: [{name: c, cluster: {server: \"" server "\", certificate-authority: "           \
	"ca.pem}}]\n"
#define CONTEXTS                                                                                   \
	"contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}, "                    \
	"{name: y, context: {cluster: c}}]\n"
#define USER(keys) "users: [{name: u, user: {" keys "}}]\n"

static int parse(const char *text, const char *context, struct kubeconfig *k, struct err *err)
{
	*err = (struct err)ERR_INIT;
	return kubeconfig_parse("/etc/k/config", text, strlen(text), context, k, err);
}

static void refused(const char *text, const char *context, const char *why)
{
	struct kubeconfig k;
	struct err err;
	assert_int_equal(parse(text, context, &k, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s: no word of %s", err.text, why);
}

static void test_kubeconfig(void **state)
{
	struct kubeconfig k;
	struct err err;
	assert_int_equal(parse("current-context: x\n" CLUSTER("https://h:1//") CONTEXTS USER(
				       "client-certificate-data: QUJD, client-key: /k, token: t"),
			       NULL, &k, &err),
			 0);
	assert_string_equal(k.server, "https://h:1");
	assert_string_equal(k.ns, "ns");
	assert_string_equal(k.ca.file, "/etc/k/ca.pem");
	assert_string_equal(k.cert.data, "ABC");
	assert_int_equal(k.cert.len, 3);
	assert_string_equal(k.key.file, "/k");
	assert_string_equal(k.token, "t");
	kubeconfig_fini(&k);
	assert_int_equal(parse(CLUSTER("http://h") CONTEXTS, "y", &k, &err), 0);
	assert_null(k.token);
	kubeconfig_fini(&k);
}

static void test_kubeconfig_refused(void **state)
{
	refused(CLUSTER("https://h") CONTEXTS, NULL, "current-context");
	refused(CLUSTER("https://h") CONTEXTS, "z", "no context \"z\"");
	refused(CLUSTER("h:1") CONTEXTS, "y", "https://HOST:PORT");
	refused(CLUSTER("https://h") CONTEXTS, "x", "no user \"u\"");
	refused(CLUSTER("https://h") CONTEXTS USER("exec: {command: c}"), "x", "exec plug-ins");
	refused(CLUSTER("https://h") CONTEXTS USER("auth-provider: {name: c}"), "x",
		"authentication providers");
	refused(CLUSTER("https://h") CONTEXTS USER("client-key-data: \"?\""), "x", "base64");
}

static void test_token(void **state)
{
	char path[] = "/tmp/nri-rp-token-XXXXXX", *token;
	struct kubeconfig k = {.token_file = path};
	struct err err = ERR_INIT;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(kubeconfig_token(&k, &token, &err), -EINVAL);
	assert_int_equal(write(fd, "abc\n", 4), 4);
	assert_int_equal(kubeconfig_token(&k, &token, &err), 0);
	assert_string_equal(token, "abc");
	free(token);
	assert_int_equal(pwrite(fd, "a c\r\nX: y", 9, 0), 9);
	assert_int_equal(kubeconfig_token(&k, &token, &err), -EINVAL);
	(void)close(fd);
	(void)unlink(path);
}

/* ---- events ---- */

static void event(const char *text, int result, enum watch_event kind, const char *version,
		  int error)
{
	struct watch_message m;
	assert_int_equal(watch_parse(text, strlen(text), &m), result);
	if (result)
		return;
	assert_int_equal(m.event, kind);
	assert_int_equal(m.error, error);
	if (version)
		assert_string_equal(m.version, version);
	json_decref(m.object);
}

static void test_events(void **state)
{
	event("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}", 0,
	      WATCH_OBJECT, "7", 0);
	event("{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}", 0,
	      WATCH_GONE, "8", 0);
	event("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}", 0,
	      WATCH_LISTED, "9", 0);
	event("{\"type\":\"ERROR\",\"object\":{\"code\":410}}", 0, WATCH_DENIED, NULL, -ESTALE);
	event("{\"type\":\"ERROR\",\"object\":{\"code\":500}}", 0, WATCH_DENIED, NULL, -EAGAIN);
	event("{\"type\":\"ADDED\",\"object\":{}}", -EBADMSG, 0, NULL, 0);
	event("{\"type\":\"ADDED\",\"object\":[]}", -EBADMSG, 0, NULL, 0);
	event("{\"type\":\"NEW\",\"object\":{}}", -EBADMSG, 0, NULL, 0);
	event("[", -EBADMSG, 0, NULL, 0);
}

static int join(const char *text, size_t n, void *arg)
{
	return buf_add(arg, text, n) || buf_add_str(arg, "|");
}

static void test_lines(void **state)
{
	struct buf partial = BUF_INIT, out = BUF_INIT;
	const struct watch_lines lines = {&partial, join, &out};
	assert_int_equal(watch_feed(&lines, "ab", 2), 0);
	assert_int_equal(watch_feed(&lines, "c\n\nde\nf", 7), 0);
	assert_string_equal(buf_text(&out), "abc|de|");
	char *huge = calloc(1, WATCH_OBJECT_MAX);
	assert_non_null(huge);
	memset(huge, 'x', WATCH_OBJECT_MAX);
	assert_int_equal(watch_feed(&lines, huge, WATCH_OBJECT_MAX), -EMSGSIZE);
	free(huge);
	buf_fini(&partial);
	buf_fini(&out);
}

static void test_backoff(void **state)
{
	struct kube_backoff b = {0};
	for (uint32_t whole = BACKOFF_MIN_MS; whole < BACKOFF_MAX_MS; whole *= 2) {
		uint32_t ms = kube_backoff_next_ms(&b);
		assert_in_range(ms, whole / 2, whole);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(kube_backoff_next_ms(&b), BACKOFF_MAX_MS / 2, BACKOFF_MAX_MS);
}

static void test_backoff_where_denied(void **state)
{
	struct kube_backoff b = {0};
	for (unsigned i = 0, whole = BACKOFF_MIN_MS; i < DENIED_SOON; i++, whole *= 2)
		assert_in_range(kube_backoff_denied_ms(&b), whole / 2, whole);
	assert_int_equal(kube_backoff_denied_ms(&b), DENIED_MS);
	assert_int_equal(kube_backoff_denied_ms(&b), DENIED_MS);
	kube_backoff_reset(&b);
	assert_in_range(kube_backoff_denied_ms(&b), BACKOFF_MIN_MS / 2, BACKOFF_MIN_MS);
}

/* ---- objects ---- */

static struct candidate *make(const char *kind, const char *created, const char *rest,
			      bool config_map)
{
	struct candidate *c;
	struct err err = ERR_INIT;
	char *text =
		str_printf("{\"apiVersion\":\"config.nri/v1alpha1\",\"kind\":\"%s\",\"metadata\":"
			   "{\"name\":\"default\",\"namespace\":\"ns\",\"uid\":\"%s%s\","
			   "\"generation\":3,\"resourceVersion\":\"70\",\"creationTimestamp\":"
			   "\"%s\"},%s}",
			   kind, kind, created, created, rest);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_int_equal(candidate_new(object, config_map, &c, &err), 0);
	json_decref(object);
	free(text);
	return c;
}

static void test_sections(void **state)
{
	struct candidate *c = make("A", "2026", "\"spec\":{\"pinCPU\":true}", false);
	assert_int_equal(c->n_sections, 1);
	assert_string_equal(c->generation, "3");
	assert_non_null(strstr(c->sections[0].text, "\"pinCPU\": true"));
	assert_null(strstr(c->sections[0].text, "resourceVersion"));
	candidate_free(c);
	c = make("", "2026", "\"data\":{\"rp.conf\":\"a: 1\\n\",\"b\":\"c: 1\\n\\nd: 2\"}", true);
	assert_int_equal(c->n_sections, 2);
	assert_string_equal(c->kind, "ConfigMap");
	assert_string_equal(c->generation, "70");
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(c->sections[i].text, str_eq(c->sections[i].name, "b")
								 ? "b:\n c: 1\n \n d: 2\n"
								 : "a: 1\n");
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(c->sections[i].keyed, str_eq(c->sections[i].name, "b"));
	candidate_free(c);
	c = make("", "2026", "\"data\":{\"a\":1}", true);
	assert_non_null(strstr(c->refused, "expected only texts"));
	candidate_free(c);
}

static void test_too_large(void **state)
{
	char *text = malloc(AGENT_CONFIG_MAX + 64);
	assert_non_null(text);
	size_t n = (size_t)sprintf(text, "\"data\":{\"rp.conf\":\"");
	memset(text + n, 'x', AGENT_CONFIG_MAX + 1);
	memcpy(text + n + AGENT_CONFIG_MAX + 1, "\"}", sizeof "\"}");
	struct candidate *c = make("", "2026", text, true);
	assert_non_null(strstr(c->refused, "more than"));
	candidate_free(c);
	free(text);
}

static void test_which_wins(void **state)
{
	struct candidate *older = make("B", "2025", "\"spec\":{}", false);
	struct candidate *newer = make("C", "2026", "\"spec\":{}", false);
	struct candidate *twin = make("A", "2026", "\"spec\":{}", false);
	struct candidate *map = make("", "2027", "\"data\":{}", true);
	const struct candidate *const order[][2] = {
		{newer, older}, {twin, newer}, {older, map}, {map, NULL}};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		assert_ptr_equal(candidate_better(order[i][0], order[i][1]), order[i][0]);
		assert_ptr_equal(candidate_better(order[i][1], order[i][0]), order[i][0]);
	}
	assert_false(candidate_same(older, newer));
	assert_false(candidate_same(older, NULL));
	assert_true(candidate_same(NULL, NULL));
	candidate_free(older);
	candidate_free(newer);
	candidate_free(twin);
	candidate_free(map);
}

/* ---- the Node: as the agent reads it of the server, and the daemon of the agent ---- */

static struct arena *node_arena(void)
{
	struct arena *a = arena_new(4096, 16u << 20);
	assert_non_null(a);
	return a;
}

static int decode(struct arena *a, const Agent__SetNodeRequest *m, const struct node_object **ret)
{
	size_t n = agent__set_node_request__get_packed_size(m);
	uint8_t *packed = arena_alloc(a, n + 1);
	assert_non_null(packed);
	assert_int_equal(agent__set_node_request__pack(m, packed), n);
	return agent_decode_node(a, packed, n, ret);
}

static int send_node(struct arena *a, const char *text, const struct node_object **ret)
{
	Agent__SetNodeRequest m;
	json_t *json = json_loads(text, 0, NULL);
	assert_non_null(json);
	int r = node_message(a, json, &m);
	json_decref(json);
	return r ? r : decode(a, &m, ret);
}

static void is_amount(const struct node_amount *has, const char *name, int64_t amount)
{
	assert_string_equal(has->name, name);
	assert_int_equal(has->amount, amount);
}

static void test_node(void **state)
{
	struct arena *a = node_arena();
	const struct node_object *node;
	assert_int_equal(
		send_node(a,
			  "{\"metadata\": {\"name\": \"n1\", \"uid\": \"u\", \"labels\": {\"z\": "
			  "\"1\", \"a\": \"\"}, \"annotations\": {\"k\": \"v\"}},"
			  "\"spec\": {\"unschedulable\": true, \"taints\": ["
			  "{\"key\": \"t\", \"effect\": \"NoSchedule\"},"
			  "{\"key\": \"t\", \"value\": \"x\", \"effect\": \"NoExecute\"}]},"
			  "\"status\": {\"capacity\": {\"memory\": \"2Ki\", \"cpu\": \"4\", "
			  "\"odd\": \"many\"}, \"allocatable\": {\"cpu\": \"3500m\"}}}",
			  &node),
		0);
	assert_string_equal(node->name, "n1");
	assert_string_equal(node->uid, "u");
	assert_true(node->unschedulable);
	assert_int_equal(node->n_labels, 2);
	assert_string_equal(node->labels[0].key, "a");
	assert_string_equal(node->labels[1].value, "1");
	assert_int_equal(node->n_annotations, 1);
	assert_string_equal(node->annotations[0].value, "v");
	assert_int_equal(node->n_taints, 2);
	assert_string_equal(node->taints[0].value, "x");
	assert_string_equal(node->taints[1].effect, "NoSchedule");
	assert_int_equal(node->n_capacity, 2);
	is_amount(&node->capacity[0], "cpu", 4000);
	is_amount(&node->capacity[1], "memory", 2048);
	assert_int_equal(node->n_allocatable, 1);
	is_amount(&node->allocatable[0], "cpu", 3500);
	arena_free(a);
}

static int send_pod(struct arena *a, const char *text, struct fed_message *ret)
{
	Agent__FedPod pod;
	Agent__FedPod *pods[] = {&pod};
	Agent__SetPodsRequest m = AGENT__SET_PODS_REQUEST__INIT;
	json_t *json = json_loads(text, 0, NULL);
	assert_non_null(json);
	int r = kube_pod(a, json, false, &pod);
	json_decref(json);
	if (r)
		return r;
	m.pods = pods;
	m.n_pods = 1;
	size_t n = agent__set_pods_request__get_packed_size(&m);
	uint8_t *packed = arena_alloc(a, n + 1);
	assert_non_null(packed);
	assert_int_equal(agent__set_pods_request__pack(&m, packed), n);
	return agent_decode_pods(a, packed, n, ret);
}

static void test_pod(void **state)
{
	struct arena *a = node_arena();
	struct fed_message m;
	assert_int_equal(
		send_pod(a,
			 "{\"metadata\": {\"name\": \"web\", \"namespace\": \"d\", \"uid\": \"u\", "
			 "\"ownerReferences\": [{\"kind\": \"Other\"}, {\"kind\": \"DaemonSet\", "
			 "\"controller\": true}]}, \"status\": {\"phase\": \"Failed\"},"
			 "\"spec\": {\"priority\": -7, \"initContainers\": [{\"name\": \"i\"}, "
			 "{\"name\": "
			 "\"s\", \"restartPolicy\": \"Always\"}], \"containers\": [{\"name\": "
			 "\"c\", "
			 "\"resources\": {\"requests\": {\"cpu\": \"1500m\", \"example.com/gpu\": "
			 "2}, "
			 "\"limits\": {\"memory\": \"1Ki\", \"cpu\": 2}}}]}}",
			 &m),
		0);
	const struct fed_pod *pod = &m.pods[0];
	assert_int_equal(m.n_pods, 1);
	assert_string_equal(pod->uid, "u");
	assert_string_equal(pod->owner, "DaemonSet");
	assert_true(pod->ended && pod->priority == -7 && pod->n_ctrs == 3);
	assert_int_equal(pod->ctrs[0].kind, FED_INIT);
	assert_int_equal(pod->ctrs[1].kind, FED_SIDECAR);
	const struct fed_ctr *c = fed_ctr(pod, "c");
	assert_int_equal(c->kind, FED_APP);
	assert_int_equal(c->needs.cpu_request, 1500);
	assert_int_equal(c->needs.cpu_limit, 2000);
	assert_int_equal(c->needs.mem_request, 1024); /* the limit, as the pod has no request */
	assert_int_equal(c->n_extended, 1);
	assert_int_equal(c->extended[0].request, 2);
	assert_int_equal(send_pod(a, "{\"metadata\": {\"name\": \"web\"}}", &m), -EINVAL);
	/* a pod with an invalid container name is left out, and the message remains valid */
	assert_int_equal(
		send_pod(a,
			 "{\"metadata\": {\"name\": \"web\", \"namespace\": \"d\", \"uid\": "
			 "\"u\"}, \"spec\": {\"containers\": [{\"name\": \"a b\"}]}}",
			 &m),
		0);
	assert_true(m.n_pods == 0 && m.n_left_out == 1);
	assert_int_equal(agent_decode_pods(a, (const uint8_t *)"\xff", 1, &m), -EBADMSG);
	arena_free(a);
}

static void test_node_refused(void **state)
{
	struct arena *a = node_arena();
	const struct node_object *node;
	static char name[] = "n1", key[] = "k", value[] = "v", odd[] = "a b";
	Agent__Pair pair = AGENT__PAIR__INIT, *pairs[AGENT_NODE_ITEMS_MAX + 1];
	Agent__SetNodeRequest m = AGENT__SET_NODE_REQUEST__INIT;
	assert_int_equal(send_node(a, "{\"metadata\": {}}", &node), -EINVAL);
	for (size_t i = 0; i <= AGENT_NODE_ITEMS_MAX; i++)
		pairs[i] = &pair;
	pair.key = key;
	pair.value = value;
	m.name = name;
	m.labels = pairs;
	m.n_labels = 1;
	assert_int_equal(decode(a, &m, &node), 0);
	m.n_labels = 2; /* duplicate key */
	assert_int_equal(decode(a, &m, &node), -EINVAL);
	m.n_labels = 1;
	pair.key = odd;
	assert_int_equal(decode(a, &m, &node), -EINVAL);
	m.n_labels = AGENT_NODE_ITEMS_MAX + 1;
	assert_int_equal(decode(a, &m, &node), -E2BIG);
	arena_free(a);
}

/* ---- Node objects of modules ---- */

/* With ' for ", so that it can be read. */
static json_t *loose(const char *text)
{
	char *copy = strdup(text);
	assert_non_null(copy);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	json_t *json = json_loads(copy, 0, NULL);
	free(copy);
	assert_non_null(json);
	return json;
}

/* NULL: there is nothing to be done; foreign: a word of what is said of others. */
static void patches(const char *node, const char *wanted, const char *expected, const char *foreign)
{
	json_t *n = loose(node), *w = loose(wanted), *patch = NULL;
	json_t *e = expected ? loose(expected) : NULL;
	char said[ERR_TEXT_MAX];
	assert_int_equal(wishes_patch(n, w, &patch, said), 0);
	if (patch ? !e || !json_equal(patch, e) : e != NULL)
		fail_msg("%s: %s", node, patch ? json_dumps(patch, 0) : "nothing");
	if (foreign ? !strstr(said, foreign) : *said)
		fail_msg("%s: said \"%s\"", node, said);
	json_decref(n);
	json_decref(w);
	json_decref(e);
	json_decref(patch);
}

#define OWNED "'nri-rp/owned': "
#define NODE(annotations, labels, taints)                                                          \
	"{'metadata': {'resourceVersion': '7', 'annotations': {" annotations                       \
	"}, 'labels': {" labels "}}, 'spec': {'taints': [" taints                                  \
	"]}, 'status': {'capacity': {'x.io/r': '2'}}}"
#define OURS "{'key': 't', 'value': 'v', 'effect': 'NoExecute'}"
#define THEIRS "{'key': 'o', 'effect': 'NoSchedule'}"

static void test_wishes(void **state)
{
	static const char nothing[] = "{}", label[] = "{'labels': {'l': 'v'}}",
			  taint[] = "{'taints': {'t:NoExecute': 'v'}}",
			  resource[] = "{'resources': {'x.io/r': true}}",
			  other[] = "{'resources': {'x.io/s': true}}";
	/* the label is missing, present, changed, no longer wanted */
	patches(NODE("", "", ""), label,
		"{'metadata': {'resourceVersion': '7', 'labels': {'l': 'v'}, 'annotations': {" OWNED
		"'{\\'labels\\':[\\'l\\']}'}}}",
		NULL);
	patches(NODE(OWNED "'{\\'labels\\':[\\'l\\']}'", "'l': 'v'", ""), label, NULL, NULL);
	patches(NODE(OWNED "'{\\'labels\\':[\\'l\\']}'", "'l': 'w'", ""), label,
		"{'metadata': {'resourceVersion': '7', 'labels': {'l': 'v'}}}", NULL);
	patches(NODE(OWNED "'{\\'labels\\':[\\'l\\']}'", "'l': 'v', 'm': ''", ""), nothing,
		"{'metadata': {'resourceVersion': '7', 'labels': {'l': null}, 'annotations': "
		"{" OWNED "null}}}",
		NULL);
	/* another owner's label, with the same value and with another value */
	patches(NODE("", "'l': 'v'", ""), label, NULL, NULL);
	patches(NODE("", "'l': 'w'", ""), label, NULL, "label l");
	/* a record that makes no sense says that nothing is ours */
	patches(NODE(OWNED "'[1'", "'l': 'w'", ""), label, NULL, "label l");
	/* taints are one list */
	patches(NODE("", "", THEIRS), taint,
		"{'metadata': {'resourceVersion': '7', 'annotations': {" OWNED
		"'{\\'taints\\':[\\'t:NoExecute\\']}'}}, 'spec': {'taints': [" THEIRS ", " OURS
		"]}}",
		NULL);
	patches(NODE(OWNED "'{\\'taints\\':[\\'t:NoExecute\\']}'", "", OURS ", " THEIRS), taint,
		NULL, NULL);
	patches(NODE(OWNED "'{\\'taints\\':[\\'t:NoExecute\\']}'", "", OURS ", " THEIRS), nothing,
		"{'metadata': {'resourceVersion': '7', 'annotations': {" OWNED
		"null}}, 'spec': {'taints': [" THEIRS "]}}",
		NULL);
	patches(NODE("", "", "{'key': 't', 'value': 'w', 'effect': 'NoExecute'}"), taint, NULL,
		"taint t:NoExecute");
	/* a resource is noted before it is written, and until it is gone */
	patches(NODE("", "", ""), other,
		"{'metadata': {'resourceVersion': '7', 'annotations': {" OWNED
		"'{\\'resources\\':[\\'x.io/s\\']}'}}}",
		NULL);
	patches(NODE("", "", ""), resource, NULL, "resource x.io/r");
	patches(NODE(OWNED "'{\\'resources\\':[\\'x.io/r\\']}'", "", ""), nothing, NULL, NULL);
	patches(NODE(OWNED "'{\\'resources\\':[\\'x.io/s\\']}'", "", ""), nothing,
		"{'metadata': {'resourceVersion': '7', 'annotations': {" OWNED "null}}}", NULL);
}

/* Names become parts of paths of the API server. */
static void test_names(void **state)
{
	static const char *const bad[] = {"",	 ".",	"..", ".a",  "-a",
					  "a/b", "a?b", "A",  "a b", "a%2e"};
	char longest[KUBE_NAME_MAX + 2];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(kube_name_valid(bad[i], true));
	assert_true(kube_name_valid("node-1.example.com", true));
	assert_false(kube_name_valid("node-1.example.com", false));
	assert_true(kube_name_valid("kube-system", false));
	memset(longest, 'a', sizeof longest);
	longest[KUBE_NAME_MAX + 1] = '\0';
	assert_false(kube_name_valid(longest, true));
	longest[KUBE_NAME_MAX] = '\0';
	assert_true(kube_name_valid(longest, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kubeconfig),
		cmocka_unit_test(test_kubeconfig_refused),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_backoff_where_denied),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_which_wins),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_pod),
		cmocka_unit_test(test_node_refused),
		cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
