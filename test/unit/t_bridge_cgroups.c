/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the names, weights, files and lists that nri-rp-bridge reads and writes with the source
 * cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/nri-rp-bridge/bundle.h"
#include "core/nri-rp-bridge/cgroup_files.h"
#include "core/nri-rp-bridge/kubepods.h"
#include "core/nri-rp-bridge/podlist.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "kubepods/burstable/podu"
#define CTR POD "/" ID

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names_of_pods(void **state)
{
	static const struct {
		const char *name, *uid; /* NULL: it is none */
	} names[] = {
		{"pod12-ab", "12-ab"},
		{"kubepods-pod12_ab.slice", "12-ab"},
		{"kubepods-burstable-pod12_ab.slice", "12-ab"},
		{"kubelet-kubepods-besteffort-pod7.slice", "7"},
		{"kubepods-system-pod7.slice", "7"},
		{"kubepods-system-burstable-pod7.slice", "7"},
		{"kubepods-burstable-system-pod7.slice", NULL},
		{"kubepods-system-system-burstable.slice", NULL},
		{"pod", NULL},
		{"kubepods-pod.slice", NULL},
		{"kubepods-burstable.slice", NULL},
		{"pod12_ab", NULL},
		{"podx/y", NULL},
		{"system-pod1.slice", NULL},
		{"kubepods-best-pod1.slice", NULL},
		{"burstable", NULL},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char uid[KUBEPODS_UID_SIZE];
		bool is = kubepods_pod_uid(names[i].name, uid);
		assert_int_equal(is, names[i].uid != NULL);
		if (is)
			assert_string_equal(uid, names[i].uid);
	}
}

static void test_names_of_containers(void **state)
{
	static const struct {
		const char *name;
		bool is;
	} names[] = {
		{ID, true},
		{"cri-containerd-" ID ".scope", true},
		{"crio-" ID ".scope", true},
		{"crio-" ID, true},
		{"docker-" ID ".scope", true},
		{"crio-conmon-" ID ".scope", false},
		{"x" ID, false},
		{ID ".slice", false},
		{"cpuset.cpus", false},
		{"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", false},
	};
	char id[KUBEPODS_ID_SIZE];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_int_equal(kubepods_ctr_id(names[i].name, id), names[i].is);
		if (names[i].is)
			assert_string_equal(id, ID);
	}
}

static void test_names_around_them(void **state)
{
	assert_true(kubepods_is_top("kubepods") && kubepods_is_top("kubepods.slice") &&
		    kubepods_is_top("kubelet-kubepods.slice"));
	assert_false(kubepods_is_top("kubepods-burstable.slice") || kubepods_is_top("kube") ||
		     kubepods_is_top("mykubepods.slice"));
	assert_true(kubepods_is_qos("system") && kubepods_is_qos("kubepods-system.slice") &&
		    kubepods_is_qos("kubepods-system-besteffort.slice"));
	assert_true(kubepods_is_qos("burstable") && kubepods_is_qos("kubepods-besteffort.slice"));
	assert_false(kubepods_is_qos("kubepods.slice") || kubepods_is_qos("guaranteed") ||
		     kubepods_is_qos("kubepods-burstable-pod1.slice"));
}

/* ---- weights --------------------------------------------------------------------------------- */

static void test_weights(void **state)
{
	assert_int_equal(cgroup_weight(CURVE_LINEAR, 2), 1);
	assert_int_equal(cgroup_weight(CURVE_LINEAR, 1024), 39);
	assert_int_equal(cgroup_weight(CURVE_LINEAR, 262144), 10000);
	assert_int_equal(cgroup_weight(CURVE_QUADRATIC, 2), 1);
	assert_int_equal(cgroup_weight(CURVE_QUADRATIC, 1024), 100);
	assert_int_equal(cgroup_weight(CURVE_QUADRATIC, 262144), 10000);
	for (int curve = CURVE_LINEAR; curve <= CURVE_QUADRATIC; curve++)
		for (uint64_t shares = 2; shares <= 262144; shares += 1 + shares / 50) {
			uint64_t weight = cgroup_weight((enum cgroup_curve)curve, shares);
			uint64_t back = cgroup_shares((enum cgroup_curve)curve, weight);
			assert_in_range(back, 2, shares);
			assert_int_equal(cgroup_weight((enum cgroup_curve)curve, back), weight);
		}
}

/* ---- files ----------------------------------------------------------------------------------- */

struct fixture {
	char dir[64];
	struct cgroup_fs fs;
	struct arena *a;
	struct err err;
};

static void put(const struct fixture *f, const char *cgroup, const char *file, const char *text)
{
	char path[640], folder[512];
	struct err err = ERR_INIT;
	const char *controller = f->fs.unified ? "" : file;
	int n = (int)strcspn(controller, ".");
	(void)snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%.*s/%s", f->dir, n, controller,
		       cgroup);
	assert_int_equal(fs_mkdirs(folder, 0755, &err), 0);
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	assert_int_equal(fs_replace(path, text, strlen(text), 0644, false, &err), 0);
}

static const char *get(const struct fixture *f, const char *cgroup, const char *file)
{
	static char text[256];
	char path[512];
	(void)snprintf(path, sizeof path, "sys/fs/cgroup/%.*s/%s/%s",
		       f->fs.unified ? 0 : (int)strcspn(file, "."), file, cgroup, file);
	assert_true(fs_read(&f->fs.root, path, text, sizeof text) >= 0);
	return text;
}

static int setup(void **state, bool unified)
{
	struct fixture *f = test_calloc(1, sizeof *f);
	(void)snprintf(f->dir, sizeof f->dir, "/tmp/t_bridge_cgroups.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->a = arena_new(4096, 0);
	f->fs.unified = unified;
	if (unified)
		put(f, "", "cgroup.controllers", "cpuset cpu memory\n");
	static const char *const around[] = {"kubepods", "kubepods/burstable", POD, CTR};
	for (size_t i = 0; i < 4; i++) {
		put(f, around[i], "cpuset.cpus", unified ? "\n" : "0-7\n");
		put(f, around[i], "cpuset.mems", unified ? "\n" : "0-1\n");
	}
	if (unified) {
		put(f, CTR, "cpu.weight", "39\n");
		put(f, CTR, "cpu.max", "max 100000\n");
		put(f, CTR, "memory.max", "max\n");
		put(f, CTR, "memory.high", "max\n");
	} else {
		put(f, CTR, "cpuset.memory_migrate", "0\n");
		put(f, CTR, "cpu.shares", "1024\n");
		put(f, CTR, "cpu.cfs_quota_us", "-1\n");
		put(f, CTR, "cpu.cfs_period_us", "100000\n");
		put(f, CTR, "memory.limit_in_bytes", "9223372036854771712\n");
	}
	assert_int_equal(cgroup_fs_open(&f->fs, f->dir, &f->err), 0);
	assert_int_equal(f->fs.unified, unified);
	*state = f;
	return 0;
}

static int setup_v1(void **state)
{
	return setup(state, false);
}

static int setup_v2(void **state)
{
	return setup(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];
	(void)snprintf(command, sizeof command, "rm -r %s", f->dir);
	cgroup_fs_close(&f->fs);
	arena_free(f->a);
	assert_int_equal(system(command), 0);
	test_free(f);
	return 0;
}

static Cri__Resources wanted(const char *cpus, const char *mems)
{
	Cri__Resources r = CRI__RESOURCES__INIT;
	r.cpuset_cpus = (char *)(uintptr_t)cpus;
	r.cpuset_mems = (char *)(uintptr_t)mems;
	return r;
}

static int write_it(struct fixture *f, const Cri__Resources *r, unsigned *written)
{
	f->err = (struct err)ERR_INIT;
	return cgroup_write(&f->fs, f->a, "kubepods", CTR, r, written, &f->err);
}

static void test_read_v1(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r;
	assert_int_equal(cgroup_read(&f->fs, f->a, CTR, &r), 0);
	assert_int_equal(r.cpu_shares, 1024);
	assert_int_equal(r.cpu_quota, -1);
	assert_int_equal(r.cpu_period, 100000);
	assert_int_equal(r.memory_limit, 0); /* no limit */
	assert_string_equal(r.cpuset_cpus, ""); /* the set of the parents */
	put(f, CTR, "cpuset.cpus", "2,3\n");
	put(f, CTR, "memory.limit_in_bytes", "4096\n");
	assert_int_equal(cgroup_read(&f->fs, f->a, CTR, &r), 0);
	assert_string_equal(r.cpuset_cpus, "2-3");
	assert_int_equal(r.memory_limit, 4096);
	assert_int_equal(cgroup_read(&f->fs, f->a, POD "/gone", &r), -ENOENT);
}

static void test_read_v2(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r;
	put(f, CTR, "cpu.max", "50000 100000\n");
	put(f, CTR, "memory.max", "8192\n");
	assert_int_equal(cgroup_read(&f->fs, f->a, CTR, &r), 0);
	assert_int_equal(cgroup_weight(CURVE_LINEAR, (uint64_t)r.cpu_shares), 39);
	assert_int_equal(r.cpu_quota, 50000);
	assert_int_equal(r.cpu_period, 100000);
	assert_int_equal(r.memory_limit, 8192);
	/* The request to the runtime shows which curve the runtime uses. */
	assert_true(cgroup_has_shares(&f->fs, CTR, 1024));
	assert_int_equal(f->fs.curve, CURVE_LINEAR);
	put(f, CTR, "cpu.weight", "100\n");
	assert_true(cgroup_has_shares(&f->fs, CTR, 1024));
	assert_int_equal(f->fs.curve, CURVE_QUADRATIC);
	assert_false(cgroup_has_shares(&f->fs, CTR, 2048));
}

static void test_write_v1(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("2-3", "1");
	unsigned written;
	r.cpu_shares = 512;
	r.cpu_quota = 20000;
	r.cpu_period = 50000;
	r.memory_limit = 1 << 20;
	f->fs.migrate = true;
	assert_int_equal(write_it(f, &r, &written), 0);
	assert_int_equal(written, 7);
	assert_string_equal(get(f, CTR, "cpuset.cpus"), "2-3");
	assert_string_equal(get(f, CTR, "cpuset.mems"), "1");
	assert_string_equal(get(f, CTR, "cpuset.memory_migrate"), "1");
	assert_string_equal(get(f, CTR, "cpu.shares"), "512");
	assert_string_equal(get(f, CTR, "cpu.cfs_quota_us"), "20000");
	assert_string_equal(get(f, CTR, "cpu.cfs_period_us"), "50000");
	assert_string_equal(get(f, CTR, "memory.limit_in_bytes"), "1048576");
	/* Again: nothing. As the kernel writes it: nothing. */
	put(f, CTR, "cpuset.cpus", "2,3\n");
	r.memory_limit += 100;
	assert_int_equal(write_it(f, &r, &written), 0);
	assert_int_equal(written, 0);
}

/* Which of the two was written first. */
static const char *first_of_two(struct fixture *f, Cri__Resources *r)
{
	static char first[64];
	char folder[640], events[1024] __attribute__((aligned(8)));
	unsigned written;
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	(void)snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/cpu/%s", f->dir, CTR);
	assert_true(inotify_add_watch(fd, folder, IN_CLOSE_WRITE) >= 0);
	assert_int_equal(write_it(f, r, &written), 0);
	assert_int_equal(written, 2);
	assert_true(read(fd, events, sizeof events) > 0);
	(void)snprintf(first, sizeof first, "%.63s",
		       ((struct inotify_event *)(void *)events)->name);
	(void)close(fd);
	return first;
}

/* The kernel refuses, at each step, more time than the cgroup around has. */
static void test_quota_and_period_v1(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("", "");
	r.cpu_quota = 20000;
	r.cpu_period = 50000;
	assert_string_equal(first_of_two(f, &r), "cpu.cfs_quota_us");
	r.cpu_quota = 60000;
	r.cpu_period = 150000;
	assert_string_equal(first_of_two(f, &r), "cpu.cfs_period_us");
}

static void test_write_v2(void **state)
{
	struct fixture *f = *state;
	Cri__Resources__UnifiedEntry high = CRI__RESOURCES__UNIFIED_ENTRY__INIT;
	Cri__Resources__UnifiedEntry *unified[] = {&high};
	Cri__Resources r = wanted("2-3", "1");
	unsigned written;
	high.key = (char *)(uintptr_t) "memory.high";
	high.value = (char *)(uintptr_t) "4096";
	r.cpu_shares = 2048;
	r.cpu_quota = 20000;
	r.unified = unified;
	r.n_unified = 1;
	assert_int_equal(write_it(f, &r, &written), 0);
	assert_int_equal(written, 5);
	assert_string_equal(get(f, CTR, "cpu.weight"), "79");
	assert_string_equal(get(f, CTR, "cpu.max"), "20000 100000");
	assert_string_equal(get(f, CTR, "memory.high"), "4096");
	/* Another folder's files are not a container's. */
	static const char *const names[] = {"../cpu.max", "cgroup.procs", "memory", "a/b.c"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		high.key = (char *)(uintptr_t)names[i];
		assert_int_equal(write_it(f, &r, &written), -EINVAL);
	}
}

static void test_cgroups_around_are_widened(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("2-5", NULL);
	put(f, "kubepods/burstable", "cpuset.cpus", "0-3\n");
	put(f, POD, "cpuset.cpus", "0-1\n");
	assert_int_equal(write_it(f, &r, NULL), 0);
	assert_string_equal(get(f, "kubepods/burstable", "cpuset.cpus"), "0-5");
	assert_string_equal(get(f, POD, "cpuset.cpus"), "0-5");
	assert_string_equal(get(f, CTR, "cpuset.cpus"), "2-5");
}

static void test_cgroups_below_are_narrowed(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("2-3", NULL);
	put(f, CTR "/inner", "cpuset.cpus", "1-2\n");
	put(f, CTR "/inner/most", "cpuset.cpus", "1\n");
	put(f, CTR "/other", "cpuset.cpus", "0-2\n");
	put(f, CTR, "cpuset.cpus", "0-2\n");
	assert_int_equal(write_it(f, &r, NULL), 0);
	/* Each is within the one around it, as the kernel demands at each step. */
	assert_string_equal(get(f, CTR, "cpuset.cpus"), "2-3");
	assert_string_equal(get(f, CTR "/inner", "cpuset.cpus"), "2-3");
	assert_string_equal(get(f, CTR "/inner/most", "cpuset.cpus"), "2-3");
	assert_string_equal(get(f, CTR "/other", "cpuset.cpus"), "2");
}

static void test_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("2-3", "1");
	char path[256];
	unsigned written = 7;
	r.cpu_shares = 512;
	(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s" CTR "/cpu.%s", f->dir,
		       f->fs.unified ? "" : "cpu/", f->fs.unified ? "weight" : "shares");
	assert_int_equal(unlink(path), 0);
	put(f, POD, "cpuset.cpus", f->fs.unified ? "0\n" : "0-7\n");
	assert_int_equal(write_it(f, &r, &written), -ENOENT);
	assert_non_null(strstr(f->err.text, f->fs.unified ? "cpu.weight" : "cpu.shares"));
	assert_int_equal(written, 0);
	assert_string_equal(get(f, CTR, "cpuset.cpus"), f->fs.unified ? "" : "0-7");
	assert_string_equal(get(f, CTR, "cpuset.mems"), f->fs.unified ? "" : "0-1");
	assert_string_equal(get(f, POD, "cpuset.cpus"), f->fs.unified ? "0" : "0-7");
	r = wanted("x", NULL);
	assert_int_equal(write_it(f, &r, NULL), -EINVAL);
}

static void test_what_the_kernel_does_not_give(void **state)
{
	struct fixture *f = *state;
	Cri__Resources r = wanted("2-3", NULL);
	put(f, CTR, "cpuset.cpus.effective", "0-1\n");
	assert_int_equal(write_it(f, &r, NULL), -ERANGE);
	assert_string_equal(get(f, CTR, "cpuset.cpus"), "");
	put(f, CTR, "cpuset.cpus.effective", "3\n"); /* 2 is off line */
	assert_int_equal(write_it(f, &r, NULL), 0);
}

static void test_empty(void **state)
{
	struct fixture *f = *state;
	assert_false(cgroup_is_empty(&f->fs, CTR)); /* no file says that the cgroup is empty */
	if (f->fs.unified) {
		put(f, CTR, "cgroup.events", "populated 1\nfrozen 0\n");
		assert_false(cgroup_is_empty(&f->fs, CTR));
		put(f, CTR, "cgroup.events", "populated 0\nfrozen 0\n");
	} else {
		char path[256];
		struct err err = ERR_INIT;
		(void)snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpuset/" CTR "/cgroup.procs",
			       f->dir);
		assert_int_equal(fs_replace(path, "12\n13\n", 6, 0644, false, &err), 0);
		assert_false(cgroup_is_empty(&f->fs, CTR));
		assert_int_equal(cgroup_process(&f->fs, CTR), 12);
		assert_int_equal(fs_replace(path, "", 0, 0644, false, &err), 0);
	}
	assert_true(cgroup_is_empty(&f->fs, CTR));
}

/* ---- files of runtimes and kubelets ---------------------------------------------------------- */

static void test_bundles(void **state)
{
	static const char containerd[] =
		"{\"annotations\": {\"io.kubernetes.cri.container-type\": \"container\","
		" \"io.kubernetes.cri.sandbox-id\": \"s\", \"io.kubernetes.cri.container-name\": "
		"\"c\","
		" \"io.kubernetes.cri.sandbox-name\": \"p\", \"own\": \"v\"},"
		" \"process\": {\"oomScoreAdj\": 7}, \"linux\": {\"resources\": {\"cpu\": "
		"{\"shares\": 5}}}}";
	static const char docker[] =
		"{\"Config\": {\"Labels\": {\"io.kubernetes.docker.type\": \"podsandbox\","
		" \"io.kubernetes.pod.namespace\": \"n\", \"io.kubernetes.pod.name\": \"p\"}}}";
	static const char *const wrong[] = {"", "[]", "{}", "{\"annotations\": 1}",
					    "{\"annotations\": {\"own\": \"v\"}}"};
	_arena_ struct arena *a = arena_new(4096, 0);
	struct bundle b;
	assert_int_equal(bundle_parse(a, BUNDLE_CONTAINERD, containerd, sizeof containerd - 1, &b),
			 0);
	assert_false(b.sandbox);
	assert_string_equal(b.sandbox_id, "s");
	assert_string_equal(b.name, "c");
	assert_string_equal(b.pod, "p");
	assert_int_equal(b.resources->cpu_shares, 5);
	assert_int_equal(b.resources->oom_score_adj, 7);
	assert_int_equal(b.n_annotations, 1);
	assert_string_equal(b.annotations[0]->key, "own");
	assert_int_equal(bundle_parse(a, BUNDLE_DOCKER, docker, sizeof docker - 1, &b), 0);
	assert_true(b.sandbox && !b.resources);
	assert_string_equal(b.ns, "n");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(bundle_parse(a, BUNDLE_CONTAINERD, wrong[i], strlen(wrong[i]), &b),
				 -EBADMSG);
	/* Bundles of other runtimes: a pod's annotation, an image's label. */
	assert_int_equal(bundle_parse(a, BUNDLE_CRIO, containerd, sizeof containerd - 1, &b),
			 -EBADMSG);
	assert_int_equal(bundle_parse(a, BUNDLE_DOCKER, containerd, sizeof containerd - 1, &b),
			 -EBADMSG);
	assert_int_equal(bundle_parse(a, BUNDLE_CONTAINERD, docker, sizeof docker - 1, &b),
			 -EBADMSG);
}

static void count_pod(const Agent__FedPod *pod, void *arg)
{
	unsigned *n = arg;
	assert_string_equal(pod->uid, "u");
	assert_int_equal(pod->n_annotations, 1);
	assert_string_equal(pod->containers[0]->id, "abc");
	++*n;
}

static void test_lists_of_a_kubelet(void **state)
{
	static const char good[] =
		"{\"kind\": \"PodList\", \"items\": [{\"metadata\": {\"name\": \"p\", "
		"\"namespace\": \"n\", \"uid\": \"u\", \"annotations\": {\"k\": \"v\", \"x\": 1}},"
		" \"spec\": {\"containers\": [{\"name\": \"c\"}]}, \"status\": "
		"{\"containerStatuses\": [{\"name\": \"c\", \"containerID\": "
		"\"containerd://abc\"}]}}, {\"metadata\": {}}, 7]}";
	static const char *const wrong[] = {"",
					    "x",
					    "[]",
					    "{}",
					    "{\"kind\": \"Status\"}",
					    "{\"kind\": \"PodList\", \"items\": 3}"};
	static const char *const empty[] = {"{\"kind\": \"PodList\"}",
					    "{\"kind\": \"PodList\", \"items\": null}"};
	unsigned n = 0;
	size_t count;
	assert_int_equal(podlist_parse(good, sizeof good - 1, count_pod, &n, &count), 0);
	assert_int_equal(n, 1);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(podlist_parse(wrong[i], strlen(wrong[i]), count_pod, &n, &count),
				 -EBADMSG);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(podlist_parse(empty[i], strlen(empty[i]), count_pod, &n, &count),
				 0);
		assert_int_equal(count, 0);
	}
	assert_int_equal(n, 1);
}

/* ---- known pods and their cgroups ------------------------------------------------------------ */

static void on_changed(void *arg)
{
	(*(unsigned *)arg)++;
}

static bool takes(struct podlist *p, unsigned i)
{
	char uid[32];
	Agent__FedPod pod = AGENT__FED_POD__INIT;
	(void)snprintf(uid, sizeof uid, "uid-%u", i);
	pod.uid = pod.name = pod.namespace_ = uid;
	podlist_take(p, &pod);
	return podlist_find(p, uid) != NULL;
}

/* Pods that come and go all day must not leave those of the evening without a place. */
static void test_who_has_gone_leaves_a_place(void **state)
{
	unsigned changes = 0;
	struct err err = ERR_INIT;
	struct podlist *p;
	struct podlist_config config = {.loop = loop_new(),
					.source = PODS_CGROUPFS,
					.changed = on_changed,
					.arg = &changes};
	assert_int_equal(podlist_new(&config, &p, &err), 0);
	podlist_begin(p);
	for (unsigned i = 0; i < PODLIST_MAX; i++)
		assert_true(takes(p, i));
	podlist_end(p);
	assert_int_equal(changes, 1);
	assert_false(takes(p, PODLIST_MAX));
	podlist_forget(p, "uid-7");
	assert_true(podlist_gone_ms(p, "uid-7") > 0);
	assert_true(takes(p, PODLIST_MAX));
	assert_null(podlist_find(p, "uid-7"));
	assert_false(takes(p, PODLIST_MAX + 1));
	podlist_free(p);
	loop_free(config.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_pods),
		cmocka_unit_test(test_names_of_containers),
		cmocka_unit_test(test_names_around_them),
		cmocka_unit_test(test_weights),
		cmocka_unit_test_setup_teardown(test_read_v1, setup_v1, teardown),
		cmocka_unit_test_setup_teardown(test_read_v2, setup_v2, teardown),
		cmocka_unit_test_setup_teardown(test_write_v1, setup_v1, teardown),
		cmocka_unit_test_setup_teardown(test_quota_and_period_v1, setup_v1, teardown),
		cmocka_unit_test_setup_teardown(test_write_v2, setup_v2, teardown),
		cmocka_unit_test_setup_teardown(test_cgroups_around_are_widened, setup_v1,
						teardown),
		cmocka_unit_test_setup_teardown(test_cgroups_below_are_narrowed, setup_v1,
						teardown),
		cmocka_unit_test_setup_teardown(test_all_or_nothing, setup_v1, teardown),
		cmocka_unit_test_setup_teardown(test_all_or_nothing, setup_v2, teardown),
		cmocka_unit_test_setup_teardown(test_what_the_kernel_does_not_give, setup_v2,
						teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup_v1, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup_v2, teardown),
		cmocka_unit_test(test_bundles),
		cmocka_unit_test(test_lists_of_a_kubelet),
		cmocka_unit_test(test_who_has_gone_leaves_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
