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

static struct topo *topo_of(const char *name)
{
	char path[256];
	struct fs_root root;
	struct topo *t;
	struct err err = ERR_INIT;
	path_of(name, path, sizeof path);
	if (fs_root_open(&root, path, &err) || topo_read(&root, &t, &err))
		fail_msg("%s: %s", name, err.text);
	fs_root_close(&root);
	return t;
}

static void check_set(struct rp_ids set, const char *expected)
{
	char text[4096];
	(void)rp_ids_format(set, text, sizeof text);
	assert_string_equal(text, expected);
}

/* Checks the CPUs of a unit. */
static void check_unit(const struct topo *t, uint32_t level, uint32_t unit, const char *expected)
{
	struct rp_unit_info info = {.size = sizeof info};
	assert_int_equal(topo_unit(t, level, unit, &info), 0);
	check_set(info.cpus, expected);
}

static void check_node(const struct topo *t, uint32_t node, const char *expected)
{
	struct rp_node_info info = {.size = sizeof info};
	assert_int_equal(topo_node(t, node, &info), 0);
	check_set(info.cpus, expected);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void siblings_near_and_far(void **state)
{
	write_tree("\"n4c16\"", "near");
	struct topo *t = topo_of("near");
	check_set(topo_ids(t, RP_CPUS_ONLINE), "0-15");
	check_unit(t, RP_LEVEL_CORE, 1, "2-3");
	check_node(t, 2, "8-11");
	check_unit(t, RP_LEVEL_PACKAGE, 1, "8-15");
	check_unit(t, RP_LEVEL_DIE, 0, "0-7");
	check_unit(t, RP_LEVEL_L3, 1, "8-15");
	check_set(topo_ids(t, RP_NODES_MEMORY), "0-3");
	assert_int_equal(topo_memory(t), INT64_C(8) << 30);
	struct rp_cpu_info cpu = {.size = sizeof cpu};
	assert_int_equal(topo_cpu(t, 16, &cpu), -ENOENT);
	assert_int_equal(topo_cpu(t, 9, &cpu), 0);
	assert_int_equal(cpu.node_id, 2);
	topo_free(t);
	write_tree("{\"base\": \"n4c16\", \"numbering\": \"far\"}", "far");
	t = topo_of("far");
	check_unit(t, RP_LEVEL_CORE, 0, "0,8");
	check_node(t, 1, "2-3,10-11");
	check_unit(t, RP_LEVEL_PACKAGE, 1, "4-7,12-15");
	topo_free(t);
}

static void kinds_and_caches(void **state)
{
	write_tree("\"laptop\"", "laptop");
	struct topo *t = topo_of("laptop");
	assert_int_equal(topo_n_units(t, RP_LEVEL_CORE), 12);
	check_unit(t, RP_LEVEL_CORE, 3, "6-7");
	check_unit(t, RP_LEVEL_CORE, 4, "8");
	topo_free(t);
	write_tree("\"l3-domains\"", "l3");
	t = topo_of("l3");
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 8);
	check_unit(t, RP_LEVEL_L3, 1, "8-15,72-79");
	topo_free(t);
	write_tree(
		"{\"packages\": 2, \"dies\": 2, \"nodes\": 2, \"caches\": {\"l3Shared\": \"die\"}}",
		"dies");
	t = topo_of("dies");
	assert_int_equal(topo_n_units(t, RP_LEVEL_DIE), 4);
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 4);
	assert_int_equal(topo_n_units(t, RP_LEVEL_NODE), 8);
	topo_free(t);
	write_tree("{\"nodes\": 2, \"cores\": 2, \"caches\": {\"l3Shared\": \"node\", \"l2\": 0}}",
		   "nodes");
	t = topo_of("nodes");
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 2);
	topo_free(t);
	write_tree("{\"cores\": 2, \"caches\": {\"l3\": 0}}", "none");
	t = topo_of("none");
	assert_int_equal(topo_n_units(t, RP_LEVEL_L3), 0);
	topo_free(t);
}

static void memory_without_cpus(void **state)
{
	write_tree("\"hbm-cxl\"", "hbm");
	struct topo *t = topo_of("hbm");
	check_set(topo_ids(t, RP_NODES_ONLINE), "0-5");
	check_node(t, 3, "");
	assert_int_equal(topo_memory(t), INT64_C(14) << 30);
	topo_free(t);
	write_tree("\"no-numa\"", "flat");
	t = topo_of("flat");
	check_set(topo_ids(t, RP_NODES_ONLINE), "0");
	check_node(t, 0, "0-7");
	topo_free(t);
	write_tree("{\"base\": \"n4c16\", \"memory\": 0, \"memoryNodes\": [{\"memory\": \"1Gi\"}]}",
		   "bare");
	t = topo_of("bare");
	check_set(topo_ids(t, RP_NODES_MEMORY), "4");
	topo_free(t);
}

static void hot_plug(void **state)
{
	write_tree("\"n4c16\"", "plug");
	write_tree("{\"base\": \"n4c16\", \"offline\": \"3,8-11\"}", "plug");
	struct topo *t = topo_of("plug");
	check_set(topo_ids(t, RP_CPUS_ONLINE), "0-2,4-7,12-15");
	check_set(topo_ids(t, RP_CPUS_PRESENT), "0-15");
	check_unit(t, RP_LEVEL_CORE, 1, "2");
	check_node(t, 2, "");
	topo_free(t);
	char path[256];
	path_of("plug/sys/devices/system/cpu/cpu8/topology", path, sizeof path);
	assert_int_not_equal(access(path, F_OK), 0);
	write_tree("\"n4c16\"", "plug");
	t = topo_of("plug");
	check_set(topo_ids(t, RP_CPUS_ONLINE), "0-15");
	check_unit(t, RP_LEVEL_CORE, 1, "2-3");
	topo_free(t);
	assert_int_equal(access(path, F_OK), 0);
}

static void isolated(void **state)
{
	write_tree("\"isolated\"", "isolated");
	struct topo *t = topo_of("isolated");
	check_set(topo_ids(t, RP_CPUS_ISOLATED), "12-15");
	topo_free(t);
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
	struct fs_root root;
	struct topo *t;
	struct err err = ERR_INIT;
	assert_true(fs_root_open(&root, "/nonexistent", &err) < 0);
	assert_int_equal(fs_root_open(&root, "/proc/self", &err), 0);
	assert_true(topo_read(&root, &t, &err) < 0);
	assert_non_null(strstr(err.text, "/proc/self/sys/devices/system/cpu"));
	fs_root_close(&root);
}

/* ---- topology of nri-rp ---------------------------------------------------------------------- */

static void check_topology(const char *name, const struct machine *m)
{
	struct topo *t = topo_of(name);
	uint64_t memory = 0;
	for (unsigned i = 0; topo_note(t, i); i++)
		if (!strstr(topo_note(t, i), "memory nodes of devices"))
			fail_msg("%s: %s", name, topo_note(t, i));
	for (uint32_t i = 0; i < m->n_cpus; i++) {
		struct rp_cpu_info cpu = {.size = sizeof cpu};
		bool offline = rp_ids_has(rp_ids_of(&m->offline), i);
		assert_int_equal(topo_cpu(t, i, &cpu), offline ? -ENOENT : 0);
		if (offline)
			continue;
		assert_int_equal(cpu.package_id, m->cpus[i].package);
		assert_int_equal(cpu.node_id, m->cpus[i].node);
		assert_int_equal(cpu.core_id, m->cpus[i].core_id);
	}
	for (uint32_t i = 0; i < m->n_nodes; i++)
		memory += (uint64_t)m->nodes[i].memory;
	assert_true(rp_ids_equal(topo_ids(t, RP_CPUS_ISOLATED), rp_ids_of(&m->isolated)));
	assert_int_equal(topo_memory(t), memory);
	topo_free(t);
}

/* Checks that the topology reader reports no oddities of the shipped machines. */
static void shipped_machines_are_good(void **state)
{
	assert_true(n_shipped_machines >= 9);
	for (unsigned i = 0; i < n_shipped_machines; i++) {
		char quoted[64];
		const char *name = shipped_machines[i].name;
		json_t *description;
		struct machine m;
		if (str_eq(name, "c4096"))
			continue; /* a hundred thousand files; the scenarios have one */
		(void)snprintf(quoted, sizeof quoted, "\"%s\"", name);
		write_tree(quoted, name);
		assert_int_equal(machine_shipped(name, &description, NULL), 0);
		assert_int_equal(machine_from(description, &m, NULL), 0);
		check_topology(name, &m);
		machine_fini(&m);
		json_decref(description);
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
