/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up sysfs trees in a temporary folder. */
#ifndef T_TOPO_TREE_H
#define T_TOPO_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/lib/topo/topo.h"
#include "core/lib/util/fs.h"

#define CPU "sys/devices/system/cpu"
#define NODE "sys/devices/system/node"

struct tree {
	char dir[64];
	struct fs_root root;
};

/* As many of each below one of the level above; CPUs are numbered in this order, and threads next
 * to each other. */
struct machine {
	unsigned packages, dies, nodes, cores, threads;
	unsigned l2_cores, l3_cores; /* cores that share one; 0: one a core, one a package */
};

static inline int tree_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static inline void tree_path(const struct tree *t, const char *path, char *buf, size_t size)
{
	assert_true(snprintf(buf, size, "%s/%s", t->dir, path) < (int)size);
}

static inline void tree_del(const struct tree *t, const char *path)
{
	char full[512];
	struct stat st;
	tree_path(t, path, full, sizeof full);
	if (lstat(full, &st) == 0)
		assert_int_equal(nftw(full, tree_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void tree_parents(const struct tree *t, const char *path)
{
	char full[512];
	tree_path(t, path, full, sizeof full);
	for (char *p = full + strlen(t->dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
}

static inline void tree_put_bytes(const struct tree *t, const char *path, const void *data,
				  size_t n)
{
	char full[512];
	tree_path(t, path, full, sizeof full);
	tree_parents(t, path);
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	assert_int_equal(close(fd), 0);
}

static inline void __attribute__((format(printf, 3, 4)))
tree_put(const struct tree *t, const char *path, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	assert_in_range(n, 0, sizeof text - 1);
	tree_put_bytes(t, path, text, (size_t)n);
}

static inline void __attribute__((format(printf, 4, 5)))
tree_put_cpu(const struct tree *t, unsigned cpu, const char *file, const char *fmt, ...)
{
	char path[128], text[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)snprintf(path, sizeof path, CPU "/cpu%u/%s", cpu, file);
	tree_put(t, path, "%s\n", text);
}

static inline void tree_del_cpu(const struct tree *t, unsigned cpu, const char *file)
{
	char path[128];
	(void)snprintf(path, sizeof path, CPU "/cpu%u/%s", cpu, file);
	tree_del(t, path);
}

static inline void tree_link(const struct tree *t, const char *target, const char *path)
{
	char full[512];
	tree_path(t, path, full, sizeof full);
	tree_parents(t, path);
	assert_int_equal(symlink(target, full), 0);
}

static inline void tree_cache(const struct tree *t, unsigned cpu, unsigned index, unsigned level,
			      const char *type, unsigned kib, unsigned id, const char *cpus)
{
	char file[64];
	const struct {
		const char *name;
		unsigned value;
	} numbers[] = {{"level", level}, {"id", id}};
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(file, sizeof file, "cache/index%u/%s", index, numbers[i].name);
		tree_put_cpu(t, cpu, file, "%u", numbers[i].value);
	}
	(void)snprintf(file, sizeof file, "cache/index%u/type", index);
	tree_put_cpu(t, cpu, file, "%s", type);
	(void)snprintf(file, sizeof file, "cache/index%u/size", index);
	tree_put_cpu(t, cpu, file, "%uK", kib);
	(void)snprintf(file, sizeof file, "cache/index%u/shared_cpu_list", index);
	tree_put_cpu(t, cpu, file, "%s", cpus);
}

static inline void tree_node(const struct tree *t, unsigned node, const char *cpus,
			     unsigned long kib, const char *distances)
{
	char path[96];
	(void)snprintf(path, sizeof path, NODE "/node%u/cpulist", node);
	tree_put(t, path, "%s\n", cpus);
	(void)snprintf(path, sizeof path, NODE "/node%u/distance", node);
	tree_put(t, path, "%s\n", distances);
	(void)snprintf(path, sizeof path, NODE "/node%u/meminfo", node);
	tree_put(t, path, "Node %u MemTotal:       %lu kB\nNode %u MemFree: 1 kB\n", node, kib,
		 node);
}

/* Returns the CPUs of the group of `size` CPUs that contains cpu, as a list. */
static inline const char *tree_group(char buf[32], unsigned cpu, unsigned size)
{
	unsigned first = cpu / size * size;
	if (size == 1)
		(void)snprintf(buf, 32, "%u", cpu);
	else
		(void)snprintf(buf, 32, "%u-%u", first, first + size - 1);
	return buf;
}

static inline void tree_machine_cpu(const struct tree *t, const struct machine *m, unsigned cpu)
{
	unsigned core = m->threads, node = core * m->cores, die = node * m->nodes,
		 package = die * m->dies;
	unsigned l2 = core * (m->l2_cores ? m->l2_cores : 1);
	unsigned l3 = m->l3_cores ? core * m->l3_cores : package;
	char g[32];
	tree_put_cpu(t, cpu, "topology/physical_package_id", "%u", cpu / package);
	tree_put_cpu(t, cpu, "topology/die_id", "%u", cpu % package / die);
	tree_put_cpu(t, cpu, "topology/cluster_id", "%u", cpu / l2 * l2);
	tree_put_cpu(t, cpu, "topology/core_id", "%u", cpu % package / core);
	tree_put_cpu(t, cpu, "topology/core_cpus_list", "%s", tree_group(g, cpu, core));
	tree_put_cpu(t, cpu, "topology/die_cpus_list", "%s", tree_group(g, cpu, die));
	tree_put_cpu(t, cpu, "topology/package_cpus_list", "%s", tree_group(g, cpu, package));
	tree_cache(t, cpu, 0, 1, "Data", 32, cpu / core, tree_group(g, cpu, core));
	tree_cache(t, cpu, 1, 1, "Instruction", 64, cpu / core, tree_group(g, cpu, core));
	tree_cache(t, cpu, 2, 2, "Unified", 1024, cpu / l2, tree_group(g, cpu, l2));
	tree_cache(t, cpu, 3, 3, "Unified", 16384, cpu / l3, tree_group(g, cpu, l3));
}

static inline void tree_machine(const struct tree *t, const struct machine *m)
{
	unsigned per_node = m->threads * m->cores;
	unsigned n_nodes = m->packages * m->dies * m->nodes;
	unsigned n = n_nodes * per_node;
	static const char *const lists[] = {"possible", "present", "online"};
	for (unsigned i = 0; i < 3; i++) {
		char path[64];
		(void)snprintf(path, sizeof path, CPU "/%s", lists[i]);
		tree_put(t, path, "0-%u\n", n - 1);
	}
	tree_put(t, CPU "/isolated", "\n");
	for (unsigned cpu = 0; cpu < n; cpu++)
		tree_machine_cpu(t, m, cpu);
	for (unsigned node = 0; node < n_nodes; node++) {
		char cpus[32], distances[512] = "";
		for (unsigned to = 0; to < n_nodes; to++)
			(void)snprintf(distances + strlen(distances),
				       sizeof distances - strlen(distances), "%s%u", to ? " " : "",
				       to == node ? 10 : 20);
		tree_node(t, node, tree_group(cpus, node * per_node, per_node), 1048576, distances);
	}
	tree_put(t, NODE "/online", "0-%u\n", n_nodes - 1);
	tree_put(t, NODE "/has_memory", "0-%u\n", n_nodes - 1);
	tree_put(t, NODE "/has_normal_memory", "0-%u\n", n_nodes - 1);
	tree_put(t, "proc/meminfo", "MemTotal:       %u kB\nMemFree:        0 kB\n",
		 n_nodes * 1048576);
}

static inline void tree_init(struct tree *t)
{
	struct err err = ERR_INIT;
	(void)snprintf(t->dir, sizeof t->dir, "/tmp/t_topo.XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(fs_root_open(&t->root, t->dir, &err), 0);
}

static inline void tree_fini(struct tree *t)
{
	fs_root_close(&t->root);
	assert_int_equal(nftw(t->dir, tree_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Sets up a topology of 2 packages of 2 nodes of 2 cores of 2 threads, for cmocka. */
static inline int tree_setup(void **state)
{
	struct tree *t = calloc(1, sizeof *t);
	assert_non_null(t);
	tree_init(t);
	tree_machine(t, &(struct machine){2, 1, 2, 2, 2, 0, 0});
	*state = t;
	return 0;
}

static inline int tree_teardown(void **state)
{
	tree_fini(*state);
	free(*state);
	return 0;
}

static inline struct topo *tree_read(const struct tree *t)
{
	struct topo *topo = NULL;
	struct err err = ERR_INIT;
	if (topo_read(&t->root, &topo, &err))
		fail_msg("%s", err.text);
	return topo;
}

/* Reads the topology and checks that a note contains `part`. */
static inline struct topo *tree_read_noted(const struct tree *t, const char *part)
{
	struct topo *topo = tree_read(t);
	for (uint32_t i = 0; i < topo_n_notes(topo); i++)
		if (strstr(topo_note(topo, i), part))
			return topo;
	fail_msg("no note has '%s', the first of %u is '%s'", part, topo_n_notes(topo),
		 topo_n_notes(topo) ? topo_note(topo, 0) : "");
	return topo;
}

static inline void tree_refuses(const struct tree *t, int code, const char *part)
{
	struct topo *topo = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(topo_read(&t->root, &topo, &err), code);
	assert_null(topo);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not tell '%s'", err.text, part);
}

static inline void check_ids(struct rp_ids ids, const char *expected, const char *file, int line)
{
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(ids, text, sizeof text);
	_assert_string_equal(text, expected, file, line);
}
#define assert_ids(ids, expected) check_ids((ids), (expected), __FILE__, __LINE__)

static inline struct rp_cpu_info cpu_of(struct topo *t, uint32_t cpu)
{
	struct rp_cpu_info info = {.size = sizeof info};
	assert_int_equal(topo_cpu(t, cpu, &info), 0);
	return info;
}

static inline struct rp_node_info node_of(const struct topo *t, uint32_t node)
{
	struct rp_node_info info = {.size = sizeof info};
	assert_int_equal(topo_node(t, node, &info), 0);
	return info;
}

static inline struct rp_unit_info unit_of(const struct topo *t, uint32_t level, uint32_t index)
{
	struct rp_unit_info info = {.size = sizeof info};
	assert_int_equal(topo_unit(t, level, index, &info), 0);
	return info;
}

static inline struct rp_cache_info cache_of(const struct topo *t, uint32_t index)
{
	struct rp_cache_info info = {.size = sizeof info};
	assert_int_equal(topo_cache(t, index, &info), 0);
	return info;
}

#define tree_test(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

#endif
