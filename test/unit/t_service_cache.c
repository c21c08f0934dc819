/* SPDX-License-Identifier: Apache-2.0 */
/* nri-rp.host.cache/1 over a cache with one container that is being created: what 1.3 has added,
 * and on which thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rpd/cache/feed.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/host/crash_marks.h"
#include "core/nri-rpd/host/loader.h"
#include "core/nri-rpd/host/service/services.h"

#define C host_cache_service

struct place {
	struct host_env env;
	struct instance *instance;
	struct ctr *ctr;
	struct txn *txn;
};

static int setup(void **state)
{
	static struct place place;
	static struct instance instance;
	static struct module module = {.name = "inner"};
	const struct pod_desc pod = {.id = "p",
				     .name = "p",
				     .uid = "",
				     .ns = "n",
				     .runtime_handler = "",
				     .cgroup_parent = ""};
	const struct ctr_desc ctr = {.id = "c",
				     .pod_id = "p",
				     .name = "c",
				     .cgroups_path = "",
				     .oom_score_adj = RP_NOT_SET,
				     .res = {.shares = 2048,
					     .quota = 200000,
					     .period = 100000,
					     .mem_limit = RP_NOT_SET}};
	struct pod *made = NULL;
	place = (struct place){.env.cache = cache_new(1 << 30), .instance = &instance};
	instance =
		(struct instance){.env = &place.env, .module = &module, .thread = pthread_self()};
	assert_int_equal(cache_put_pod(place.env.cache, &pod, &made, NULL), 0);
	assert_int_equal(cache_put_ctr(place.env.cache, &ctr, &place.ctr, NULL), 0);
	place.txn = txn_begin(place.env.cache);
	*state = &place;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	txn_end(p->txn);
	p->env.cache = cache_free(p->env.cache);
	return 0;
}

static void test_asked(void **state)
{
	const struct place *p = *state;
	struct rp_ctr_info info = {.size = sizeof info};
	p->ctr->cur.needs.mem_request = 5;
	assert_int_equal(C.memory(p->instance, p->ctr->handle), 5);
	p->ctr->cur.needs.mem_limit = 7;
	assert_int_equal(C.memory(p->instance, p->ctr->handle), 7);
	assert_int_equal(C.memory(p->instance, 0), 0);
	assert_int_equal(C.set_int(p->instance, txn_id(p->txn), p->ctr->handle, RP_F_SHARES, 2), 0);
	assert_int_equal(C.get_ctr(p->instance, p->ctr->handle, &info), 0);
	assert_int_equal(info.asked_shares, 2048);
	assert_int_equal(info.asked_quota, 200000);
	assert_int_equal(info.asked_period, 100000);
}

static void test_arg(void **state)
{
	const struct place *p = *state;
	static const char *const args[] = {"/bin/db", "--quick"};
	const struct ctr_desc desc = {.args = args, .n_args = 2};
	assert_null(C.arg(p->instance, p->ctr->handle, 0));
	p->ctr->desc = &desc;
	assert_string_equal(C.arg(p->instance, p->ctr->handle, 1), "--quick");
	assert_null(C.arg(p->instance, p->ctr->handle, 2));
	assert_null(C.arg(p->instance, p->ctr->handle + 1, 0));
	p->ctr->desc = NULL;
}

static void test_args(void **state)
{
	const struct place *p = *state;
	struct instance *i = p->instance;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	static const char *many[RP_ARGS_MAX + 1];
	static char large[RP_ARGS_BYTES_MAX + 1];
	const char *good[] = {"/bin/db", "--quick"}, *odd[] = {"/bin/db", "\xff"};
	const char *nothing[] = {""}, *one = large;
	for (unsigned k = 0; k < RP_ARGS_MAX + 1; k++)
		many[k] = "a";
	assert_int_equal(C.set_args(i, t, h + 1, good, 2), -RP_ESTALE);
	assert_int_equal(C.set_group(i, t, h + 1, 1), -RP_ESTALE);
	assert_int_equal(C.leave_unpinned(i, t, h + 1), -RP_ESTALE);
	assert_int_equal(C.may_wait(i, t + 1, 1, 1), -RP_ESTALE);
	txn_set_created(p->txn, NULL);
	assert_int_equal(C.set_args(i, t, h, good, 2), -RP_ENOTSUP);
	txn_set_created(p->txn, p->ctr);
	assert_null(txn_extras(p->txn)->args);
	assert_int_equal(C.set_args(i, t, h, good, 0), -RP_EINVAL);
	assert_int_equal(C.set_args(i, t, h, nothing, 1), -RP_EINVAL);
	assert_int_equal(C.set_args(i, t, h, odd, 2), -RP_EINVAL);
	assert_int_equal(C.set_args(i, t, h, many, RP_ARGS_MAX + 1), -RP_E2BIG);
	memset(large, 'a', RP_ARGS_BYTES_MAX);
	assert_int_equal(C.set_args(i, t, h, &one, 1), -RP_E2BIG);
	large[RP_ARGS_BYTES_MAX - 1] = '\0';
	assert_int_equal(C.set_args(i, t, h, &one, 1), 0);
	assert_int_equal(C.set_args(i, t, h, good, 2), 0);
	assert_string_equal(txn_extras(p->txn)->args[1], "--quick");
	assert_int_equal(txn_extras(p->txn)->n_args, 2);
	assert_int_equal(C.set_group(i, t, h, RP_GROUP_MAX + 1), -RP_EINVAL);
	assert_int_equal(C.set_group(i, t, h, RP_GROUP_MAX), 0);
	assert_int_equal(txn_view(p->ctr)->group, RP_GROUP_MAX);
	assert_false(txn_view(p->ctr)->unpinned);
	assert_int_equal(C.leave_unpinned(i, t, h), 0);
	assert_true(txn_view(p->ctr)->unpinned);
	assert_int_equal(C.may_wait(i, t, 2, 1), -RP_EINVAL);
	assert_int_equal(C.may_wait(i, t, 1, RP_WAIT_MAX_MS + 1), -RP_EINVAL);
	assert_int_equal(C.may_wait(i, t, 1, RP_WAIT_MAX_MS), 0);
	assert_int_equal(txn_patience(p->txn).longest_ms, RP_WAIT_MAX_MS);
}

/* Checks the flag for a runtime that reports a creation late: the container already runs. */
static void test_runs_already(void **state)
{
	const struct place *p = *state;
	struct runtime_facts late = {.flags = RP_RUNTIME_CREATION_IS_LATE};
	struct rp_ctr_info info = {.size = sizeof info};
	p->instance->env->runtime = &late;
	assert_int_equal(C.get_ctr(p->instance, p->ctr->handle, &info), 0);
	assert_false(info.flags & RP_CTR_RUNS_ALREADY);
	p->ctr->coming = true;
	assert_int_equal(C.get_ctr(p->instance, p->ctr->handle, &info), 0);
	assert_true(info.flags & RP_CTR_RUNS_ALREADY);
	late.flags = RP_RUNTIME_CAN_REFUSE;
	assert_int_equal(C.get_ctr(p->instance, p->ctr->handle, &info), 0);
	assert_false(info.flags & RP_CTR_RUNS_ALREADY);
	p->instance->env->runtime = NULL;
	p->ctr->coming = false;
}

/* Checks that a struct is adjusted as a whole or not at all, and each value is recorded with its
 * requester. */
static void test_equipment(void **state)
{
	const struct place *p = *state;
	struct instance *i = p->instance;
	rp_txn t = txn_id(p->txn);
	rp_ctr h = p->ctr->handle;
	struct {
		struct rp_mount mount;
		uint32_t later;
	} m = {{.size = sizeof m,
		.source = "/srv",
		.destination = "/srv",
		.type = "bind",
		.options = "bind"},
	       0};
	struct rp_device d = {.size = sizeof d, .path = "/dev/x", .type = "c", .major = 1};
	txn_set_created(p->txn, NULL);
	assert_int_equal(C.add_mount(i, t, h, &m.mount), -RP_ENOTSUP);
	assert_int_equal(C.add_cdi(i, t, h + 1, "a/b=c"), -RP_ESTALE);
	txn_set_created(p->txn, p->ctr);
	assert_int_equal(C.add_mount(i, t, h, &m.mount), 0);
	m.later = 1;
	assert_int_equal(C.add_mount(i, t, h, &m.mount), -RP_E2BIG);
	m.mount.size = offsetof(struct rp_mount, options);
	assert_int_equal(C.add_mount(i, t, h, &m.mount), -RP_EINVAL);
	assert_int_equal(C.add_device(i, t, h, &d), 0);
	assert_int_equal(C.add_cdi(i, t, h, "a/b"), -RP_EINVAL);
	assert_string_equal(i->failed.text, "CDI device \"a/b\": expected VENDOR/CLASS=NAME");
	assert_int_equal(C.add_cdi(i, t, h, "a/b=c"), 0);
	assert_int_equal(txn_extras(p->txn)->n, 3);
	assert_string_equal(txn_extras(p->txn)->list[1].by, "inner");
}

/* Checks that private data of a pod belongs to the transaction until its commit, then to the pod
 * and the policy. */
static void test_pods(void **state)
{
	const struct place *p = *state;
	void *i = p->instance;
	uint64_t t = txn_id(p->txn);
	rp_pod pod = p->ctr->pod->handle, pods[2];
	static const char large[RP_PRIVATE_MAX + 1];
	struct rp_pod_info info = {.size = sizeof info};
	const void *kept;
	uint32_t n;
	assert_int_equal(C.list_pods(i, pods, 2), 1);
	assert_int_equal(pods[0], pod);
	assert_int_equal(C.get_pod(i, pod, &info), 0);
	assert_true(info.cpu_request == RP_NOT_SET && !info.flags);
	assert_int_equal(C.get_pod_private(i, pod, &kept, &n), -RP_ENOENT);
	assert_int_equal(C.get_pod_private(i, pod + 1, &kept, &n), -RP_ESTALE);
	assert_int_equal(C.set_pod_private(i, t + 1, pod, "a", 1), -RP_EINVAL);
	assert_int_equal(C.set_pod_private(i, t, pod + 1, "a", 1), -RP_ESTALE);
	assert_int_equal(C.set_pod_private(i, t, pod, large, sizeof large), -RP_E2BIG);
	assert_int_equal(C.set_pod_private(i, t, pod, "ab", 2), 0);
	assert_int_equal(C.set_pod_private(i, t, pod, "abc", 3), 0);
	assert_int_equal(C.get_pod_private(i, pod, &kept, &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(kept, "abc", 3);
	txn_rollback(p->txn);
	assert_int_equal(C.get_pod_private(i, pod, &kept, &n), -RP_ENOENT);
	assert_int_equal(C.set_pod_private(i, t, pod, "abc", 3), 0);
	p->ctr->pod->store.facts = true;
	txn_commit(p->txn);
	assert_false(p->ctr->pod->store.facts);
	assert_int_equal(C.get_pod_private(i, pod, &kept, &n), 0);
	p->ctr->pod->policy++;
	assert_int_equal(C.get_pod_private(i, pod, &kept, &n), -RP_ENOENT);
}

/* Checks the cluster data of a pod: its containers and their highest total request, and none of
 * it while the feed is off. */
static void test_fed(void **state)
{
	const struct place *p = *state;
	void *i = p->instance;
	struct pod *pod = p->ctr->pod;
	struct feed *feed = cache_feed(p->env.cache);
	const struct fed_amount gpus[] = {{.name = "example.com/gpu", .request = 2, .limit = 2}};
	const struct fed_ctr ctrs[] = {
		{.name = "early", .kind = FED_INIT, .needs = {1600, 0, 100, 0}},
		{.name = "mesh", .kind = FED_SIDECAR, .needs = {200, 200, 20, 50}},
		{.name = "late", .kind = FED_INIT, .needs = {1500, 0, 0, 0}},
		{.name = p->ctr->name,
		 .needs = {1000, 2000, 500, 0},
		 .extended = gpus,
		 .n_extended = 1},
		{.name = "log", .needs = {500, 500, 7, 70}},
	};
	const struct fed_pod desc = {.uid = pod->uid,
				     .ns = "n",
				     .name = "p",
				     .owner = "DaemonSet",
				     .ctrs = ctrs,
				     .n_ctrs = 5};
	struct rp_pod_info info = {.size = sizeof info};
	struct rp_pod_ctr_info c = {.size = sizeof c};
	int64_t request, limit;
	assert_int_equal(C.pod_ctr(i, pod->handle, 0, &c), -RP_ENOENT);
	assert_int_equal(C.pod_ctr(i, pod->handle + 1, 0, &c), -RP_ESTALE);
	assert_int_equal(feed_put(feed, &desc), 0);
	assert_int_equal(C.get_pod(i, pod->handle, &info), 0);
	assert_int_equal(info.flags, RP_POD_FED | RP_POD_DAEMON_SET);
	/* the apps beside the sidecar; one init container beside it takes as much CPU, the other
	 * one comes before it */
	assert_int_equal(info.cpu_request, 1700);
	assert_int_equal(info.mem_request, 527);
	assert_true(info.cpu_limit == 0 && info.mem_limit == 0);
	assert_int_equal(C.pod_ctr(i, pod->handle, 1, &c), 0);
	assert_string_equal(c.name, "mesh");
	assert_true(c.kind == RP_POD_CTR_SIDECAR && c.cpu_request == 200 && c.mem_limit == 50);
	assert_int_equal(C.pod_ctr(i, pod->handle, 5, &c), -RP_ENOENT);
	assert_int_equal(C.extended(i, p->ctr->handle, "example.com/gpu", &request, &limit), 0);
	assert_true(request == 2 && limit == 2);
	assert_int_equal(C.extended(i, p->ctr->handle, "example.com/nic", &request, &limit),
			 -RP_ENOENT);
	feed_use(feed, false);
	assert_int_equal(C.pod_ctr(i, pod->handle, 0, &c), -RP_ENOENT);
	feed_use(feed, true);
	feed_begin(feed);
	assert_int_equal(feed_n_pods(feed), 1);
	feed_complete(feed);
	assert_int_equal(feed_n_pods(feed), 0);
}

/* Checks that the feed limits the memory that it uses for any number and size of pods. */
static void test_feed_bounds(void **state)
{
	const struct place *p = *state;
	struct feed *feed = cache_feed(p->env.cache);
	static char name[200];
	struct fed_ctr ctrs[FEED_CTRS_MAX];
	char uid[32];
	struct fed_pod desc = {.uid = uid, .ns = "n", .name = "p", .owner = "", .ctrs = ctrs};
	unsigned n = 0;
	memset(name, 'a', sizeof name - 1);
	for (uint32_t i = 0; i < FEED_CTRS_MAX; i++)
		ctrs[i] = (struct fed_ctr){.name = name};
	int r = 0;
	while (!r) {
		(void)snprintf(uid, sizeof uid, "small-%u", n);
		r = feed_put(feed, &desc);
		n += !r;
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(n, FEED_PODS_MAX);
	feed_clear(feed);
	desc.n_ctrs = FEED_CTRS_MAX;
	for (n = 0, r = 0; !r; n += !r) {
		(void)snprintf(uid, sizeof uid, "large-%u", n);
		r = feed_put(feed, &desc);
	}
	assert_int_equal(r, -ENOSPC);
	assert_true(n < FEED_PODS_MAX && n >= FEED_BYTES_MAX / (64 * 1024));
	/* A pod that is removed frees capacity. A pod whose update does not fit is removed, too. */
	feed_del(feed, "large-0");
	(void)snprintf(uid, sizeof uid, "small");
	desc.n_ctrs = 1;
	assert_int_equal(feed_put(feed, &desc), 0);
	feed_clear(feed);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *call_the_host(void *arg)
{
	struct rp_ctr_info info = {.size = sizeof info};
	const struct place *p = arg;
	(void)C.get_ctr(p->instance, p->ctr->handle, &info);
	return NULL;
}

/* Any function of a service, called with nothing: one that is refused looks at no argument. */
typedef intptr_t (*service_fn)(void *ctx, intptr_t a, intptr_t b, intptr_t c, intptr_t d,
			       intptr_t e);

struct service_table {
	const char *name;
	const void *table;
	size_t size;
	unsigned n_any; /* functions that any thread may call */
	size_t any[12]; /* their offsets */
};

#define TABLE(id, service, n, ...)                                                                 \
	{                                                                                          \
		id, &(service), sizeof(service), n,                                                \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define AT_WORK(f) offsetof(struct rp_host_work, f)
#define AT_SST(f) offsetof(struct rp_host_speedselect, f)

static const struct service_table tables[] = {
	TABLE("cache", host_cache_service, 0, 0),
	TABLE("topology", host_topology_service, 0, 0),
	TABLE("config", host_config_service, 0, 0),
	TABLE("explain", host_explain_service, 0, 0),
	TABLE("timer", host_timer_service, 0, 0),
	TABLE("usage", host_usage_service, 0, 0),
	TABLE("noderes", host_noderes_service, 0, 0),
	TABLE("node", host_node_service, 0, 0),
	TABLE("evict", host_evict_service, 0, 0),
	TABLE("runtime", host_runtime_service, 0, 0),
	TABLE("hints", host_hints_service, 0, 0),
	TABLE("work", host_work_service, 10, AT_WORK(read_file), AT_WORK(write_file),
	      AT_WORK(cgroup_find), AT_WORK(list_dir), AT_WORK(make_dir), AT_WORK(remove_dir),
	      AT_WORK(move_pages), AT_WORK(read_link), AT_WORK(post), AT_WORK(read_node)),
	TABLE("speedselect", host_speedselect_service, 6, AT_SST(punit_now), AT_SST(clos_now),
	      AT_SST(set_cp), AT_SST(set_tf), AT_SST(set_clos), AT_SST(associate)),
};

static bool any_thread(const struct service_table *t, size_t at)
{
	for (unsigned i = 0; i < t->n_any; i++)
		if (t->any[i] == at)
			return true;
	return false;
}

static void *call_all(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		const struct service_table *t = &tables[i];
		/* behind size, and a pad where there is one */
		for (size_t at = 8; at < t->size; at += sizeof(service_fn)) {
			service_fn fn;
			memcpy(&fn, (const char *)t->table + at, sizeof fn);
			if (!fn || any_thread(t, at))
				continue;
			(void)fn(p->instance, 0, 0, 0, 0, 0);
			if (instance_foreign_calls(p->instance) != ++n) {
				print_error("%s, offset %zu: not refused\n", t->name, at);
				return (void *)t->name;
			}
		}
	}
	assert_true(n > 100);
	const char *const keys[] = {"key"};
	const char *values[] = {"from before"};
	C.pod_annotations(p->instance, 0, keys, 1, values);
	assert_null(values[0]);
	return NULL;
}

/* Checks that a foreign call has no effect and is counted. A defect of a module does not end the
 * process. */
static void test_foreign_calls_refused(void **state)
{
	struct place *p = *state;
	struct rp_ctr_info info = {.size = sizeof info};
	pthread_t thread;
	void *bad = NULL;
	assert_int_equal(pthread_create(&thread, NULL, call_all, p), 0);
	assert_int_equal(pthread_join(thread, &bad), 0);
	assert_null(bad);
	assert_int_equal(C.get_ctr(p->instance, p->ctr->handle, &info), 0);
}

static void foreign_ignored(struct instance *i, const char *function)
{
}

/* Returns the exit status of a child in which another thread calls the host. */
static int end_of_a_foreign_call(struct place *p, const char *path)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct err err = ERR_INIT;
		pthread_t thread;
		(void)close(STDERR_FILENO);
		p->env.foreign_call = foreign_ignored;
		if (crumb_open(path, &p->env.crumb, &err))
			_exit(1);
		ends_note(p->env.crumb);
		if (pthread_create(&thread, NULL, call_the_host, p) == 0)
			(void)pthread_join(thread, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Checks that a call from a foreign thread ends the daemon before it can damage tables, and the
 * next process finds the culprit. */
static void test_foreign_thread(void **state)
{
	struct place *p = *state;
	struct err err = ERR_INIT;
	struct crumb *c = NULL;
	char dir[] = "/tmp/t_service-XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/breadcrumb", dir);
	int status = end_of_a_foreign_call(p, path);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_int_equal(crumb_open(path, &c, &err), 0);
	assert_non_null(crumb_last(c));
	assert_string_equal(crumb_last(c)->module, "inner");
	assert_string_equal(crumb_last(c)->object, RP_HOST_CACHE_1);
	assert_int_equal(crumb_last(c)->call, CRUMB_THREAD);
	assert_int_equal(crumb_last(c)->cause, CRUMB_DIED);
	assert_int_equal(crumb_last(c)->counted, 1);
	crumb_close(c);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int32_t ignore_event(struct rp_instance *inst, rp_txn txn, const struct rp_event *ev)
{
	return RP_IGNORED;
}

static void take_plan(struct rp_instance *inst, struct rp_plan *plan)
{
}

/* Checks that starts which a policy ignores end with its next configuration, and that the result
 * of a module from before 1.3 has no such meaning. */
static void test_ignored_starts(void **state)
{
	struct place *p = *state;
	const struct rp_policy policy = {.size = sizeof policy, .event = ignore_event};
	const struct rp_event ev = {sizeof ev, RP_EVENT_STARTED, .object = p->ctr->handle};
	struct module module = {.name = "inner"};
	struct instance *i = p->instance;
	i->module = &module;
	i->policy = &policy;
	i->commit = take_plan;
	i->created = true;
	for (module.abi_minor = 2; module.abi_minor <= 3; module.abi_minor++) {
		assert_int_equal(instance_event(i, &ev, NULL), 0);
		assert_int_equal(instance_handles_starts(i), module.abi_minor < 3);
	}
	instance_commit(i, NULL);
	assert_true(instance_handles_starts(i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arg, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs_already, setup, teardown),
		cmocka_unit_test_setup_teardown(test_equipment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_args, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pods, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_feed_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_calls_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored_starts, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
