/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations read and shown with memory ending at each point: refused with a word, and nothing
 * is lost. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/t_oom_arena.h"

#include "core/lib/conf/documents.h"
#include "core/lib/conf/fragment.h"
#include "core/nri-rpctl/jsonschema.h"
#include "test/unit/t_conf.h"
#include "test/unit/t_oom.h"

static const char main_text[] = "policy: balloons\n"
				"controllers: [rdt, cpu, blkio]\n"
				"modules: {path: [/usr/lib/a, /usr/lib/b]}\n"
				"log: {level: debug, debug: [wire, conf]}\n"
				"instrumentation: {metrics: {enabled: [a], polled: [b, c]}}\n"
				"types: &all\n"
				"  int: 7\n"
				"  items: [{name: a}, {name: b, max: 3}]\n"
				"  options: {x: auto, size: 4}\n"
				"  map: {a: [1, {b: \"c d\"}], e: ~}\n"
				"  deep: {under: {key: true}}\n"
				"  any: {k: [v, w]}\n"
				"bare: *all\n"
				"fold: {RESERVEDRESOURCES: {CPU: 1}, pools: [{maxpods: 3}]}\n"
				"balloons: {reservedResources: {cpu: 750m}}\n";
static const char drop_in_text[] = "---\n"
				   "apiVersion: config.nri/v1alpha1\n"
				   "kind: BalloonsPolicy\n"
				   "metadata: {name: default}\n"
				   "spec:\n"
				   "  reservedResources: {cpu: 1}\n"
				   "  balloonTypes: [{name: one, maxCPUs: 4}]\n"
				   "  instrumentation: {httpEndpoint: \":8891\"}\n"
				   "  agent: {nodeResourceTopology: true}\n"
				   "  log: {debug: [policy]}\n"
				   "---\n"
				   "types: {int: 8}\n";

static char folder[] = "/tmp/t_conf_oom-XXXXXX";
static char path[64];

static void put(const char *name, const char *text)
{
	char full[96];
	(void)snprintf(full, sizeof full, "%s/%s", folder, name);
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static int set_up(void **state)
{
	char dir[96];
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof path, "%s/rp.conf", folder);
	(void)snprintf(dir, sizeof dir, "%s.d", path);
	assert_int_equal(mkdir(dir, 0755), 0);
	put("rp.conf", main_text);
	put("rp.conf.d/10-cr.conf", drop_in_text);
	put("rp.conf.d/20-empty.conf", "# nothing\n");
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"rp.conf.d/20-empty.conf", "rp.conf.d/10-cr.conf",
					    "rp.conf.d", "rp.conf", ""};
	char full[96];
	for (size_t i = 0; i < COUNT(names); i++) {
		(void)snprintf(full, sizeof full, "%s/%s", folder, names[i]);
		assert_int_equal(remove(full), 0);
	}
	forget();
	return 0;
}

static struct conf_errors errs;

/* Loads the files: problems are reported, and a lack of memory is not reported as an error of the
 * text. */
static int load(struct conf **ret)
{
	conf_errors_init(&errs);
	*ret = NULL;
	int r = conf_load(path, &test_schemas, ret, &errs);
	OOM_CHECK((r == 0) == (*ret != NULL));
	OOM_CHECK(r == 0 || (r == -ENOMEM && errs.n_errors > 0 && errs.n_items > 0));
	return r;
}

static int load_and_free(void *arg)
{
	struct conf *conf;
	int r = load(&conf);
	(void)conf_free(conf);
	return r;
}

static void test_load(void **state)
{
	oom_each(load_and_free, NULL);
}

/* Loads a configuration pushed by the agent over a policy that declares a part of a controller's
 * section itself. */
static int load_pushed(void *arg)
{
	struct conf_source sources[] = {
		source_of("rp.conf", arg),
		source_of("agent", "agent: {nodeResourceTopology: false, b: 1, c: 2, d: 3}\n"
				   "log: {level: debug}\n"
				   "types: {int: 3}\n"),
	};
	struct conf *conf = NULL;
	sources[1].pushed = true;
	conf_errors_init(&errs);
	int r = conf_parse(sources, COUNT(sources), &test_schemas, &conf, &errs);
	OOM_CHECK(r == 0 || (r == -ENOMEM && errs.n_errors > 0 && !conf));
	OOM_CHECK(r != 0 || conf_get(conf_root(conf), "own.control.cpu.classes.a"));
	OOM_CHECK(r != 0 || conf_get(conf_root(conf), "types.int"));
	(void)conf_free(conf);
	return r;
}

/* With more and more sections: lists of them grow at some number. */
static void test_pushed(void **state)
{
	static const char text[] =
		"policy: own\nstrict: false\n"
		"agent: {cluster: true, accept: [agent, log, types]}\n"
		"own: {control: {cpu: {classes: {a: {minFreq: 1GHz}}, b: 1}, rdt: {}}}\n";
	static const char *const more[] = {"", "fold: {}\n", "none: {}\n", "bare: {}\n"};
	char whole[sizeof text + 64];
	(void)snprintf(whole, sizeof whole, "%s", text);
	for (size_t i = 0; i < COUNT(more); i++) {
		strcat(whole, more[i]);
		oom_each(load_pushed, whole);
	}
}

static int show(void *arg)
{
	struct buf out = BUF_INIT;
	int r = conf_show(arg, CONF_SHOW_ORIGIN | CONF_SHOW_DEFAULTS, &out);
	OOM_CHECK(r == 0 || r == -ENOMEM);
	buf_fini(&out);
	return r;
}

static void test_show(void **state)
{
	struct conf *conf = NULL;
	assert_int_equal(load(&conf), 0);
	oom_each(show, conf);
	(void)conf_free(conf);
}

static int help(void *arg)
{
	struct buf out = BUF_INIT;
	int r = conf_schema_help(arg, CONF_MDOC, &out);
	OOM_CHECK(r == 0 || r == -ENOMEM);
	buf_fini(&out);
	return r;
}

static int json_schema(void *arg)
{
	struct conf_named_schema named = {"types", arg};
	struct buf out = BUF_INIT;
	int r = conf_json_schema(&named, 1, &out);
	OOM_CHECK(r == 0 || r == -ENOMEM);
	buf_fini(&out);
	return r;
}

static int check_schema(void *arg)
{
	struct err err = ERR_INIT;
	int r = conf_schema_check(arg, &err);
	OOM_CHECK(r == 0 || (r == -ENOMEM && err.text[0]));
	return r;
}

static void test_schemas_shown(void **state)
{
	void *schema = (void *)(uintptr_t)&types_schema;
	oom_each(help, schema);
	oom_each(json_schema, schema);
	oom_each(check_schema, schema);
}

static int read_documents(void *arg)
{
	struct documents d;
	struct err err = ERR_INIT;
	int r = documents_parse("d.yaml", arg, strlen(arg), &d, &err);
	OOM_CHECK(r == 0 || (r == -ENOMEM && err.text[0]));
	if (!r)
		documents_fini(&d);
	return r;
}

static int read_fragment(void *arg)
{
	struct fragment *f = NULL;
	struct err err = ERR_INIT;
	rp_cfg root;
	int r = fragment_parse(arg, &f, &root, &err);
	OOM_CHECK(r == 0 || (r == -ENOMEM && err.text[0] && !f));
	(void)fragment_free(f);
	return r;
}

static void test_other_yaml(void **state)
{
	oom_each(read_documents, (void *)(uintptr_t)drop_in_text);
	oom_each(read_fragment, (void *)(uintptr_t)main_text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),	   cmocka_unit_test(test_pushed),
		cmocka_unit_test(test_show),	   cmocka_unit_test(test_schemas_shown),
		cmocka_unit_test(test_other_yaml),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
