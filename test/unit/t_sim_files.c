/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the simulated machine: steps write them, expectations check them. */
#include "core/nri-rp-sim/files.h"
#include "t_sim_one.h"

static int set_up(void **state)
{
	s = sim_made("{\"machine\": \"n4c16\", \"files\": {\"proc/interrupts\": \"7: 1 disk\\n\"},"
		     "\"cgroupFiles\": {\"cgroup.procs\": \"{pid}\\n\", \"blkio/blkio.weight\": "
		     "\"500\"}}");
	assert_step(s, "{\"existing\": {\"pod\": \"web\", \"containers\": [{\"name\": \"app\"}]}}");
	return 0;
}

/* Returns true if the expectation holds; false if it fails or cannot be evaluated. */
static bool holds(const char *text)
{
	return holds_or(text, NULL) > 0;
}

static void files_of_the_machine(void **state)
{
	assert_true(holds("file('proc/interrupts') == '7: 1 disk'"));
	assert_true(holds("file('/proc/interrupts') == '7: 1 disk'"));
	assert_true(holds("'disk' in file('proc/interrupts')"));
	assert_true(holds("'net' not in file('proc/interrupts')"));
	assert_false(holds("file('proc/nothing') == ''"));
	assert_step(s, "{\"files\": {\"proc/irq/7/smp_affinity_list\": \"0-3\\n\", \"sys/x\": 1}}");
	assert_true(
		holds("file('proc/irq/7/smp_affinity_list') == '0-3' and file('sys/x') == '1'"));
	assert_step(s, "{\"files\": {\"sys/x\": null, \"sys/never-there\": null}}");
	assert_false(holds("file('sys/x') == '1'"));
	assert_int_equal(sim_step(s, "{\"files\": {\"../x\": \"1\"}}", NULL), -EINVAL);
	assert_int_equal(sim_step(s, "{\"files\": {\"sys/../../x\": \"1\"}}", NULL), -EINVAL);
	assert_int_equal(sim_step(s, "{\"files\": {\"sys/x\": []}}", NULL), -EINVAL);
	assert_int_equal(sim_step(s, "{\"files\": \"sys/x\"}", NULL), -EINVAL);
}

static void files_of_cpus(void **state)
{
	assert_step(s, "{\"files\": {\"sys/devices/system/cpu/cpu2/x\": \"a\", "
		       "\"sys/devices/system/cpu/cpu3/x\": \"a\", "
		       "\"sys/devices/system/cpu/cpu4/x\": \"b\"}}");
	assert_true(holds("cpufile(2-3, 'x') == 'a'"));
	assert_false(holds("cpufile(2-4, 'x') == 'a'"));
	assert_false(holds("cpufile(2-4, 'x') == 'b'"));
	assert_false(holds("cpufile(2-5, 'x') == 'a'"));
	assert_false(holds("cpufile(2 - 2, 'x') == 'a'"));
}

static void files_of_cgroups(void **state)
{
	char text[64];
	(void)snprintf(text, sizeof text, "cgroup(app, 'cgroup.procs') == '%u'", s->ctrs->pid);
	assert_true(holds(text));
	assert_true(holds("cgroup(app, 'blkio/blkio.weight') == '500'"));
	assert_step(
		s,
		"{\"cgroup\": {\"container\": \"app\", \"files\": {\"io.max\": \"8:0 rbps=1\"}}}");
	assert_true(holds("cgroup(web/app, 'io.max') == '8:0 rbps=1'"));
	assert_int_equal(
		sim_step(s, "{\"cgroup\": {\"container\": \"none\", \"files\": {}}}", NULL),
		-ENOENT);
	assert_step(s,
		    "{\"existing\": {\"pod\": \"gone\", \"containers\": [{\"name\": \"bye\"}]}}");
	assert_true(holds("cgroup(bye, 'blkio/blkio.weight') == '500'"));
	files_remove_cgroup(s, s->ctrs->prev);
	assert_false(holds("cgroup(bye, 'blkio/blkio.weight') == '500'"));
}

static void what_was_given(void **state)
{
	_json_ json_t *nice = sim_json("{\"scheduler\": {\"nice\": 5, \"policy\": \"x\"}}");
	assert_int_equal(json_object_update(s->ctrs->given, nice), 0);
	assert_true(holds("given(app, 'scheduler/nice') == 5"));
	assert_true(holds("given(app, 'scheduler/policy') == 'x'"));
	assert_true(holds("given(app, 'scheduler/nothing') == ''"));
	assert_true(holds("given(app, 'nothing/at/all') == ''"));
}

static void links_of_the_machine(void **state)
{
	assert_step(s, "{\"files\": {\"sys/class/x/numa_node\": \"1\\n\"}}");
	assert_step(s, "{\"links\": {\"sys/dev/block/8:0\": \"../../class/x\"}}");
	assert_true(holds("file('/sys/dev/block/8:0/numa_node') == '1'"));
	assert_int_equal(sim_step(s, "{\"links\": {\"../x\": \"y\"}}", NULL), -EINVAL);
	assert_int_equal(sim_step(s, "{\"links\": {\"x\": [1]}}", NULL), -EINVAL);
	assert_int_equal(sim_step(s, "{\"links\": \"x\"}", NULL), -EINVAL);
}

/* Checks the exported file through the mount added at the creation. */
static void what_is_exported(void **state)
{
	char dir[PATH_MAX + 8];
	assert_true(holds("exported(app, 'SHARED_CPUS') == ''"));
	(void)snprintf(dir, sizeof dir, "%s/data", s->root);
	assert_step(s, "{\"files\": {\"data/resources.sh\": "
		       "\"SHARED_CPUS=\\\"0-3\\\"\\nALL_MEMS=\\\"0\\\"\\n\"}}");
	_json_ json_t *given = json_pack("{s[{ssss}]}", "mounts", "destination",
					 "/.nri-resource-policy", "source", dir);
	assert_int_equal(json_object_update(s->ctrs->given, given), 0);
	assert_true(holds("exported(app, 'SHARED_CPUS') == '0-3'"));
	assert_true(holds("exported(app, 'ALL_MEMS') == '0'"));
	assert_true(holds("exported(app, 'MEMS') == ''"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_the_machine), cmocka_unit_test(files_of_cpus),
		cmocka_unit_test(files_of_cgroups),	cmocka_unit_test(what_was_given),
		cmocka_unit_test(links_of_the_machine), cmocka_unit_test(what_is_exported),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
