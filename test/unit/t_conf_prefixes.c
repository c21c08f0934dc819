/* SPDX-License-Identifier: Apache-2.0 */
/* A site's own names of pods and nodes: the table, names and texts (prefixes.c, fragment.c). */
#include "test/unit/t_conf.h"

#include "core/lib/conf/fragment.h"

#define TABLE "nodeResources: {prefixes: {"

static const struct prefixes *table(const char *rows)
{
	static char text[1024];
	(void)snprintf(text, sizeof text, TABLE "%s}}\n", rows);
	good(text);
	return &core()->annotations.prefixes;
}

static void called(const struct prefixes *p, const char *name, const char *want)
{
	struct site_name buf;
	assert_string_equal(site_name(p, name, &buf), want);
}

static void test_names(void **state)
{
	const struct prefixes *p =
		table("koordinator.sh: a.example, node.koordinator.sh: node.a.example, "
		      "kubernetes.io: b.example");
	called(p, "koordinator.sh/qosClass", "a.example/qosClass");
	called(p, "node.koordinator.sh/reservation", "node.a.example/reservation");
	called(p, "scheduling.koordinator.sh/resource-status",
	       "scheduling.koordinator.sh/resource-status");
	called(p, "kubernetes.io/batch-cpu", "b.example/batch-cpu");
	called(p, "kubernetes.io/mid-memory", "b.example/mid-memory");
	/* Kubernetes' own, others', what only begins or ends alike */
	static const char *const same[] = {
		"kubernetes.io/hostname",  "kubernetes.io/batch-cpus", "a.example/qosClass",
		"koordinator.shop/x",	   "xkoordinator.sh/x",	       "koordinator.sh",
		"mykoordinator.sh/x/y",	   "/koordinator.sh",	       "",
		"beta.kubernetes.io/arch", "koordinator.s/x"};
	for (size_t i = 0; i < COUNT(same); i++)
		called(p, same[i], same[i]);
	called(NULL, "koordinator.sh/qosClass", "koordinator.sh/qosClass");
}

static void test_longest(void **state)
{
	char rows[512], domain[PREFIX_MAX + 2], name[512];
	struct site_name buf;
	memset(domain, 'a', sizeof domain);
	for (size_t i = 63; i < sizeof domain; i += 64)
		domain[i] = '.';
	domain[PREFIX_MAX] = '\0';
	(void)snprintf(rows, sizeof rows, "koordinator.sh: %s", domain);
	const struct prefixes *p = table(rows);
	memset(name, 'n', sizeof name);
	memcpy(name, "koordinator.sh/", strlen("koordinator.sh/"));
	name[sizeof name - 1] = '\0';
	assert_ptr_equal(site_name(p, name, &buf), name); /* too long for anybody's */
	name[strlen("koordinator.sh/") + 254] = '\0';
	assert_int_equal(strlen(site_name(p, name, &buf)), PREFIX_MAX + 1 + 254);
}

static void test_texts(void **state)
{
	_cleanup_(buf_fini) struct buf buf = BUF_INIT;
	const char *text = "{\"r\": {\"kubernetes.io/batch-memory\": \"1\", "
			   "\"kubernetes.io/batch-cpu\": \"kubernetes.io/mid-cpu\", "
			   "\"kubernetes.io/os\": 1}, \"kubernetes.io/batch-cpu\": 2}";
	const struct prefixes *p = table("kubernetes.io: b.example");
	assert_string_equal(site_text(p, text, &buf),
			    "{\"r\": {\"b.example/batch-memory\": \"1\", "
			    "\"b.example/batch-cpu\": \"b.example/mid-cpu\", "
			    "\"kubernetes.io/os\": 1}, \"b.example/batch-cpu\": 2}");
	assert_ptr_equal(site_text(p, "batch-cpu", &buf), "batch-cpu");
	assert_ptr_equal(site_text(NULL, text, &buf), text);
	p = table("koordinator.sh: a.example");
	assert_ptr_equal(site_text(p, text, &buf), text);
}

static void test_within_annotations(void **state)
{
	struct fragment *f;
	rp_cfg root;
	const struct prefixes *p = table("kubernetes.io: b.example");
	assert_int_equal(fragment_parse("{\"l\": [{\"b.example/batch-cpu\": 1, "
					"\"b.example/os\": 2, \"kubernetes.io/mid-cpu\": 3}]}",
					&f, &root, NULL),
			 0);
	fragment_rename(root, p);
	rp_cfg map = conf_item(conf_get(root, "l"), 0);
	assert_string_equal(conf_text(conf_get(map, "kubernetes.io/batch-cpu"), ""), "1");
	assert_string_equal(conf_text(conf_get(map, "b.example/os"), ""), "2");
	assert_null(conf_get(map, "kubernetes.io/mid-cpu"));
	fragment_rename(NULL, p);
	fragment_free(f);
}

static void test_refused(void **state)
{
	static const struct {
		const char *rows, *says;
	} wrong[] = {
		{"koordinator.sh: Example", "koordinator.sh: expected a domain of at most 189"},
		{"koordinator.sh: a..b", "expected a domain"},
		{"koordinator.sh: a.b.", "expected a domain"},
		{"koordinator.sh: -a.b", "expected a domain"},
		{"koordinator.sh: a-.b", "expected a domain"},
		{"koordinator.sh: a/b", "expected a domain"},
		{"koordinator.sh: ''", "expected a domain"},
		{"koordinator.sh: [a.b]", "expected a domain"},
		{"koordinator.sh: ~", "expected a domain"},
		{"koordinator.sh: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234",
		 "expected a domain"},
		{"koordinator.sh: kubernetes.io", "names of kubernetes.io have another meaning"},
		{"node.koordinator.sh: node.k8s.io", "names of k8s.io have another meaning"},
		{"kubernetes.io: node.kubernetes.io", "names of kubernetes.io have"},
		{"koordinator.sh: resource-policy.nri.io", "names of nri.io have"},
		{"koordinator.sh: nri-rp", "names of nri-rp have"},
		{"koordinator.sh: a.b, node.koordinator.sh: a.b",
		 "a.b already replaces koordinator.sh"},
		{"koordinator.sh: node.koordinator.sh",
		 "node.koordinator.sh already replaces node.koordinator.sh"},
		{"kordinator.sh: a.b", "only the prefixes koordinator.sh,"},
		{"a.b: koordinator.sh", "only the prefixes"},
	};
	char text[512];
	for (size_t i = 0; i < COUNT(wrong); i++) {
		(void)snprintf(text, sizeof text, TABLE "%s}}\n", wrong[i].rows);
		(void)parse(text);
		if (last.rc != -EINVAL || !strstr(problems(), wrong[i].says) ||
		    !strstr(problems(), "rp.conf:1:"))
			fail_msg("%s: \"%s\", not \"%s\"", wrong[i].rows, problems(),
				 wrong[i].says);
	}
	(void)parse("nodeResources: {prefixes: [a.b]}\n");
	assert_non_null(strstr(problems(), "expected a map from prefixes"));
}

/* Resources may share a domain with another row, as before there was another for them. */
static void test_shared(void **state)
{
	const struct prefixes *p = table("kubernetes.io: koordinator.sh, koordinator.sh: a.b");
	called(p, "kubernetes.io/batch-cpu", "koordinator.sh/batch-cpu");
	called(p, "koordinator.sh/gpu", "a.b/gpu");
	p = table("kubernetes.io: a.b, koordinator.sh: a.b, node.koordinator.sh: "
		  "node.koordinator.sh");
	called(p, "kubernetes.io/batch-cpu", "a.b/batch-cpu");
	assert_false(p->site[1][0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	cmocka_unit_test(test_longest),
		cmocka_unit_test(test_texts),	cmocka_unit_test(test_within_annotations),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_shared),
	};
	return cmocka_run_group_tests(tests, NULL, forget_last);
}
