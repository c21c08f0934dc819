/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a machine as files, with the names and formats of Linux' sysfs and procfs. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/machines/machine.h"
#include "core/lib/machines/tree.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"

#define CPU "sys/devices/system/cpu"
#define NODE "sys/devices/system/node"
/* Number of CPUs above which the bit masks beside the lists are left out. They are not needed and
 * would be most of the tree. */
#define MASKS_CPUS_MAX 512u

struct tree {
	const struct machine *m;
	int fd;
	struct buf text;
	struct rp_idset online;
	char list[RP_IDSET_TEXT_MAX];
	struct err *err;
	int failed; /* first error, after which no file is written */
};

/* ---- files ----------------------------------------------------------------------------------- */

static void tree_fail(struct tree *t, const char *path)
{
	if (!t->failed)
		t->failed = err_errno(t->err, -errno, "cannot write %s", path);
}

static void make_parents(struct tree *t, char *path)
{
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(t->fd, path, 0755) < 0 && errno != EEXIST)
			tree_fail(t, path);
		*p = '/';
	}
}

static int tree_create(struct tree *t, char *path)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(t->fd, path, flags, 0644);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	make_parents(t, path);
	return openat(t->fd, path, flags, 0644);
}

static void put_file(struct tree *t, char *path, const void *data, size_t len)
{
	if (t->failed)
		return;
	_close_ int fd = tree_create(t, path);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		tree_fail(t, path);
}

/* Writes the collected text to a file; the path is formatted as by printf. */
__attribute__((format(printf, 2, 3))) static void tree_do_put(struct tree *t, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof path, fmt, ap);
	va_end(ap);
	put_file(t, path, buf_text(&t->text), buf_len(&t->text));
	buf_reset(&t->text);
}

static void link_to(struct tree *t, const char *target, char *path)
{
	if (t->failed || symlinkat(target, t->fd, path) == 0 || errno == EEXIST)
		return;
	make_parents(t, path);
	if (symlinkat(target, t->fd, path) < 0)
		tree_fail(t, path);
}

static void add_list(struct tree *t, struct rp_ids ids)
{
	(void)rp_ids_format(ids, t->list, sizeof t->list);
	buf_printf(&t->text, "%s\n", t->list);
}

/* Appends a mask of 32 bits per word, the highest first. */
static void add_mask(struct tree *t, struct rp_ids ids, uint32_t n)
{
	for (uint32_t i = (n + 31) / 32; i-- > 0;)
		buf_printf(&t->text, "%08" PRIx32 "%s",
			   (uint32_t)(rp_ids_word(ids, i / 2) >> (i % 2 ? 32 : 0)), i ? "," : "\n");
}

static bool tree_online(const struct tree *t, uint32_t cpu)
{
	return rp_ids_has(rp_ids_of(&t->online), cpu);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

/* Collects the online CPUs of the same unit, given by a member of struct machine_cpu and optionally
 * the package. */
#define SAME(t, cpu, set, condition)                                                               \
	do {                                                                                       \
		rp_idset_clear(set);                                                               \
		for (uint32_t i_ = 0; i_ < (t)->m->n_cpus; i_++) {                                 \
			const struct machine_cpu *o = &(t)->m->cpus[i_];                           \
			if ((condition) && tree_online((t), i_))                                   \
				rp_idset_add((set), i_);                                           \
		}                                                                                  \
	} while (0)

static void put_sharers(struct tree *t, uint32_t cpu, struct rp_ids set, const char *list,
			const char *mask, const char *old)
{
	bool masks = t->m->n_cpus <= MASKS_CPUS_MAX;
	add_list(t, set);
	tree_do_put(t, CPU "/cpu%u/topology/%s", cpu, list);
	if (!masks)
		return;
	add_mask(t, set, t->m->n_cpus);
	tree_do_put(t, CPU "/cpu%u/topology/%s", cpu, mask);
	if (!old)
		return;
	add_list(t, set);
	tree_do_put(t, CPU "/cpu%u/topology/%s_list", cpu, old);
	add_mask(t, set, t->m->n_cpus);
	tree_do_put(t, CPU "/cpu%u/topology/%s", cpu, old);
}

static void put_topology(struct tree *t, uint32_t cpu)
{
	const struct machine_cpu *c = &t->m->cpus[cpu];
	struct rp_idset set;
	SAME(t, cpu, &set, o->core == c->core);
	put_sharers(t, cpu, rp_ids_of(&set), "core_cpus_list", "core_cpus", "thread_siblings");
	SAME(t, cpu, &set, o->package == c->package);
	put_sharers(t, cpu, rp_ids_of(&set), "package_cpus_list", "package_cpus", "core_siblings");
	SAME(t, cpu, &set, o->package == c->package && o->die == c->die);
	put_sharers(t, cpu, rp_ids_of(&set), "die_cpus_list", "die_cpus", NULL);
	SAME(t, cpu, &set, o->l2 == c->l2 && c->l2 != UINT32_MAX);
	put_sharers(t, cpu, rp_ids_of(&set), "cluster_cpus_list", "cluster_cpus", NULL);
	const struct {
		const char *file;
		uint32_t id;
	} ids[] = {{"physical_package_id", c->package},
		   {"die_id", c->die},
		   {"core_id", c->core_id},
		   {"cluster_id", c->l2 == UINT32_MAX ? 0 : c->l2}};
	for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
		buf_printf(&t->text, "%" PRIu32 "\n", ids[i].id);
		tree_do_put(t, CPU "/cpu%u/topology/%s", cpu, ids[i].file);
	}
}

struct cache {
	unsigned index, level;
	const char *type;
	int64_t bytes;
	uint32_t id;
};

static void put_cache(struct tree *t, uint32_t cpu, const struct cache *c, struct rp_ids sharers)
{
	const unsigned line = 64;
	char dir[80];
	if (!c->bytes)
		return;
	(void)snprintf(dir, sizeof dir, CPU "/cpu%u/cache/index%u", cpu, c->index);
	buf_printf(&t->text, "%u\n", c->level);
	tree_do_put(t, "%s/level", dir);
	buf_printf(&t->text, "%s\n", c->type);
	tree_do_put(t, "%s/type", dir);
	buf_printf(&t->text, "%" PRId64 "K\n", c->bytes >> 10);
	tree_do_put(t, "%s/size", dir);
	buf_printf(&t->text, "%" PRIu32 "\n", c->id);
	tree_do_put(t, "%s/id", dir);
	add_list(t, sharers);
	tree_do_put(t, "%s/shared_cpu_list", dir);
	if (t->m->n_cpus > MASKS_CPUS_MAX)
		return;
	add_mask(t, sharers, t->m->n_cpus);
	tree_do_put(t, "%s/shared_cpu_map", dir);
	buf_printf(&t->text, "%u\n", line);
	tree_do_put(t, "%s/coherency_line_size", dir);
}

static void put_caches(struct tree *t, uint32_t cpu)
{
	const struct machine_cpu *c = &t->m->cpus[cpu];
	const struct machine_kind *k = c->kind;
	struct rp_idset set;
	SAME(t, cpu, &set, o->core == c->core);
	put_cache(t, cpu, &(struct cache){0, 1, "Data", k->l1d, c->core}, rp_ids_of(&set));
	put_cache(t, cpu, &(struct cache){1, 1, "Instruction", k->l1i, c->core}, rp_ids_of(&set));
	SAME(t, cpu, &set, o->l2 == c->l2);
	put_cache(t, cpu, &(struct cache){2, 2, "Unified", k->l2, c->l2}, rp_ids_of(&set));
	SAME(t, cpu, &set, o->l3 == c->l3);
	put_cache(t, cpu, &(struct cache){3, 3, "Unified", t->m->l3, c->l3}, rp_ids_of(&set));
}

static void put_khz(struct tree *t, uint32_t cpu, const char *file, int64_t khz)
{
	if (!khz)
		return;
	buf_printf(&t->text, "%" PRId64 "\n", khz);
	tree_do_put(t, CPU "/cpu%u/cpufreq/%s", cpu, file);
}

static void put_frequency(struct tree *t, uint32_t cpu)
{
	const struct machine_frequency *f = &t->m->cpus[cpu].kind->frequency;
	put_khz(t, cpu, "base_frequency", f->base);
	put_khz(t, cpu, "cpuinfo_min_freq", f->min);
	put_khz(t, cpu, "cpuinfo_max_freq", f->max);
	put_khz(t, cpu, "scaling_min_freq", f->min);
	put_khz(t, cpu, "scaling_max_freq", f->max);
	if (!f->max)
		return;
	buf_add_str(&t->text, "powersave\n");
	tree_do_put(t, CPU "/cpu%u/cpufreq/scaling_governor", cpu);
	buf_add_str(&t->text, "balance_performance\n");
	tree_do_put(t, CPU "/cpu%u/cpufreq/energy_performance_preference", cpu);
}

static int remove_entry(int dir, const char *name);

/* Removes a directory and its contents of one or two levels. */
static void remove_folder(int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int again = fd >= 0 ? dup(fd) : -1;
	_closedir_ DIR *d = again >= 0 ? fdopendir(again) : NULL;
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			(void)remove_entry(fd, e->d_name);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

static int remove_entry(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	remove_folder(dir, name);
	return 0;
}

/* Removes the files that the kernel removes with a CPU. */
static void take_offline(struct tree *t, uint32_t cpu)
{
	static const char *const gone[] = {"topology", "cache", "cpufreq"};
	char dir[64];
	(void)snprintf(dir, sizeof dir, CPU "/cpu%u", cpu);
	_close_ int fd = openat(t->fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; fd >= 0 && i < sizeof gone / sizeof *gone; i++)
		remove_folder(fd, gone[i]);
}

static void put_cpu(struct tree *t, uint32_t cpu)
{
	char target[48], path[80];
	if (cpu) {
		buf_printf(&t->text, "%d\n", tree_online(t, cpu));
		tree_do_put(t, CPU "/cpu%u/online", cpu);
	}
	if (t->m->numa) {
		(void)snprintf(target, sizeof target, "../../node/node%u", t->m->cpus[cpu].node);
		(void)snprintf(path, sizeof path, CPU "/cpu%u/node%u", cpu, t->m->cpus[cpu].node);
		link_to(t, target, path);
		(void)snprintf(target, sizeof target, "../../cpu/cpu%u", cpu);
		(void)snprintf(path, sizeof path, NODE "/node%u/cpu%u", t->m->cpus[cpu].node, cpu);
		link_to(t, target, path);
	}
	if (!tree_online(t, cpu)) {
		take_offline(t, cpu);
		return;
	}
	put_topology(t, cpu);
	put_caches(t, cpu);
	put_frequency(t, cpu);
}

static void put_kinds(struct tree *t)
{
	struct rp_idset set[2];
	if (t->m->n_kinds < 2)
		return;
	for (unsigned efficient = 0; efficient < 2; efficient++) {
		rp_idset_clear(&set[efficient]);
		for (uint32_t i = 0; i < t->m->n_cpus; i++)
			if (t->m->cpus[i].kind->efficient == (bool)efficient && tree_online(t, i))
				rp_idset_add(&set[efficient], i);
		add_list(t, rp_ids_of(&set[efficient]));
		tree_do_put(t, "sys/devices/%s/cpus", efficient ? "cpu_atom" : "cpu_core");
	}
}

static void put_cpus(struct tree *t)
{
	const struct machine *m = t->m;
	struct rp_idset all;
	rp_idset_clear(&all);
	rp_idset_add_range(&all, 0, m->n_cpus - 1);
	static const char *const files[] = {"possible", "present"};
	for (unsigned i = 0; i < 2; i++) {
		add_list(t, rp_ids_of(&all));
		tree_do_put(t, CPU "/%s", files[i]);
	}
	add_list(t, rp_ids_of(&t->online));
	tree_do_put(t, CPU "/online");
	add_list(t, rp_ids_of(&m->offline));
	tree_do_put(t, CPU "/offline");
	add_list(t, rp_ids_of(&m->isolated));
	tree_do_put(t, CPU "/isolated");
	buf_printf(&t->text, "%u\n", RP_CPUS_MAX - 1);
	tree_do_put(t, CPU "/kernel_max");
	buf_printf(&t->text, "%d\n", m->kinds[0].threads > 1);
	tree_do_put(t, CPU "/smt/active");
	for (uint32_t i = 0; i < m->n_cpus; i++)
		put_cpu(t, i);
	put_kinds(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void add_meminfo(struct tree *t, int64_t bytes, const char *prefix)
{
	buf_printf(&t->text, "%sMemTotal:       %8" PRId64 " kB\n", prefix, bytes >> 10);
	buf_printf(&t->text, "%sMemFree:        %8" PRId64 " kB\n", prefix, (bytes >> 10) / 10 * 9);
	buf_printf(&t->text, "%sMemUsed:        %8" PRId64 " kB\n", prefix,
		   (bytes >> 10) - (bytes >> 10) / 10 * 9);
}

static void put_huge(struct tree *t, uint32_t node)
{
	static const char *const files[] = {"nr", "free"};
	for (uint32_t i = 0; i < t->m->n_huge; i++) {
		for (unsigned k = 0; k < 2; k++) {
			buf_printf(&t->text, "%" PRId64 "\n", t->m->huge[i].n);
			tree_do_put(t,
				    NODE "/node%u/hugepages/hugepages-%" PRIu64 "kB/%s_hugepages",
				    node, t->m->huge[i].page >> 10, files[k]);
		}
	}
}

static void put_node(struct tree *t, uint32_t node)
{
	const struct machine *m = t->m;
	struct rp_idset cpus;
	char prefix[24];
	rp_idset_clear(&cpus);
	for (uint32_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].node == node && tree_online(t, i))
			rp_idset_add(&cpus, i);
	add_list(t, rp_ids_of(&cpus));
	tree_do_put(t, NODE "/node%u/cpulist", node);
	add_mask(t, rp_ids_of(&cpus), m->n_cpus);
	tree_do_put(t, NODE "/node%u/cpumap", node);
	(void)snprintf(prefix, sizeof prefix, "Node %u ", node);
	add_meminfo(t, m->nodes[node].memory, prefix);
	tree_do_put(t, NODE "/node%u/meminfo", node);
	for (uint32_t i = 0; i < m->n_nodes; i++)
		buf_printf(&t->text, "%u%s", m->distances[node * m->n_nodes + i],
			   i + 1 < m->n_nodes ? " " : "\n");
	tree_do_put(t, NODE "/node%u/distance", node);
	if (m->nodes[node].package != UINT32_MAX)
		put_huge(t, node);
}

static void put_node_lists(struct tree *t)
{
	const struct machine *m = t->m;
	struct rp_idset all, memory, normal, with_cpus, devices;
	rp_idset_clear(&devices);
	rp_idset_clear(&all);
	rp_idset_clear(&memory);
	rp_idset_clear(&normal);
	rp_idset_clear(&with_cpus);
	for (uint32_t i = 0; i < m->n_nodes; i++) {
		rp_idset_add(&all, i);
		if (m->nodes[i].memory)
			rp_idset_add(&memory, i);
		if (m->nodes[i].memory && !m->nodes[i].movable)
			rp_idset_add(&normal, i);
		if (m->nodes[i].type == MEMORY_DEVICE)
			rp_idset_add(&devices, i);
	}
	for (uint32_t i = 0; i < m->n_cpus; i++)
		if (tree_online(t, i))
			rp_idset_add(&with_cpus, m->cpus[i].node);
	const struct {
		const char *file;
		const struct rp_idset *set;
	} lists[] = {{"online", &all},	      {"possible", &all},
		     {"has_memory", &memory}, {"has_normal_memory", &normal},
		     {"has_cpu", &with_cpus}, {"has_generic_initiator", &devices}};
	for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
		add_list(t, rp_ids_of(lists[i].set));
		tree_do_put(t, NODE "/%s", lists[i].file);
	}
}

/* Writes the tier of each kind of memory as the kernel does, the fastest first. */
static void put_tiers(struct tree *t)
{
	/* Device memory has no entry: its driver registers no memory tier. */
	static const unsigned tier_of[] = {
		[MEMORY_DRAM] = 4, [MEMORY_HBM] = 2, [MEMORY_CXL] = 6, [MEMORY_PMEM] = 22};
	for (unsigned type = 0; type < sizeof tier_of / sizeof *tier_of; type++) {
		struct rp_idset set;
		rp_idset_clear(&set);
		for (uint32_t i = 0; i < t->m->n_nodes; i++)
			if (t->m->nodes[i].type == type ||
			    (type == MEMORY_DRAM && t->m->nodes[i].type == MEMORY_DEVICE &&
			     t->m->nodes[i].memory))
				rp_idset_add(&set, i);
		if (rp_ids_empty(rp_ids_of(&set)))
			continue;
		add_list(t, rp_ids_of(&set));
		tree_do_put(t, "sys/devices/virtual/memory_tiering/memory_tier%u/nodelist",
			    tier_of[type]);
	}
}

static void put_memory(struct tree *t)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < t->m->n_nodes; i++)
		sum += t->m->nodes[i].memory;
	add_meminfo(t, sum, "");
	tree_do_put(t, "proc/meminfo");
	if (!t->m->numa)
		return;
	for (uint32_t i = 0; i < t->m->n_nodes; i++)
		put_node(t, i);
	put_node_lists(t);
	put_tiers(t);
}

/* ---- other files ----------------------------------------------------------------------------- */

static void put_proc(struct tree *t)
{
	for (uint32_t i = 0; i < t->m->n_cpus; i++) {
		const struct machine_cpu *c = &t->m->cpus[i];
		if (!tree_online(t, i))
			continue;
		buf_printf(&t->text,
			   "processor\t: %" PRIu32 "\nvendor_id\t: Simulated\nmodel name\t: %s\n"
			   "physical id\t: %" PRIu32 "\ncore id\t\t: %" PRIu32 "\n\n",
			   i, t->m->name, c->package, c->core_id);
	}
	tree_do_put(t, "proc/cpuinfo");
	buf_add_str(&t->text, "BOOT_IMAGE=/vmlinuz ro");
	if (!rp_ids_empty(rp_ids_of(&t->m->isolated))) {
		(void)rp_ids_format(rp_ids_of(&t->m->isolated), t->list, sizeof t->list);
		buf_printf(&t->text, " isolcpus=%s", t->list);
	}
	buf_add_str(&t->text, "\n");
	tree_do_put(t, "proc/cmdline");
	buf_add_str(&t->text, "cpuset cpu io memory hugetlb pids\n");
	tree_do_put(t, "sys/fs/cgroup/cgroup.controllers");
}

/* Writes a boot id, which is the same as long as the tree exists. */
static void put_boot(struct tree *t)
{
	static const char path[] = "proc/sys/kernel/random/boot_id";
	char id[64];
	struct fs_root root;
	if (faccessat(t->fd, path, F_OK, 0) == 0 || fs_root_open(&root, "/", NULL))
		return;
	if (fs_read(&root, "proc/sys/kernel/random/uuid", id, sizeof id) > 0)
		buf_printf(&t->text, "%s\n", id);
	fs_root_close(&root);
	tree_do_put(t, "%s", path);
}

int machine_write(const struct machine *m, const char *dir, struct err *err)
{
	struct tree t = {.m = m, .text = BUF_INIT, .err = err};
	int r = fs_mkdirs(dir, 0755, err);
	if (r)
		return r;
	_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "cannot open %s", dir);
	t.fd = fd;
	rp_idset_clear(&t.online);
	rp_idset_add_range(&t.online, 0, m->n_cpus - 1);
	rp_idset_andnot(&t.online, rp_ids_of(&t.online), rp_ids_of(&m->offline));
	put_cpus(&t);
	put_memory(&t);
	put_proc(&t);
	put_boot(&t);
	if (t.text.failed && !t.failed)
		t.failed = err_errno(err, -ENOMEM, "cannot write %s", dir);
	buf_fini(&t.text);
	return t.failed;
}
