/* SPDX-License-Identifier: Apache-2.0 */
/* Others who write cpusets: noticed by the watch, put back with growing pauses, and named. */
#include "core/nri-rpd/pipeline/verify/drift.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "test/unit/t_world.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/request/updates.h"

#define GROUP "sys/fs/cgroup/pods/a/"

static void write_at(struct world *w, const char *path, const char *text)
{
	char real[PATH_MAX];
	tree_path(&w->tree, path, real, sizeof real);
	FILE *f = fopen(real, "r+");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(ftruncate(fileno(f), (off_t)strlen(text)), 0);
	assert_int_equal(fclose(f), 0);
}

static bool is_watched(struct world *w, void *arg)
{
	struct drift_stats s;
	pipeline_drift(w->p, &s);
	return s.n_watched == *(unsigned *)arg && !w->p->verify.running && !w->p->verify.n;
}

/* Runs and watches container a with CPUs 0-3 (and nodes 0). */
static void watch_one(struct world *w, const char *cgroups_path)
{
	unsigned n = 1;
	w->p->verify.delay_ms = 1;
	tree_put(&w->tree, "sys/fs/cgroup/cgroup.controllers", "cpuset\n");
	tree_put(&w->tree, GROUP "cpuset.cpus", "0-3\n");
	tree_put(&w->tree, GROUP "cpuset.mems", "0\n");
	box_run(w, &(struct box){
			   .name = "a", .alloc = "cpus 0-3; mems 0", .cgroups_path = cgroups_path});
	world_until(w, is_watched, &n);
}

static uint64_t found(struct world *w)
{
	struct drift_stats s;
	pipeline_drift(w->p, &s);
	return s.found;
}

static bool has_found(struct world *w, void *arg)
{
	return found(w) >= *(uint64_t *)arg;
}

/* Writes the values of the next update into the cgroup files, as a runtime does. */
static void put_back(struct world *w)
{
	uint32_t n = 0;
	const struct update *items = updates_next(w->p, &n);
	assert_non_null(items);
	assert_int_equal(n, 1);
	if (items[0].fields & DIFF_CPUS)
		write_at(w, GROUP "cpuset.cpus", items[0].values.cpus->text);
	if (items[0].fields & DIFF_MEMS)
		write_at(w, GROUP "cpuset.mems", items[0].values.mems->text);
	if (items[0].fields & DIFF_SHARES)
		write_at(w, GROUP "cpu.weight", "39\n");
	if (items[0].fields & DIFF_QUOTA)
		write_at(w, GROUP "cpu.max", "50000 100000\n");
	if (items[0].fields & DIFF_MEM_LIMIT)
		write_at(w, GROUP "memory.max", "1048576\n");
	updates_acked(w->p);
}

static void test_noticed(void **state)
{
	struct world *w = *state;
	uint64_t n = 1;
	unsigned one = 1;
	watch_one(w, "/pods/a");
	assert_int_equal(found(w), 0);
	/* no timer is pending, so the daemon does not wake up */
	assert_false(loop_timer_armed(w->p->verify.timer));
	write_at(w, GROUP "cpuset.cpus", "0-15\n");
	world_until(w, has_found, &n);
	assert_true(world_told(w, "default/a/c: had CPUs 0-15 instead of 0-3: restored"));
	put_back(w);
	world_until(w, is_watched, &one);
	assert_int_equal(found(w), 1);
	assert_int_equal(updates_waiting(w->p), 0);
	/* memory nodes, too; other files do not concern anybody */
	write_at(w, GROUP "cpuset.mems", "1");
	n = 2;
	world_until(w, has_found, &n);
	assert_true(world_told(w, "default/a/c: had memory nodes 1 instead of 0: restored"));
	put_back(w);
	world_until(w, is_watched, &one);
	/* an empty file: the container has what its parent has */
	write_at(w, GROUP "cpuset.cpus", "\n");
	n = 3;
	world_until(w, has_found, &n);
	assert_true(world_told(w, "default/a/c: had no CPUs of its own instead of 0-3: restored"));
	put_back(w);
	world_until(w, is_watched, &one);
	tree_put(&w->tree, GROUP "memory.high", "1\n");
	/* An equal value in another notation is no drift. */
	write_at(w, GROUP "cpuset.cpus", "0,1,2-3");
	world_until(w, is_watched, &one);
	assert_int_equal(found(w), 3);
}

/* Checks the amounts beside the CPU and memory sets, in every notation that runtimes write. */
static void test_amounts(void **state)
{
	static const struct {
		const char *file, *fine[3], *other, *told;
	} rows[] = {
		{"cpu.weight", {"39\n", "100\n"}, "20\n", "had cpu.weight 20 instead of 1024"},
		{"cpu.max", {"50000 100000\n"}, "max 100000\n", "had cpu.max max 100000 instead"},
		{"cpu.max", {NULL}, "50000 50000\n", "had cpu.max 50000 50000 instead of 100000"},
		{"memory.max", {"1048576\n", "1049000\n"}, "max\n", "had memory.max max instead"},
	};
	struct world *w = *state;
	uint64_t n = 0;
	unsigned one = 1;
	w->p->verify.delay_ms = 1;
	tree_put(&w->tree, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
	tree_put(&w->tree, GROUP "cpu.weight", "39\n");
	tree_put(&w->tree, GROUP "cpu.max", "50000 100000\n");
	tree_put(&w->tree, GROUP "memory.max", "1048576\n");
	box_run(w, &(struct box){.name = "a",
				 .alloc = "int 1 1024; int 2 50000; int 3 100000; int 4 1048576",
				 .cgroups_path = "/pods/a"});
	world_until(w, is_watched, &one);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		char path[64];
		(void)snprintf(path, sizeof path, GROUP "%s", rows[i].file);
		for (unsigned k = 0; rows[i].fine[k]; k++) {
			write_at(w, path, rows[i].fine[k]);
			world_until(w, is_watched, &one);
			assert_int_equal(found(w), n);
		}
		write_at(w, path, rows[i].other);
		n++;
		world_until(w, has_found, &n);
		assert_true(world_told(w, rows[i].told));
		put_back(w);
		world_until(w, is_watched, &one);
		assert_int_equal(updates_waiting(w->p), 0);
	}
}

/* Checks the amounts with cgroup v1, which has a directory for each cgroup controller. */
static void test_amounts_v1(void **state)
{
	struct world *w = *state;
	uint64_t n = 1;
	unsigned three = 3;
	w->p->verify.delay_ms = 1;
	tree_put(&w->tree, "sys/fs/cgroup/cpuset/pods/a/cpuset.cpus", "0-3\n");
	tree_put(&w->tree, "sys/fs/cgroup/cpu/pods/a/cpu.shares", "1024\n");
	tree_put(&w->tree, "sys/fs/cgroup/cpu/pods/a/cpu.cfs_quota_us", "-1\n");
	tree_put(&w->tree, "sys/fs/cgroup/cpu/pods/a/cpu.cfs_period_us", "100000\n");
	tree_put(&w->tree, "sys/fs/cgroup/memory/pods/a/memory.limit_in_bytes", "1048576\n");
	box_run(w, &(struct box){.name = "a",
				 .alloc = "cpus 0-3; int 1 1024; int 2 -1; int 4 1048576",
				 .cgroups_path = "/pods/a"});
	world_until(w, is_watched, &three);
	assert_int_equal(found(w), 0);
	write_at(w, "sys/fs/cgroup/cpu/pods/a/cpu.cfs_quota_us", "5000\n");
	world_until(w, has_found, &n);
	assert_true(world_told(w, "had cpu.cfs_quota_us 5000 instead of -1"));
}

/* Checks that each check is later than the previous one, up to a limit, and that the delay
 * restarts after a long time without drift. */
static void test_backs_off(void **state)
{
	struct world *w = *state;
	watch_one(w, "/pods/a");
	struct ctr *a = box_ctr(w, "a");
	for (uint64_t n = 1; n <= 4; n++) {
		uint64_t before = clock_ms();
		write_at(w, GROUP "cpuset.cpus", "5");
		world_until(w, has_found, &n);
		assert_true(a->verify.from_ms >= before + (1u << (n - 1)));
		assert_int_equal(a->verify.tries, n);
		put_back(w);
	}
	a->verify.tries = 200;
	write_at(w, GROUP "cpuset.cpus", "5");
	uint64_t n = 5, now = clock_ms();
	world_until(w, has_found, &n);
	assert_true(a->verify.from_ms <= clock_ms() + 128 && a->verify.from_ms > now);
	put_back(w);
	a->verify.repaired_ms = 0;
	a->verify.from_ms = 0;
	if (clock_ms() >
	    600000) { /* a machine that has been up for long enough to have had peace */
		write_at(w, GROUP "cpuset.cpus", "5");
		n = 6;
		world_until(w, has_found, &n);
		assert_int_equal(a->verify.tries, 1);
	}
}

/* Checks that a difference is no drift while an update of the container is outstanding. */
static void test_not_while_told(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	unsigned one = 1;
	struct box b = {.name = "b", .alloc = "cpus 8"};
	watch_one(w, "/pods/a");
	box_run(w, &b);
	struct ctr *ctr = box_ctr(w, "b");
	ctr->acked.shares = 77; /* something to say to b, so that a batch is outstanding */
	struct txn *t = txn_begin(w->p->env.cache);
	txn_stage(t, ctr)->shares = 78;
	txn_commit(t);
	txn_end(t);
	updates_add(w->p, ctr);
	assert_non_null(updates_next(w->p, &n));
	write_at(w, GROUP "cpuset.cpus", "5");
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(loop_timer_arm(w->timer, 2), 0);
		assert_int_equal(loop_run(w->loop), 0);
	}
	assert_int_equal(found(w), 0);
	write_at(w, GROUP "cpuset.cpus", "0-3");
	updates_acked(w->p);
	world_until(w, is_watched, &one);
	assert_int_equal(found(w), 0);
}

static bool is_asking(struct world *w, void *arg)
{
	return w->p->verify.running;
}

/* Checks that a value read during an update, and evaluated after the runtime's acknowledgement,
 * is no drift. */
static void test_not_told_just_before(void **state)
{
	struct world *w = *state;
	uint32_t n = 0;
	unsigned one = 1;
	struct box b = {.name = "b", .alloc = "cpus 8"};
	watch_one(w, "/pods/a");
	box_run(w, &b);
	struct ctr *ctr = box_ctr(w, "b");
	ctr->acked.shares = 77;
	struct txn *t = txn_begin(w->p->env.cache);
	txn_stage(t, ctr)->shares = 78;
	txn_commit(t);
	txn_end(t);
	updates_add(w->p, ctr);
	assert_non_null(updates_next(w->p, &n));
	write_at(w, GROUP "cpuset.cpus", "5");
	world_until(w, is_asking, NULL);
	(void)usleep(20000); /* the worker reads, the loop does not hear of it yet */
	write_at(w, GROUP "cpuset.cpus", "0-3");
	updates_acked(w->p);
	world_until(w, is_watched, &one);
	assert_int_equal(found(w), 0);
}

/* Checks that the watch ends with the container, and starts with the daemon. */
static void test_comes_and_goes(void **state)
{
	struct world *w = *state;
	unsigned none = 0, one = 1;
	watch_one(w, "/pods/a");
	const struct box list[] = {{.name = "a",
				    .alloc = "cpus 0-3; mems 0",
				    .cgroups_path = "/pods/a",
				    .state = RP_STATE_RUNNING,
				    .res = {.cpus = "0-3", .mems = "0"}}};
	world_stop(w);
	world_must_start(w);
	w->p->verify.delay_ms = 1;
	(void)boxes_sync(w, list, 1);
	world_until(w, is_watched, &one);
	(void)boxes_sync(w, NULL, 0);
	world_until(w, is_watched, &none);
}

/* ---- culprits -------------------------------------------------------------------------------- */

static struct rp_idset set(const char *text)
{
	struct rp_idset s;
	assert_int_equal(rp_idset_parse(&s, text, RP_CPUS_MAX), 0);
	return s;
}

static const char *swapped(const char *text)
{
	static char buf[256];
	struct rp_idset s = set(text), out;
	if (!drift_swap_bytes(rp_ids_of(&s), &out))
		return "-";
	(void)rp_ids_format(rp_ids_of(&out), buf, sizeof buf);
	return buf;
}

static void test_swap(void **state)
{
	assert_string_equal(swapped(""), "-");
	assert_string_equal(swapped("0-7"), "-");
	assert_string_equal(swapped("8"), "0");
	assert_string_equal(swapped("0-3,8"), "0,8-11");
	assert_string_equal(swapped("0-15"), "0-15");
	assert_string_equal(swapped("1,17"), "1,17");
	assert_string_equal(swapped("31"), "7");
}

static enum culprit blame(struct world *w, const char *path, const char *expected, const char *is,
			  bool all)
{
	struct rp_idset a = set(expected), b = set(is);
	struct drift_traces traces = {0};
	return drift_blame(&w->p->root, &traces, path, rp_ids_of(&a), rp_ids_of(&b), all);
}

#define SCOPE "kubepods.slice:cri-containerd:x"

static void test_culprits(void **state)
{
	struct world *w = *state;
	assert_int_equal(blame(w, "/pods/a", "0-3,8", "0,8-11", false), CULPRIT_UNKNOWN);
	assert_int_equal(blame(w, SCOPE, "0-3,8", "0,8-11", false), CULPRIT_RUNC);
	assert_int_equal(blame(w, SCOPE, "0-3", "0-15", true), CULPRIT_SYSTEMD);
	assert_int_equal(blame(w, SCOPE, "0-3", "", false), CULPRIT_SYSTEMD);
	assert_int_equal(blame(w, SCOPE, "0-3", "4", false), CULPRIT_UNKNOWN);
	assert_int_equal(blame(w, "/pods/a", "0-3", "0-15", true), CULPRIT_RESET);
	tree_put(&w->tree, "proc/77/comm", "tuned\n");
	tree_put(&w->tree, "proc/78/other", "\n");
	assert_int_equal(blame(w, "/pods/a", "0-3", "4", false), CULPRIT_TUNED);
	tree_put(&w->tree, "proc/77/comm", "cgrulesengd\n");
	assert_int_equal(blame(w, "/pods/a", "0-3", "4", false), CULPRIT_CGRULES);
	tree_put(&w->tree, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"none\"}");
	assert_int_equal(blame(w, "/pods/a", "0-3", "4", false), CULPRIT_CGRULES);
	tree_put(&w->tree, "var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"static\"}");
	assert_int_equal(blame(w, "/pods/a", "0-3", "4", false), CULPRIT_KUBELET);
	for (unsigned c = 0; c < N_CULPRITS; c++) {
		assert_true(*culprit_text((enum culprit)c));
		assert_true(*culprit_hint((enum culprit)c));
	}
}

/* Checks that a check walks /proc once for any number of containers. */
static void test_one_walk(void **state)
{
	struct world *w = *state;
	struct drift_traces look = {0}, next = {0};
	struct rp_idset a = set("0-3,8"), b = set("4"), swap = set("0,8-11");
	struct rp_ids expected = rp_ids_of(&a), found = rp_ids_of(&b);
	const struct fs_root *root = &w->p->root;
	tree_put(&w->tree, "proc/77/comm", "tuned\n");
	assert_int_equal(drift_blame(root, &look, SCOPE, expected, rp_ids_of(&swap), false),
			 CULPRIT_RUNC);
	assert_false(look.known); /* the blame needed no search for processes */
	assert_int_equal(drift_blame(root, &look, "/pods/a", expected, found, false),
			 CULPRIT_TUNED);
	tree_put(&w->tree, "proc/77/comm", "cgrulesengd\n");
	assert_int_equal(drift_blame(root, &look, "/pods/b", expected, found, false),
			 CULPRIT_TUNED);
	assert_int_equal(drift_blame(root, &next, "/pods/b", expected, found, false),
			 CULPRIT_CGRULES);
}

/* ---- a worker that takes nothing ------------------------------------------------------------- */

static int wait_for_end(void *arg)
{
	char c;
	return (int)read(*(int *)arg, &c, 1);
}

static bool put_off(struct world *w, void *arg)
{
	return box_ctr(w, "a")->verify.from_ms > *(uint64_t *)arg;
}

/* Checks that a worker that has been stopped but still hangs refuses the check, which is
 * repeated later. */
static void test_refused_job(void **state)
{
	struct world *w = *state;
	static struct worker *busy; /* never freed, because its job hangs */
	uint64_t one = 1;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	watch_one(w, "/pods/a");
	struct ctr *a = box_ctr(w, "a");
	busy = worker_new(w->loop, "busy");
	assert_int_equal(worker_submit(busy, wait_for_end, NULL, &ends[0]), 0);
	assert_ptr_equal(worker_free_within(busy, 1), busy);
	struct worker *disk = w->p->disk;
	w->p->disk = busy;
	write_at(w, GROUP "cpuset.cpus", "5");
	for (unsigned i = 0; i < 4; i++) {
		uint64_t from = a->verify.from_ms;
		world_until(w, put_off, &from);
	}
	assert_int_equal(found(w), 0);
	w->p->disk = disk;
	world_until(w, has_found, &one);
	assert_int_equal(close(ends[1]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(test_noticed),	 world_test(test_amounts),
		world_test(test_amounts_v1),	 world_test(test_backs_off),
		world_test(test_not_while_told), world_test(test_not_told_just_before),
		world_test(test_comes_and_goes), cmocka_unit_test(test_swap),
		world_test(test_culprits),	 world_test(test_one_walk),
		world_test(test_refused_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
