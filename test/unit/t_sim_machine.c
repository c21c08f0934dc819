/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated machines: the files that are written, their parsed form, and the topology that
 * nri-rp reads. */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lib/machines/tree.h"
#include "core/lib/machines/shipped.h"
#include "core/lib/topo/topo.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"
#include "t_sim.h"

static char dir[] = "/tmp/t_sim_machine-XXXXXX";

static void path_of(const char *name, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/%s", dir, name);
}

static void write_tree(const char *description, const char *name)
{
	char path[256];
	struct machine m;
	struct err err = ERR_INIT;
	_json_ json_t *which = sim_json(description), *d = NULL;
	path_of(name, path, sizeof path);
	if (machine_describe(which, &d, &err) || machine_from(d, &m, &err))
		fail_msg("%s: %s", description, err.text);
	int r = machine_write(&m, path, &err);
	machine_fini(&m);
	if (r)
		fail_msg("%s: %s", description, err.text);
}

static struct view view_of(const char *name)
{
	char path[256];
	struct view v;
	struct err err = ERR_INIT;
	path_of(name, path, sizeof path);
	if (view_read(path, &v, &err))
		fail_msg("%s: %s", name, err.text);
	return v;
}

static void check_set(struct rp_ids set, const char *expected)
{
	char text[4096];
	(void)rp_ids_format(set, text, sizeof text);
	assert_string_equal(text, expected);
}

/* Checks the CPUs of a unit. */
static void check_unit(const struct view *v, enum view_level level, uint32_t unit,
		       const char *expected)
{
	struct rp_idset units, cpus;
	rp_idset_clear(&units);
	rp_idset_add(&units, unit);
	view_cpus(v, level, rp_ids_of(&units), &cpus);
	check_set(rp_ids_of(&cpus), expected);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void siblings_near_and_far(void **state)
{
	write_tree("\"n4c16\"", "near");
	struct view v = view_of("near");
	check_set(rp_ids_of(&v.online), "0-15");
	check_unit(&v, VIEW_CORE, 1, "2-3");
	check_unit(&v, VIEW_NODE, 2, "8-11");
	check_unit(&v, VIEW_PACKAGE, 1, "8-15");
	check_unit(&v, VIEW_DIE, 0, "0-7");
	check_unit(&v, VIEW_L3, 1, "8-15");
	check_set(rp_ids_of(&v.memory), "0-3");
	assert_int_equal(v.total_memory, INT64_C(8) << 30);
	assert_null(view_cpu(&v, 16));
	assert_int_equal(view_cpu(&v, 9)->unit[VIEW_NODE], 2);
	view_fini(&v);
	write_tree("{\"base\": \"n4c16\", \"numbering\": \"far\"}", "far");
	v = view_of("far");
	check_unit(&v, VIEW_CORE, 0, "0,8");
	check_unit(&v, VIEW_NODE, 1, "2-3,10-11");
	check_unit(&v, VIEW_PACKAGE, 1, "4-7,12-15");
	view_fini(&v);
}

static void kinds_and_caches(void **state)
{
	write_tree("\"laptop\"", "laptop");
	struct view v = view_of("laptop");
	assert_int_equal(v.n_units[VIEW_CORE], 12);
	check_unit(&v, VIEW_CORE, 3, "6-7");
	check_unit(&v, VIEW_CORE, 4, "8");
	view_fini(&v);
	write_tree("\"l3-domains\"", "l3");
	v = view_of("l3");
	assert_int_equal(v.n_units[VIEW_L3], 8);
	check_unit(&v, VIEW_L3, 1, "8-15,72-79");
	view_fini(&v);
	write_tree(
		"{\"packages\": 2, \"dies\": 2, \"nodes\": 2, \"caches\": {\"l3Shared\": \"die\"}}",
		"dies");
	v = view_of("dies");
	assert_int_equal(v.n_units[VIEW_DIE], 4);
	assert_int_equal(v.n_units[VIEW_L3], 4);
	assert_int_equal(v.n_units[VIEW_NODE], 8);
	view_fini(&v);
	write_tree("{\"nodes\": 2, \"cores\": 2, \"caches\": {\"l3Shared\": \"node\", \"l2\": 0}}",
		   "nodes");
	v = view_of("nodes");
	assert_int_equal(v.n_units[VIEW_L3], 2);
	view_fini(&v);
	write_tree("{\"cores\": 2, \"caches\": {\"l3\": 0}}", "none");
	v = view_of("none");
	assert_int_equal(v.n_units[VIEW_L3], 0);
	view_fini(&v);
}

static void memory_without_cpus(void **state)
{
	write_tree("\"hbm-cxl\"", "hbm");
	struct view v = view_of("hbm");
	check_set(rp_ids_of(&v.nodes), "0-5");
	check_unit(&v, VIEW_NODE, 3, "");
	assert_int_equal(v.total_memory, INT64_C(14) << 30);
	view_fini(&v);
	write_tree("\"no-numa\"", "flat");
	v = view_of("flat");
	check_set(rp_ids_of(&v.nodes), "0");
	check_unit(&v, VIEW_NODE, 0, "0-7");
	view_fini(&v);
	write_tree("{\"base\": \"n4c16\", \"memory\": 0, \"memoryNodes\": [{\"memory\": \"1Gi\"}]}",
		   "bare");
	v = view_of("bare");
	check_set(rp_ids_of(&v.memory), "4");
	view_fini(&v);
}

static void hot_plug(void **state)
{
	struct rp_idset nodes;
	write_tree("\"n4c16\"", "plug");
	write_tree("{\"base\": \"n4c16\", \"offline\": \"3,8-11\"}", "plug");
	struct view v = view_of("plug");
	check_set(rp_ids_of(&v.online), "0-2,4-7,12-15");
	check_set(rp_ids_of(&v.present), "0-15");
	check_unit(&v, VIEW_CORE, 1, "2");
	check_unit(&v, VIEW_NODE, 2, "");
	view_units(&v, VIEW_NODE, rp_ids_of(&v.online), &nodes);
	check_set(rp_ids_of(&nodes), "0-1,3");
	view_fini(&v);
	char path[256];
	path_of("plug/sys/devices/system/cpu/cpu8/topology", path, sizeof path);
	assert_int_not_equal(access(path, F_OK), 0);
	write_tree("\"n4c16\"", "plug");
	v = view_of("plug");
	check_set(rp_ids_of(&v.online), "0-15");
	check_unit(&v, VIEW_CORE, 1, "2-3");
	view_fini(&v);
	assert_int_equal(access(path, F_OK), 0);
}

static void isolated(void **state)
{
	write_tree("\"isolated\"", "isolated");
	struct view v = view_of("isolated");
	check_set(rp_ids_of(&v.isolated), "12-15");
	view_fini(&v);
}

static void bases(void **state)
{
	struct machine m;
	struct err err = ERR_INIT;
	_json_ json_t *d = sim_json("{\"base\": \"isolated\", \"memory\": \"1Gi\"}");
	assert_int_equal(machine_from(d, &m, &err), 0);
	assert_int_equal(m.n_cpus, 16);
	assert_int_equal(m.nodes[3].memory, 1 << 30);
	check_set(rp_ids_of(&m.isolated), "12-15");
	for (uint32_t i = 0; i < m.n_cpus; i++)
		assert_ptr_equal(m.cpus[i].kind, &m.kinds[0]);
	machine_fini(&m);
}

static void not_a_tree(void **state)
{
	struct view v;
	struct err err = ERR_INIT;
	assert_true(view_read("/nonexistent", &v, &err) < 0);
	assert_true(view_read("/proc/self", &v, &err) < 0);
	assert_non_null(strstr(err.text, "online"));
}

/* ---- topology of nri-rp ---------------------------------------------------------------------- */

static void check_topology(const char *name)
{
	char path[256];
	struct fs_root root;
	struct topo *t;
	struct err err = ERR_INIT;
	path_of(name, path, sizeof path);
	if (fs_root_open(&root, path, &err) || topo_read(&root, &t, &err))
		fail_msg("%s: %s", name, err.text);
	struct view v = view_of(name);
	for (unsigned i = 0; topo_note(t, i); i++)
		if (!strstr(topo_note(t, i), "memory nodes of devices"))
			fail_msg("%s: %s", name, topo_note(t, i));
	assert_true(rp_ids_equal(topo_ids(t, RP_CPUS_ONLINE), rp_ids_of(&v.online)));
	assert_true(rp_ids_equal(topo_ids(t, RP_CPUS_ISOLATED), rp_ids_of(&v.isolated)));
	assert_int_equal(topo_memory(t), v.total_memory);
	view_fini(&v);
	topo_free(t);
	fs_root_close(&root);
}

/* Checks that the topology reader reports no oddities of the shipped machines. */
static void shipped_machines_are_good(void **state)
{
	assert_true(n_shipped_machines >= 9);
	for (unsigned i = 0; i < n_shipped_machines; i++) {
		char quoted[64];
		const char *name = shipped_machines[i].name;
		if (str_eq(name, "c4096"))
			continue; /* a hundred thousand files; the scenarios have one */
		(void)snprintf(quoted, sizeof quoted, "\"%s\"", name);
		write_tree(quoted, name);
		check_topology(name);
	}
}

/* Checks that the program contains every file of conf/machines. */
static void all_are_shipped(void **state)
{
	unsigned n = 0;
	DIR *d = opendir("conf/machines");
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		json_t *machine;
		char *dot = strstr(e->d_name, ".yaml");
		if (!dot)
			continue;
		*dot = '\0';
		assert_int_equal(machine_shipped(e->d_name, &machine, NULL), 0);
		assert_string_equal(json_string_value(json_object_get(machine, "name")), e->d_name);
		assert_non_null(json_object_get(machine, "about"));
		json_decref(machine);
		n++;
	}
	(void)closedir(d);
	assert_int_equal(n, n_shipped_machines);
}

static int set_up(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siblings_near_and_far),
		cmocka_unit_test(kinds_and_caches),
		cmocka_unit_test(memory_without_cpus),
		cmocka_unit_test(hot_plug),
		cmocka_unit_test(isolated),
		cmocka_unit_test(bases),
		cmocka_unit_test(not_a_tree),
		cmocka_unit_test(shipped_machines_are_good),
		cmocka_unit_test(all_are_shipped),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
