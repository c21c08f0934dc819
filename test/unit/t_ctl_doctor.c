/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the doctor's findings, each on a node with one problem, and how other commands show the
 * problem. */
#include "core/nri-rpctl/call.c"
#include "core/lib/term/out.c"

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "t_ctl_fixture.h"

#include "coverage_exit.h"
#include "core/nri-rpd/metrics/health.h"
#include "core/nri-rpd/metrics/server.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/sync.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define STATIC "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}}\n"
#define NONE "policy: none\n"
#define GOOD "policy: good\ngood: {reservedResources: {cpu: 1}}\n"

static struct fixture fx;

static int setup(void **state)
{
	fixture_init(&fx, "modules");
	return 0;
}

static int teardown(void **state)
{
	fixture_fini(&fx);
	return 0;
}

/* With the modules that have a fault each. */
static int setup_faulty(void **state)
{
	fixture_init(&fx, "test/modules");
	return 0;
}

/* The first finding of the check with these words in it. */
static const json_t *find(const json_t *doc, const char *check, const char *words)
{
	const json_t *f;
	size_t i;
	json_array_foreach(doc, i, f) if (str_eq(js(f, "check"), check) &&
					  strstr(js(f, "text"), words)) return f;
	char *text = json_dumps(doc, JSON_INDENT(1));
	fail_msg("no finding of %s with \"%s\" in %s", check, words, text);
	return NULL;
}

static void assert_finding(int exit, const char *check, const char *verdict, const char *words)
{
	json_t *doc = fixture_get(&fx, "Doctor", NULL, exit);
	const json_t *f = find(doc, check, words);
	assert_string_equal(js(f, "verdict"), verdict);
	json_decref(doc);
}

/* ---- the node -------------------------------------------------------------------------------- */

static void test_healthy(void **state)
{
	const json_t *f;
	size_t i;
	tree_put(&fx.tree, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n");
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "web", 1000, NULL, 0), 0);
	json_t *doc = fixture_get(&fx, "Doctor", NULL, CTL_OK);
	json_array_foreach(doc, i, f)
	{
		const char *verdict = js(f, "verdict");
		if (!str_eq(verdict, "ok") && !str_eq(verdict, "note"))
			fail_msg("%s: %s", js(f, "check"), js(f, "text"));
		assert_true(*js(f, "text") != '\0');
	}
	assert_string_equal(js(find(doc, "cgroup", "cgroup v2, driver cgroupfs"), "verdict"), "ok");
	(void)find(doc, "machine", "CPUs that are offline: 8");
	json_decref(doc);
}

static void test_cgroup(void **state)
{
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_finding(CTL_OK, "cgroup", "note", "cgroup file system not found");
	tree_put(&fx.tree, "sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n");
	assert_finding(CTL_OK, "cgroup", "ok", "cgroup v1, driver not yet known");
	tree_put(&fx.tree, "sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
	assert_finding(CTL_DEGRADED, "cgroup", "error", "without the controller cpuset");
}

static void test_kubelet(void **state)
{
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	tree_put(&fx.tree, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"none\"}");
	assert_finding(CTL_OK, "kubelet", "ok", "memory managers are off");
	tree_put(&fx.tree, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"static\"}");
	assert_finding(CTL_DEGRADED, "kubelet", "error", "CPU manager");
	tree_put(&fx.tree, "var/lib/kubelet/memory_manager_state", "{\"policyName\":\"Static\"}");
	assert_finding(CTL_DEGRADED, "kubelet", "error", "memory manager");
}

static void test_kubelet_and_no_policy(void **state)
{
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	tree_put(&fx.tree, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"static\"}");
	assert_finding(CTL_OK, "kubelet", "ok", "memory managers are off");
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static void test_runtime(void **state)
{
	char config[256], path[96];
	struct err err = ERR_INIT;
	(void)snprintf(path, sizeof path, "%s/nri.sock", fx.dir);
	(void)snprintf(config, sizeof config, "policy: none\nruntime: {socket: %s}\n", path);
	fixture_start(&fx, config);
	assert_finding(CTL_DEGRADED, "runtime", "error", "no NRI socket at");
	fixture_write(path, "x");
	assert_finding(CTL_DEGRADED, "runtime", "error", "is not a socket");
	(void)unlink(path);
	int fd = wire_listen_unix(path, 0600, &err);
	assert_true(fd >= 0);
	assert_finding(CTL_DEGRADED, "runtime", "error", "the runtime does not accept the daemon");
	assert_int_equal(chmod(fx.dir, 0777), 0);
	assert_finding(CTL_DEGRADED, "runtime", "warning", "is writable by other users");
	assert_int_equal(chmod(fx.dir, 0700), 0);
	(void)close(fd);
	struct runtime_state *rt = pipeline_runtime(fx.pipeline);
	rt->connected = true;
	rt->disconnects = 3;
	strcpy(rt->last_error, "it closed the door");
	assert_finding(CTL_DEGRADED, "runtime", "error", "has not sent its list of containers yet");
	assert_finding(CTL_DEGRADED, "runtime", "note",
		       "lost 3 times, the last time: it closed the door");
	json_t *doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	assert_string_equal(json_string_value(json_array_get(json_object_get(doc, "reasons"), 0)),
			    "the runtime has not sent its list of containers yet");
	json_decref(doc);
}

static void test_slow_requests(void **state)
{
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	pipeline_runtime(fx.pipeline)->request_timeout_ms = 20;
	request_begin(fx.pipeline, REQ_OTHER);
	(void)usleep(15000);
	reply_sent(fx.pipeline, NULL, false);
	assert_finding(CTL_OK, "requests", "warning", "the runtime's timeout is 20 ms");
}

static void test_unmanaged(void **state)
{
	fixture_start(&fx, STATIC "onPolicyError: unmanaged\n");
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "huge", 64000, NULL, 0), 0);
	assert_finding(CTL_DEGRADED, "requests", "warning", "1 containers were started unmanaged");
}

static void test_updates(void **state)
{
	uint32_t n;
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "batch", 0, NULL, 0), 0);
	fixture_write(fx.config, "policy: static\nstatic: {reservedResources: {cpu: \"cpuset:0\"}, "
				 "availableResources: {cpu: \"cpuset:0-3\"}}\n");
	json_decref(fixture_get(&fx, "Reload", NULL, CTL_OK));
	assert_finding(CTL_OK, "updates", "note", "1 containers are waiting for an update");
	json_t *doc = fixture_get(&fx, "Explain", "batch/c0", CTL_OK);
	assert_true(jb(doc, "update_waits"));
	json_decref(doc);
	assert_non_null(updates_next(fx.pipeline, &n));
	updates_failed(fx.pipeline, false, "no such cgroup");
	json_t *status = fixture_get(&fx, "Status", NULL, CTL_OK);
	assert_true(ji(json_object_get(status, "updates"), "failed") > 0);
	json_decref(status);
	doc = fixture_get(&fx, "Doctor", NULL, CTL_DEGRADED);
	(void)find(doc, "updates", "failed in the runtime");
	json_decref(doc);
}

/* ---- containers ------------------------------------------------------------------------------ */

/* Containers that were there before us and want more than there is. */
static void synchronize_with(unsigned n_ctrs)
{
	struct reply reply;
	request_begin(fx.pipeline, REQ_SYNCHRONIZE);
	sync_begin(fx.pipeline);
	for (unsigned i = 0; i < n_ctrs; i++) {
		char id[32], name[32];
		(void)snprintf(id, sizeof id, "pod-%u", i);
		(void)snprintf(name, sizeof name, "big-%u", i);
		const struct pod_desc pod = {.id = id,
					     .name = name,
					     .uid = id,
					     .ns = "default",
					     .runtime_handler = "",
					     .cgroup_parent = "/kubepods/podx"};
		sync_pod(fx.pipeline, &pod);
	}
	for (unsigned i = 0; i < n_ctrs; i++) {
		char id[32], pod_id[32];
		(void)snprintf(id, sizeof id, "ctr-%u", i);
		(void)snprintf(pod_id, sizeof pod_id, "pod-%u", i);
		const struct ctr_desc ctr = {
			.id = id,
			.pod_id = pod_id,
			.name = "c0",
			.cgroups_path = "/kubepods/podx/ctr",
			.state = RP_STATE_RUNNING,
			.oom_score_adj = -997,
			.res = {.amounts = {64 * 1024, 64 * 100000, 100000, RP_NOT_SET}}};
		sync_ctr(fx.pipeline, &ctr, NULL);
	}
	sync_end(fx.pipeline, &reply);
	reply_sent(fx.pipeline, &reply, false);
}

static void test_degraded(void **state)
{
	fixture_start(&fx, STATIC);
	fixture_connect(&fx);
	synchronize_with(5);
	json_t *doc = fixture_get(&fx, "Doctor", NULL, CTL_DEGRADED);
	(void)find(doc, "containers", "5 containers are not placed as requested");
	(void)find(doc, "containers", "default/big-0/c0: ");
	(void)find(doc, "containers", "and 2 more");
	json_decref(doc);
	doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	assert_int_equal(ji(doc, "degraded_containers"), 5);
	json_decref(doc);
	doc = fixture_get(&fx, "Containers", NULL, CTL_OK);
	assert_true(*js(json_array_get(doc, 0), "degraded") != '\0');
	json_decref(doc);
	doc = fixture_get(&fx, "Pods", NULL, CTL_OK);
	assert_int_equal(ji(json_array_get(doc, 0), "degraded"), 1);
	json_decref(doc);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Processes that end inside a call of the module. */
static void die_in(const char *name, unsigned times)
{
	char path[128], module[RP_NAME_MAX] = "";
	struct err err = ERR_INIT;
	(void)snprintf(path, sizeof path, "%s/breadcrumb", fx.run);
	(void)mkdir(fx.run, 0750);
	(void)snprintf(module, sizeof module, "%s", name);
	for (unsigned i = 0; i < times; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct crumb *c;
			struct note_facts facts;
			char file[PATH_MAX + 64];
			(void)snprintf(file, sizeof file, "%s/%s.so", fx.modules, name);
			int fd = open(file, O_RDONLY | O_CLOEXEC);
			if (crumb_open(path, &c, &err) || note_read(fd, file, &facts, &err))
				_exit(1);
			crumb_seen(c, module, &facts.build_id);
			crumb_enter(c, CRUMB_LOOP, module, CRUMB_ALLOCATE, "default/web/c0");
			crumb_live(c)->cause = CRUMB_DIED;
			crumb_live(c)->cause = CRUMB_DIED; /* as a crash notes it */
			_exit(0);
		}
		int status = -1;
		(void)waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
	}
}

static void test_quarantine(void **state)
{
	die_in("crash", CRUMB_DEATHS);
	fixture_start(&fx, GOOD);
	fixture_connect(&fx);
	json_t *doc = fixture_get(&fx, "Doctor", NULL, CTL_DEGRADED);
	assert_string_equal(js(find(doc, "modules", "module crash crashed 3 times"), "verdict"),
			    "error");
	(void)find(doc, "modules", "died inside module crash, in allocate of default/web/c0");
	json_decref(doc);
	doc = fixture_get(&fx, "Modules", NULL, CTL_OK);
	assert_int_equal(json_array_size(json_object_get(doc, "deaths")), 3);
	const json_t *m;
	size_t i;
	unsigned n_quarantined = 0, n_errors = 0;
	json_array_foreach(json_object_get(doc, "modules"), i, m)
	{
		n_quarantined += jb(m, "quarantined");
		n_errors += *js(m, "error") != '\0';
	}
	assert_int_equal(n_quarantined, 1);
	assert_true(n_errors > 5);
	json_decref(doc);
	doc = fixture_get(&fx, "ModulesClear", "crash", CTL_OK);
	assert_string_equal(js(doc, "cleared"), "crash");
	json_decref(doc);
	assert_finding(CTL_OK, "modules", "warning", "misnamed");
}

static void test_safe_mode(void **state)
{
	struct buf out = BUF_INIT;
	die_in("crash", CRUMB_DEATHS);
	/* The policy that safe mode falls back to is not among the faulty ones. */
	char command[3 * PATH_MAX], from[PATH_MAX];
	strcpy(from, fx.modules);
	(void)snprintf(fx.modules, sizeof fx.modules, "%s/modules", fx.dir);
	(void)snprintf(command, sizeof command,
		       "mkdir %s && cp %.2000s/crash.so %.2000s/../../modules/none.so %s",
		       fx.modules, from, from, fx.modules);
	assert_int_equal(system(command), 0);
	fixture_start(&fx, "policy: crash\n");
	fixture_connect(&fx);
	assert_finding(CTL_DEGRADED, "configuration", "error",
		       "safe mode, policy none instead of crash");
	json_t *doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	assert_true(jb(json_object_get(doc, "policy"), "safe_mode"));
	const char *reason = json_string_value(json_array_get(json_object_get(doc, "reasons"), 0));
	assert_non_null(strstr(reason, "safe mode, "));
	json_decref(doc);
	assert_false(health_check(fx.pipeline, &out));
	assert_non_null(strstr(buf_text(&out), "configuration: safe mode, "));
	buf_fini(&out);
}

static void test_stale(void **state)
{
	char command[3 * PATH_MAX], from[PATH_MAX];
	strcpy(from, fx.modules);
	(void)snprintf(fx.modules, sizeof fx.modules, "%s/modules", fx.dir);
	(void)snprintf(command, sizeof command, "mkdir %.80s && cp %.2000s/good.so %.80s",
		       fx.modules, from, fx.modules);
	assert_int_equal(system(command), 0);
	fixture_start(&fx, GOOD);
	fixture_connect(&fx);
	(void)snprintf(command, sizeof command,
		       "cp %.2000s/rebuilt/good.so %.80s/new && mv %.80s/new %.80s/good.so", from,
		       fx.modules, fx.modules, fx.modules);
	assert_int_equal(system(command), 0);
	assert_finding(CTL_OK, "modules", "warning", "is another build");
	json_t *doc = fixture_get(&fx, "Modules", NULL, CTL_OK);
	const json_t *m = json_array_get(json_object_get(doc, "modules"), 0);
	assert_string_equal(js(m, "stale"), "changed");
	assert_true(jb(m, "in_use"));
	json_decref(doc);
	(void)snprintf(command, sizeof command, "rm %s/good.so", fx.modules);
	assert_int_equal(system(command), 0);
	assert_finding(CTL_DEGRADED, "modules", "error",
		       "a restart could not use the active module good: no module");
	doc = fixture_get(&fx, "Modules", NULL, CTL_OK);
	m = json_array_get(json_object_get(doc, "modules"), 0);
	assert_string_equal(js(m, "name"), "good");
	assert_string_equal(js(m, "stale"), "gone");
	json_decref(doc);
}

static void test_controllers(void **state)
{
	fixture_start(&fx, NONE "controllers: {rdt: relaxed}\n");
	fixture_connect(&fx);
	assert_finding(CTL_DEGRADED, "controllers", "warning", "controller rdt is not running");
	json_t *doc = fixture_get(&fx, "Status", NULL, CTL_DEGRADED);
	const json_t *c = json_array_get(json_object_get(doc, "controllers"), 0);
	assert_string_equal(js(c, "name"), "rdt");
	assert_false(jb(c, "running"));
	assert_true(*js(c, "error") != '\0');
	json_decref(doc);
	struct buf out = BUF_INIT;
	assert_int_equal(metrics_render(fx.pipeline, &out), 0);
	assert_non_null(
		strstr(buf_text(&out),
		       "\nnri_rp_controller_running{controller=\"rdt\",mode=\"relaxed\"} 0\n"));
	buf_fini(&out);
}

/* ---- the store, the socket ------------------------------------------------------------------- */

static void test_store(void **state)
{
	struct buf out = BUF_INIT;
	char path[128];
	assert_int_equal(mkdir(fx.state, 0710), 0);
	(void)snprintf(path, sizeof path, "%s/store.log.new", fx.state);
	assert_int_equal(mkdir(path, 0700), 0); /* where the file is to be */
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_int_equal(fixture_create(&fx, "web", 1000, NULL, 0), 0);
	json_t *doc = fixture_get(&fx, "Doctor", NULL, CTL_DEGRADED);
	assert_string_equal(js(find(doc, "store", "of the saved state failed"), "verdict"),
			    "error");
	(void)find(doc, "store", "a restart may move containers");
	json_decref(doc);
	assert_false(health_check(fx.pipeline, &out));
	assert_non_null(strstr(buf_text(&out), "store: the state cannot be written"));
	buf_fini(&out);
}

static void test_store_reset(void **state)
{
	assert_int_equal(mkdir(fx.state, 0710), 0);
	char path[128];
	(void)snprintf(path, sizeof path, "%s/store.log", fx.state);
	fixture_write(path, "not a store");
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_finding(CTL_OK, "store", "note", "the saved state at start: damaged");
}

static void test_socket_folder(void **state)
{
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	assert_finding(CTL_OK, "control socket", "ok", "1 of 32 clients");
	assert_int_equal(chmod(fx.run, 0777), 0);
	assert_finding(CTL_OK, "control socket", "warning", "is writable by other users");
}

static void test_machine_notes(void **state)
{
	/* A node list with nodes that do not exist. */
	tree_put(&fx.tree, NODE "/has_memory", "0-5\n");
	tree_del(&fx.tree, NODE "/node1/distance");
	fixture_start(&fx, NONE);
	fixture_connect(&fx);
	json_t *doc = fixture_get(&fx, "Topology", NULL, CTL_OK);
	size_t n = json_array_size(json_object_get(doc, "notes"));
	json_decref(doc);
	doc = fixture_get(&fx, "Doctor", NULL, CTL_OK);
	const json_t *f;
	size_t i, n_notes = 0;
	json_array_foreach(doc, i, f) n_notes +=
		str_eq(js(f, "check"), "machine") && str_eq(js(f, "verdict"), "note");
	assert_int_equal(n_notes, n + 1); /* the offline CPU adds a note */
	json_decref(doc);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define TEST_FAULTY(fn) cmocka_unit_test_setup_teardown(fn, setup_faulty, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_healthy),	     TEST(test_cgroup),
		TEST(test_kubelet),	     TEST(test_kubelet_and_no_policy),
		TEST(test_runtime),	     TEST(test_slow_requests),
		TEST(test_unmanaged),	     TEST(test_updates),
		TEST(test_degraded),	     TEST_FAULTY(test_quarantine),
		TEST_FAULTY(test_safe_mode), TEST_FAULTY(test_stale),
		TEST(test_controllers),	     TEST(test_store),
		TEST(test_store_reset),	     TEST(test_socket_folder),
		TEST(test_machine_notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
