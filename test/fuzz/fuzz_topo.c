/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/lib/topo on a tree with some of its files made odd. The tree is that of a machine of two
 * packages with a memory-only node; the input is a list of edits: one byte to choose the file, one
 * for what becomes of it, one for the length of its new contents, and these. The tree is put right
 * again after each input.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/topo/hotplug.h"
#include "core/lib/topo/topo.h"
#include "test/fuzz/check.h"
#include "test/unit/t_topo_check.h"

#define CPU "sys/devices/system/cpu"
#define NODE "sys/devices/system/node"
#define DEVICE "sys/devices/pci0/block/sda"
#define N_CPUS 8
#define EDITS_MAX 6
#define FILES_MAX 256

enum { EDIT_REPLACE, EDIT_REMOVE, EDIT_FOLDER, EDIT_LINK, EDIT_REPEAT, N_EDITS };

struct file {
	char *path, *text;
};

/* The tree, for the life of the process. */
struct tree {
	char dir[64];
	struct fs_root root;
	struct file files[FILES_MAX];
	unsigned n_files;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const struct tree *t, const char *path, const void *data, size_t n)
{
	int fd = openat(t->root.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	check(fd >= 0 && write(fd, data, n) == (ssize_t)n && close(fd) == 0);
}

static void __attribute__((format(printf, 3, 4)))
put(struct tree *t, const char *path, const char *fmt, ...)
{
	char dir[256];
	va_list ap;
	struct file *f = &t->files[t->n_files++];
	check(t->n_files <= FILES_MAX);
	f->path = strdup(path);
	va_start(ap, fmt);
	check(vasprintf(&f->text, fmt, ap) >= 0 && f->path);
	va_end(ap);
	(void)snprintf(dir, sizeof dir, "%s", path);
	for (char *p = dir; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdirat(t->root.fd, dir, 0755);
		*p = '/';
	}
	write_file(t, f->path, f->text, strlen(f->text));
}

static void put_cpu(struct tree *t, unsigned cpu)
{
	static const char *const types[] = {"Data", "Instruction", "Unified", "Unified"};
	static const char *const files[] = {"shared_cpu_list", "level", "type", "size", "id"};
	unsigned core = cpu / 2 * 2, package = cpu / 4 * 4;
	char path[128], text[64];
	const struct {
		const char *file;
		unsigned a, b;
	} topology[] = {
		{"physical_package_id", cpu / 4, 0},
		{"die_id", 0, 0},
		{"cluster_id", core, 0},
		{"core_id", cpu % 4 / 2, 0},
		{"core_cpus_list", core, core + 1},
		{"package_cpus_list", package, package + 3},
		{"die_cpus_list", package, package + 3},
	};
	for (unsigned i = 0; i < sizeof topology / sizeof topology[0]; i++) {
		(void)snprintf(path, sizeof path, CPU "/cpu%u/topology/%s", cpu, topology[i].file);
		if (topology[i].b)
			put(t, path, "%u-%u\n", topology[i].a, topology[i].b);
		else
			put(t, path, "%u\n", topology[i].a);
	}
	/* The others are read through the first CPU alone. */
	for (unsigned i = 0; i < 4 && cpu == core; i++) {
		for (unsigned k = 0; k < sizeof files / sizeof files[0]; k++) {
			unsigned level = i < 2 ? 1 : i;
			(void)snprintf(path, sizeof path, CPU "/cpu%u/cache/index%u/%s", cpu, i,
				       files[k]);
			if (k == 0)
				(void)snprintf(text, sizeof text, "%u-%u", i < 3 ? core : package,
					       i < 3 ? core + 1 : package + 3);
			else if (k == 2)
				(void)snprintf(text, sizeof text, "%s", types[i]);
			else
				(void)snprintf(text, sizeof text, k == 3 ? "%uK" : "%u",
					       k == 1	? level
					       : k == 3 ? 32u << i
							: cpu / 2);
			put(t, path, "%s\n", text);
		}
	}
}

static void put_rest(struct tree *t)
{
	for (unsigned node = 0; node < 3; node++) {
		static const char *const cpus[] = {"0-3", "4-7", ""};
		char path[64];
		(void)snprintf(path, sizeof path, NODE "/node%u/cpulist", node);
		put(t, path, "%s\n", cpus[node]);
		(void)snprintf(path, sizeof path, NODE "/node%u/distance", node);
		put(t, path, "%u %u %u\n", node == 0 ? 10 : 20, node == 1 ? 10 : 20,
		    node == 2 ? 10 : 20);
		(void)snprintf(path, sizeof path, NODE "/node%u/meminfo", node);
		put(t, path, "Node %u MemTotal: 1048576 kB\n", node);
	}
	put(t, CPU "/possible", "0-7\n");
	put(t, CPU "/present", "0-7\n");
	put(t, CPU "/online", "0-7\n");
	put(t, CPU "/isolated", "\n");
	put(t, CPU "/nohz_full", "(null)\n");
	put(t, CPU "/cpu0/cpu_capacity", "1024\n");
	put(t, CPU "/cpu4/cpu_capacity", "1024\n");
	put(t, CPU "/cpu0/cpufreq/base_frequency", "2000000\n");
	put(t, CPU "/cpu0/cpufreq/cpuinfo_max_freq", "3000000\n");
	put(t, CPU "/cpu0/cpufreq/energy_performance_preference", "power\n");
	put(t, NODE "/online", "0-2\n");
	put(t, NODE "/has_memory", "0-2\n");
	put(t, NODE "/has_normal_memory", "0-1\n");
	put(t, "sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
	put(t, "sys/devices/virtual/memory_tiering/memory_tier9/nodelist", "2\n");
	put(t, "sys/bus/dax/devices/dax0.0/target_node", "2\n");
	put(t, "sys/devices/cpu_core/cpus", "0-3\n");
	put(t, "sys/devices/cpu_atom/cpus", "4-7\n");
	put(t, "proc/meminfo", "MemTotal: 3145728 kB\n");
	put(t, "sys/devices/pci0/numa_node", "1\n");
	put(t, "sys/devices/pci0/local_cpulist", "4-7\n");
	put(t, DEVICE "/slaves/x/numa_node", "0\n");
}

static const struct tree *the_tree(void)
{
	static struct tree tree;
	struct err err = ERR_INIT;
	if (tree.n_files)
		return &tree;
	(void)snprintf(tree.dir, sizeof tree.dir, "%s/fuzz_topo.XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	check(mkdtemp(tree.dir) && fs_root_open(&tree.root, tree.dir, &err) == 0);
	for (unsigned cpu = 0; cpu < N_CPUS; cpu++)
		put_cpu(&tree, cpu);
	put_rest(&tree);
	return &tree;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void __attribute__((destructor)) remove_tree(void)
{
	const struct tree *t = the_tree();
	(void)nftw(t->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void edit(const struct tree *t, const struct file *f, unsigned how, const uint8_t *data,
		 size_t n)
{
	if (how == EDIT_REPLACE) {
		write_file(t, f->path, data, n);
		return;
	}
	if (how == EDIT_REPEAT) {
		char text[40000];
		for (size_t i = 0; i < sizeof text; i++)
			text[i] = n ? (char)data[i % n] : ' ';
		write_file(t, f->path, text, sizeof text);
		return;
	}
	(void)unlinkat(t->root.fd, f->path, 0);
	if (how == EDIT_FOLDER)
		(void)mkdirat(t->root.fd, f->path, 0755);
	if (how == EDIT_LINK) {
		char target[256];
		(void)snprintf(target, sizeof target, "%.*s", (int)(n < 200 ? n : 200),
			       (const char *)data);
		check(symlinkat(target[0] ? target : ".", t->root.fd, f->path) == 0);
	}
}

static void restore(const struct tree *t, const struct file *f)
{
	if (unlinkat(t->root.fd, f->path, 0) && errno == EISDIR)
		check(unlinkat(t->root.fd, f->path, AT_REMOVEDIR) == 0);
	write_file(t, f->path, f->text, strlen(f->text));
}

static void look(const struct tree *t)
{
	static const char *const devices[] = {"/" DEVICE, "8:0", "/" CPU "/cpu2/cache/index3",
					      "/" NODE "/node2"};
	struct topo *topo = NULL, *again = NULL;
	struct err err = ERR_INIT;
	struct topo_change change;
	int rc = topo_read(&t->root, &topo, &err);
	check((rc == 0) == (topo != NULL) && (rc == 0 || err.text[0]));
	if (rc)
		return;
	topo_check(topo);
	for (unsigned i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		struct rp_idset cpus, nodes;
		if (topo_device_near(topo, devices[i], &cpus, &nodes))
			continue;
		check(rp_ids_subset(rp_ids_of(&cpus), topo_ids(topo, RP_CPUS_ONLINE)));
		check(rp_ids_subset(rp_ids_of(&nodes), topo_ids(topo, RP_NODES_ONLINE)));
	}
	/* Reading the same tree again returns the same snapshot. */
	check(topo_reread(topo, &again, &err) == 0 && !topo_diff(topo, again, &change));
	topo_free(again);
	topo_free(topo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tree *t = the_tree();
	const struct file *edited[EDITS_MAX];
	unsigned n_edits = 0;
	(void)hotplug_event_matters((const char *)data, size);
	while (size >= 3 && n_edits < EDITS_MAX) {
		const struct file *f = &t->files[data[0] % t->n_files];
		unsigned how = data[1] % N_EDITS;
		size_t n = data[2] < size - 3 ? data[2] : size - 3;
		edited[n_edits++] = f;
		restore(t, f); /* an edit before may have left something else there */
		edit(t, f, how, data + 3, n);
		data += 3 + n;
		size -= 3 + n;
	}
	look(t);
	for (unsigned i = 0; i < n_edits; i++)
		restore(t, edited[i]);
	return 0;
}
