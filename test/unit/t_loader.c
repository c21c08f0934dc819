/* SPDX-License-Identifier: Apache-2.0 */
/* The loader, on modules with one fault each (test/modules) and in directories with one fault
 * each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/trial.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define NOBODY 65534

static char modules[PATH_MAX]; /* where the build put them */
static char dir[64], first[80], second[80];
static struct loader *loader;
static struct err last;

static int find_modules(void **state)
{
	ssize_t n = readlink("/proc/self/exe", modules, sizeof modules - 16);
	if (n <= 0)
		return -1;
	modules[n] = '\0';
	strcpy(strrchr(modules, '/'), "/modules");
	return access(modules, R_OK);
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/t_loader-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(first, sizeof first, "%s/first", dir);
	(void)snprintf(second, sizeof second, "%s/second", dir);
	return mkdir(first, 0755) | mkdir(second, 0755);
}

static int teardown(void **state)
{
	char command[128];
	loader = loader_free(loader);
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* Installs a module by rename, as packages do. */
static char *put(const char *to, const char *from, const char *as)
{
	static char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/%s.so", to, as);
	_free_ char *command =
		str_printf("cp %s/%s.so %s.new && mv %s.new %s", modules, from, path, path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(path, 0644), 0);
	return path;
}

static void make_loader(const char *a, const char *b, struct crumb *crumb)
{
	const char *const paths[] = {a, b};
	loader = loader_free(loader);
	if (loader_new(paths, b ? 2 : 1, loader_default_flags(), crumb, &loader, &last) < 0)
		fail_msg("%s", last.text);
}

static struct module *load(const char *name)
{
	struct module *m = NULL;
	last.text[0] = '\0';
	if (loader_open(loader, name, &m, &last) < 0)
		fail_msg("%s", last.text);
	return m;
}

static void refused(const char *name, int code, const char *text)
{
	struct module *m = NULL;
	last.text[0] = '\0';
	int r = loader_open(loader, name, &m, &last);
	if (r != code || !strstr(last.text, text))
		fail_msg("%s: %d, \"%s\"; expected %d, \"%s\"", name, r, last.text, code, text);
	assert_null(m);
	assert_null(loader_get(loader, name));
}

static void not_found(const char *name, int code, const char *text)
{
	char path[PATH_MAX];
	last.text[0] = '\0';
	int r = loader_find(loader, name, path, &last);
	if (r != code || !strstr(last.text, text))
		fail_msg("%s: %d, \"%s\"; expected %d, \"%s\"", name, r, last.text, code, text);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void test_good(void **state)
{
	char *path = put(first, "good", "good");
	make_loader(first, NULL, NULL);
	assert_null(loader_get(loader, "good"));
	struct module *m = load("good");
	assert_string_equal(m->name, "good");
	assert_string_equal(m->version, "1.0");
	assert_string_equal(m->summary, "A good module");
	assert_string_equal(m->licence, "Apache-2.0");
	assert_string_equal(m->path, path);
	assert_int_equal(m->kinds, RP_KIND_POLICY);
	assert_int_equal(m->abi_minor, RP_ABI_MINOR);
	assert_int_equal(m->build_id.size, 20);
	assert_ptr_equal(loader_get(loader, "good"), m);
	assert_ptr_equal(load("good"), m);
	assert_null(m->abi->service(NULL, "nri-rp.no-such-thing/1"));
}

static void test_without_words(void **state)
{
	make_loader(modules, NULL, NULL);
	struct module *m = load("hang");
	assert_string_equal(m->summary, "");
	assert_string_equal(m->licence, "");
}

static void test_other_minors(void **state)
{
	make_loader(modules, NULL, NULL);
	struct module *m = load("longer");
	assert_int_equal(m->abi_minor, 9);
	assert_true(m->abi->size > sizeof(struct rp_module));
	(void)load("old");
	refused("newer", -EPROTONOSUPPORT, "module \"newer\" (");
	assert_non_null(strstr(last.text, "needs a host of ABI 1.999, this host has 1.3"));
}

static void test_refused(void **state)
{
	make_loader(modules, NULL, NULL);
	refused("wrong-major", -EPROTONOSUPPORT,
		"built for ABI 2.0, this host has 1.3; install a build for ABI 1");
	refused("garbage", -ENOEXEC, "is not a module: not an ELF file");
	refused("no-symbol", -ENOEXEC, "does not export its symbol rp_module_1");
	refused("misnamed", -EBADMSG, "declares the name \"other\"; rename the file to other.so");
	refused("undefined", -ELIBBAD, "undefined symbol: no_such_function");
	refused("no-such-module", -ENOENT, "no module \"no-such-module\" in ");
	if (!(loader_default_flags() & LOADER_INSTRUMENTED))
		refused("constructor", -EPERM, "has 1 constructors");
}

static void test_structs(void **state)
{
	static const char *const expected[] = {
		NULL,
		"declares a larger size than it has",
		"is too short",
		"and its note differ in version or kinds",
		"and its note differ in version or kinds",
		"and its note differ in name or version",
		"and its note differ in name or version",
		"lacks create(), destroy() or service()",
		"lacks create(), destroy() or service()",
		"a summary or licence that is not text",
		"a summary or licence that is not text",
	};
	make_loader(modules, NULL, NULL);
	for (unsigned i = 1; i < sizeof expected / sizeof expected[0]; i++) {
		char name[RP_NAME_MAX];
		(void)snprintf(name, sizeof name, "struct-%u", i);
		refused(name, -EBADMSG, expected[i]);
	}
}

/* Checks that a refused file can be repaired without a restart. */
static void test_repaired(void **state)
{
	put(first, "struct-3", "good");
	make_loader(first, NULL, NULL);
	refused("good", -EBADMSG, "declares the name \"struct-3\"");
	put(first, "struct-3", "struct-3");
	refused("struct-3", -EBADMSG, "differ in version or kinds");
	put(first, "good", "good");
	(void)load("good");
}

static void test_replaced(void **state)
{
	char *path = put(first, "good", "good");
	make_loader(first, second, NULL);
	struct module *m = load("good");
	struct build_id id = m->build_id;
	assert_int_equal(module_stale(loader, m), MODULE_FRESH);
	put(first, "good", "good"); /* an identical build in another file */
	assert_int_equal(module_stale(loader, m), MODULE_FRESH);
	put(first, "rebuilt/good", "good");
	assert_int_equal(module_stale(loader, m), MODULE_CHANGED);
	assert_ptr_equal(load("good"), m); /* a restart takes the new one */
	assert_true(build_id_equal(&m->build_id, &id));
	put(first, "garbage", "good");
	assert_int_equal(module_stale(loader, m), MODULE_CHANGED);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(module_stale(loader, m), MODULE_GONE);
	put(second, "good", "good");
	assert_int_equal(module_stale(loader, m), MODULE_CHANGED);
	const char *const paths[] = {second};
	assert_int_equal(loader_set_paths(loader, paths, 1, &last), 0);
	assert_ptr_equal(load("good"), m);
}

/* Checks a second loader that holds the old image: dlopen returns it regardless of the new file. */
static void test_old_image(void **state)
{
	struct loader *other = NULL;
	struct module *m = NULL;
	const char *const paths[] = {first};
	put(first, "good", "good");
	assert_int_equal(loader_new(paths, 1, loader_default_flags(), NULL, &other, &last), 0);
	assert_int_equal(loader_open(other, "good", &m, &last), 0);
	put(first, "rebuilt/good", "good");
	make_loader(first, NULL, NULL);
	refused("good", -ESTALE, "an older build of module file");
	assert_null(loader_free(other));
}

static void test_limits(void **state)
{
	const char *paths[LOADER_PATHS_MAX + 1];
	struct loader *l = NULL;
	for (unsigned i = 0; i <= LOADER_PATHS_MAX; i++)
		paths[i] = first;
	assert_int_equal(loader_new(paths, LOADER_PATHS_MAX + 1, 0, NULL, &l, &last), -E2BIG);
	assert_null(l);
	assert_int_equal(loader_new(paths, LOADER_PATHS_MAX, 0, NULL, &l, &last), 0);
	assert_null(loader_free(l));
	assert_null(loader_free(NULL));
}

/* ---- finding --------------------------------------------------------------------------------- */

static void test_search(void **state)
{
	char path[PATH_MAX], expected[PATH_MAX];
	char *there = put(second, "good", "good");
	char missing[PATH_MAX];
	(void)snprintf(missing, sizeof missing, "%s/missing", dir);
	(void)snprintf(expected, sizeof expected, "%s", there);
	make_loader(missing, second, NULL);
	assert_int_equal(loader_find(loader, "good", path, &last), 0);
	assert_string_equal(path, expected);
	make_loader(first, second, NULL);
	assert_int_equal(loader_find(loader, "good", path, &last), 0);
	assert_string_equal(path, expected);
	there = put(first, "good", "good");
	assert_int_equal(loader_find(loader, "good", path, &last), 0);
	assert_string_equal(path, there);
	not_found("goood", -ENOENT, "; did you mean \"good\"?");
	not_found("x", -ENOENT, "no module \"x\" in ");
	assert_null(strstr(last.text, "did you mean"));
	not_found("../first/good", -EINVAL, "is not a module's name");
	not_found("", -EINVAL, "is not a module's name");
	/* A directory that is a link is resolved to its target. */
	char link[PATH_MAX];
	(void)snprintf(link, sizeof link, "%s/link", dir);
	assert_int_equal(symlink("first", link), 0);
	make_loader(link, NULL, NULL);
	assert_int_equal(loader_find(loader, "good", path, &last), 0);
	assert_string_equal(path, there);
	make_loader(there, NULL, NULL); /* a file for a directory */
	not_found("good", -ENOENT, "no module \"");
	char longest[5000];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	make_loader(longest, NULL, NULL);
	not_found("good", -ENAMETOOLONG, "cannot list modules in");
}

static void test_trust_file(void **state)
{
	char *path = put(first, "good", "good");
	make_loader(first, second, NULL);
	put(second, "good", "good"); /* not used as a fallback */
	path = put(first, "good", "good");
	assert_int_equal(chmod(path, 0664), 0);
	not_found("good", -EPERM, "is writable by other users (chmod go-w)");
	refused("good", -EPERM, "is writable by other users");
	assert_int_equal(chmod(path, 0646), 0);
	not_found("good", -EPERM, "is writable by other users");
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("../second/good.so", path), 0);
	not_found("good", -EPERM, "is a symbolic link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	not_found("good", -EPERM, "is not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	refused("good", -EPERM, "is not a regular file");
}

static void test_trust_dirs(void **state)
{
	char *path = put(first, "good", "good");
	make_loader(first, NULL, NULL);
	assert_int_equal(chmod(first, 0775), 0);
	not_found("good", -EPERM, "is writable by other users");
	assert_non_null(strstr(last.text, first));
	assert_int_equal(chmod(first, 0755), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	not_found("good", -EPERM, "is writable by other users");
	assert_int_equal(chmod(dir, 0700), 0);
	assert_int_equal(loader_find(loader, "good", path, &last), 0);
}

/* Needs other users: as root only. */
static void test_trust_owners(void **state)
{
	char *path = put(first, "good", "good"), found[PATH_MAX];
	if (geteuid() != 0)
		skip();
	make_loader(first, NULL, NULL);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	not_found("good", -EPERM, "is owned by another user (chown root)");
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chown(dir, NOBODY, NOBODY), 0);
	not_found("good", -EPERM, "is owned by another user");
	/* Sticky helps where the directory is root's, as /tmp is. */
	assert_int_equal(chmod(dir, 01777), 0);
	not_found("good", -EPERM, "is owned by another user");
	assert_int_equal(chown(dir, 0, 0), 0);
	assert_int_equal(chmod(dir, 01777), 0);
	assert_int_equal(loader_find(loader, "good", found, &last), 0);
	/* For another user, its own files are as good. */
	pid_t pid = fork();
	if (pid == 0) {
		(void)!chown(path, NOBODY, NOBODY);
		int r = setresuid(NOBODY, NOBODY, NOBODY);
		_exit(r < 0 || loader_find(loader, "good", found, &last) < 0);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- schema ---------------------------------------------------------------------------------- */

static void test_schema(void **state)
{
	make_loader(modules, NULL, NULL);
	struct module *m = load("good");
	const struct rp_schema *s = NULL, *again = NULL;
	assert_int_equal(module_schema(loader, m, &s, &last), 0);
	assert_non_null(s);
	assert_int_equal(s->size, sizeof *s);
	assert_int_equal(s->key_size, sizeof(struct rp_key));
	assert_int_equal(s->flags, RP_SCHEMA_FOLD_CASE);
	assert_string_equal(s->cr_kind, "GoodPolicy");
	assert_int_equal(s->n_keys, 4);
	assert_string_equal(s->keys[0].path, "pinCPU");
	assert_string_equal(s->keys[0].fallback, "true");
	assert_string_equal(s->keys[0].doc, "Pin containers to CPUs.");
	assert_null(s->keys[0].choices);
	assert_int_equal(s->keys[2].flags, RP_KEY_REQUIRED);
	assert_string_equal(s->keys[3].choices, "packed|spread");
	assert_int_equal(module_schema(loader, m, &again, &last), 0);
	assert_ptr_equal(s, again);
}

static void test_schema_kinds(void **state)
{
	const struct rp_schema *s = NULL;
	make_loader(modules, NULL, NULL);
	assert_int_equal(module_schema(loader, load("schema-12"), &s, &last), 0); /* longer rows */
	assert_int_equal(s->n_keys, 2);
	assert_string_equal(s->keys[0].path, "first");
	assert_string_equal(s->keys[1].path, "second");
	assert_int_equal(s->keys[0].max, 9);
	assert_int_equal(s->key_size, sizeof(struct rp_key));
	for (int i = 0; i < 2; i++) {
		s = (const struct rp_schema *)&last;
		/* the module has no schema */
		assert_int_equal(module_schema(loader, load("schema-13"), &s, &last), 0);
		assert_null(s);
	}
}

static void test_schema_faults(void **state)
{
	static const char *const expected[] = {
		NULL,
		"is not static data of the module, or too short",
		"is not static data of the module, or too short",
		"rows of an impossible size",
		"too many rows",
		"rows that are not static data",
		"row 0 of its configuration schema has no path",
		"row 1 of its configuration schema has an unknown type",
		"row 0 of its configuration schema is an enumeration without choices",
		"row 0 of its configuration schema has an empty path",
		"row 0 of its configuration schema has a text that is malformed or too long",
		"a kind of custom resource that is not text",
		NULL,
		NULL,
		"row 1 of its configuration schema needs a newer nri-rpd",
	};
	make_loader(modules, NULL, NULL);
	for (unsigned i = 1; i < sizeof expected / sizeof expected[0]; i++) {
		char name[RP_NAME_MAX];
		const struct rp_schema *s = NULL;
		if (!expected[i])
			continue;
		(void)snprintf(name, sizeof name, "schema-%u", i);
		int r = module_schema(loader, load(name), &s, &last);
		if (r != -EBADMSG || !strstr(last.text, expected[i]))
			fail_msg("%s: %d, \"%s\"; expected \"%s\"", name, r, last.text,
				 expected[i]);
		assert_null(s);
	}
}

/* ---- list ------------------------------------------------------------------------------------ */

struct listing {
	char text[4096];
	unsigned n, stop_at;
};

static int add_item(const struct loader_item *item, void *arg)
{
	struct listing *l = arg;
	size_t at = strlen(l->text);
	(void)snprintf(l->text + at, sizeof l->text - at, "%s:%s%s%s%s%s ", item->name,
		       item->facts ? item->facts->note.version : "-", item->err ? " bad" : "",
		       item->module ? " loaded" : "", item->hidden ? " hidden" : "",
		       item->quarantined ? " quarantined" : "");
	if (item->err)
		assert_string_not_equal(item->err->text, "");
	return ++l->n == l->stop_at ? 42 : 0;
}

static void test_list(void **state)
{
	char missing[PATH_MAX];
	struct listing l = {.n = 0};
	(void)snprintf(missing, sizeof missing, "%s/missing", dir);
	put(first, "crash", "crash");
	put(first, "good", "good");
	put(first, "garbage", "c10");
	put(first, "garbage", "c9");
	put(first, "wrong-major", "wrong-major");
	put(second, "good", "good");
	char *other = put(second, "garbage", "notes");
	*strrchr(other, '.') = '\0'; /* without .so: none of ours */
	(void)close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	put(second, "overlap", "overlap");
	other = put(second, "hang", "hang");
	assert_int_equal(chmod(other, 0666), 0);
	const char *const paths[] = {missing, first, second};
	assert_int_equal(loader_new(paths, 3, loader_default_flags(), NULL, &loader, &last), 0);
	(void)load("good");
	assert_int_equal(loader_list(loader, add_item, &l), 0);
	assert_string_equal(l.text,
			    "c9:- bad c10:- bad crash:1.0 good:1.0 loaded wrong-major:1.0 bad "
			    "good:1.0 hidden hang:- bad notes:- bad overlap:1.0 ");
	l = (struct listing){.stop_at = 2};
	assert_int_equal(loader_list(loader, add_item, &l), 42);
	assert_int_equal(l.n, 2);
}

/* ---- with a crumb ---------------------------------------------------------------------------- */

static void open_crumb(struct crumb **ret)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/breadcrumb", dir);
	if (crumb_open(path, ret, &last) < 0)
		fail_msg("%s", last.text);
}

static void test_quarantine(void **state)
{
	struct crumb *c = NULL;
	put(first, "good", "good");
	for (unsigned i = 0; i < CRUMB_DEATHS; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			open_crumb(&c);
			make_loader(first, NULL, c);
			crumb_enter(c, CRUMB_LOOP, load("good")->name, CRUMB_ALLOCATE, "c1");
			crumb_live(c)->cause = CRUMB_DIED;
			crumb_live(c)->cause = CRUMB_DIED; /* as a crash notes it */
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	open_crumb(&c);
	make_loader(first, NULL, c);
	refused("good", -ECANCELED,
		"module \"good\" is quarantined: the process crashed inside it 3 times within ten "
		"minutes");
	struct listing l = {.n = 0};
	assert_int_equal(loader_list(loader, add_item, &l), 0);
	assert_string_equal(l.text, "good:1.0 bad quarantined ");
	put(first, "rebuilt/good", "good"); /* another build gets another chance */
	struct module *m = load("good");
	const struct rp_schema *s = NULL;
	assert_int_equal(module_schema(loader, m, &s, &last), 0);
	assert_null(crumb_running(crumb_live(c))); /* everything that was entered was left */
	loader = loader_free(loader);
	assert_null(crumb_close(c));
}

static int load_in_child(void *arg, struct buf *out, struct err *err)
{
	struct module *m;
	return loader_open(loader, arg, &m, err);
}

/* Checks that code that runs inside dlopen, despite all checks, is attributed to the module. */
static void test_crumb_around_load(void **state)
{
	struct crumb *c = NULL;
	const char *const paths[] = {modules};
	char name[] = "constructor";
	open_crumb(&c);
	assert_int_equal(loader_new(paths, 1, LOADER_INSTRUMENTED, c, &loader, &last),
			 0); /* lets it through */
	struct trial_spec spec = {.what = "it was loaded",
				  .fn = load_in_child,
				  .arg = name,
				  .limits = TRIAL_LIMITS_DEFAULT,
				  .crumb = c};
	struct trial_result res;
	assert_int_equal(trial_run(&spec, &res, &last), 0);
	assert_string_equal(res.err.text,
			    "module \"constructor\" crashed (SIGABRT) in load while it was loaded");
	trial_result_fini(&res);
	char wrong[] = "wrong-major";
	spec.arg = wrong;
	assert_int_equal(trial_run(&spec, &res, &last), 0);
	assert_int_equal(res.outcome, TRIAL_REFUSED);
	assert_non_null(strstr(res.err.text, "built for ABI 2.0, this host has 1.3"));
	trial_result_fini(&res);
	loader = loader_free(loader);
	assert_null(crumb_close(c));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_good),
		TEST(test_without_words),
		TEST(test_other_minors),
		TEST(test_refused),
		TEST(test_structs),
		TEST(test_repaired),
		TEST(test_replaced),
		TEST(test_old_image),
		TEST(test_limits),
		TEST(test_search),
		TEST(test_trust_file),
		TEST(test_trust_dirs),
		TEST(test_trust_owners),
		TEST(test_schema),
		TEST(test_schema_kinds),
		TEST(test_schema_faults),
		TEST(test_list),
		TEST(test_quarantine),
		TEST(test_crumb_around_load),
	};
	return cmocka_run_group_tests(tests, find_modules, NULL);
}
