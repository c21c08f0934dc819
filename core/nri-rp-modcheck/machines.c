/* SPDX-License-Identifier: Apache-2.0 */
/* Machines as trees of files: made-up ones, and copies of recorded ones. CPUs go on- and offline by their list alone. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <nri-rp/set.h>

#include "core/nri-rp-modcheck/check.h"
#include "core/util/cleanup.h"
#include "core/util/fs.h"
#include "core/util/str.h"

#define CPU_DIR "sys/devices/system/cpu"
#define NODE_DIR "sys/devices/system/node"
#define COPY_FILE_MAX 65536u
#define COPY_DEPTH_MAX 12u

/* As many of each below one of the level above. */
struct machine_shape {
	const char *name;
	uint32_t packages, nodes, cores, threads;
	uint32_t l3_cores; /* cores that share an L3 cache; 0: those of a package */
	bool far; /* second threads are numbered behind all first ones */
	bool no_numa;
	const char *isolated;
	uint32_t memory_nodes; /* without CPUs, one near each package */
};

static const struct machine_shape shapes[] = {
	{"small", 1, 1, 4, 1, 0, false, false, "", 0},
	{"laptop", 1, 1, 6, 2, 0, false, false, "", 0},
	{"no-numa", 1, 1, 8, 1, 0, false, true, "", 0},
	{"two-sockets", 2, 2, 2, 2, 0, false, false, "", 0},
	{"isolated", 2, 2, 2, 2, 0, false, false, "2-3,12", 0},
	{"memory-nodes", 2, 1, 4, 2, 0, true, false, "", 1},
	{"l3-domains", 1, 2, 12, 2, 4, true, false, "", 0},
	{"large", 2, 4, 8, 2, 4, true, false, "", 0},
};

static uint32_t n_nodes(const struct machine_shape *s)
{
	return s->packages * s->nodes;
}

static uint32_t n_cores(const struct machine_shape *s)
{
	return n_nodes(s) * s->cores;
}

static uint32_t core_of(const struct machine_shape *s, uint32_t cpu)
{
	return s->far ? cpu % n_cores(s) : cpu / s->threads;
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static int put(const struct machine *m, const char *path, const char *text, struct err *err)
{
	char full[PATH_MAX];
	if (snprintf(full, sizeof full, "%s/%s", m->root, path) >= (int)sizeof full)
		return err_set(err, -ENAMETOOLONG, "%s/%s", m->root, path);
	_close_ int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t len = strlen(text);
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return err_errno(err, -errno, "%s", full);
	return 0;
}

static int put_dir(const struct machine *m, const char *path, struct err *err)
{
	char full[PATH_MAX];
	if (snprintf(full, sizeof full, "%s/%s", m->root, path) >= (int)sizeof full)
		return err_set(err, -ENAMETOOLONG, "%s/%s", m->root, path);
	return fs_mkdirs(full, 0755, err);
}

static int put_ids(const struct machine *m, const char *path, const struct rp_idset *ids,
		   struct err *err)
{
	char text[RP_IDSET_TEXT_MAX + 1];
	uint32_t n = rp_ids_format(rp_ids_of(ids), text, RP_IDSET_TEXT_MAX);
	memcpy(text + n, "\n", 2);
	return put(m, path, text, err);
}

/* CPUs whose core lies in [first, first + n). */
static void cpus_of_cores(const struct machine_shape *s, uint32_t first, uint32_t n,
			  struct rp_idset *ret)
{
	rp_idset_clear(ret);
	for (uint32_t cpu = 0; cpu < n_cores(s) * s->threads; cpu++)
		if (core_of(s, cpu) - first < n)
			rp_idset_add(ret, cpu);
}

static int put_group(const struct machine *m, uint32_t cpu, const char *file, uint32_t size,
		     struct err *err)
{
	char path[256];
	struct rp_idset ids;
	cpus_of_cores(m->shape, core_of(m->shape, cpu) / size * size, size, &ids);
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/%s", cpu, file);
	return put_ids(m, path, &ids, err);
}

static int put_number(const struct machine *m, uint32_t cpu, const char *file, uint32_t number,
		      struct err *err)
{
	char path[256], text[32];
	(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/%s", cpu, file);
	(void)snprintf(text, sizeof text, "%u\n", number);
	return put(m, path, text, err);
}

static int put_cache(const struct machine *m, uint32_t cpu, uint32_t index, uint32_t level,
		     const char *type, uint32_t kib, uint32_t cores, struct err *err)
{
	char dir[160], path[200], text[32];
	(void)snprintf(dir, sizeof dir, CPU_DIR "/cpu%u/cache/index%u", cpu, index);
	int r = put_dir(m, dir, err);
	(void)snprintf(path, sizeof path, "cache/index%u/level", index);
	r = r ? r : put_number(m, cpu, path, level, err);
	(void)snprintf(path, sizeof path, "cache/index%u/id", index);
	r = r ? r : put_number(m, cpu, path, core_of(m->shape, cpu) / cores, err);
	(void)snprintf(path, sizeof path, "cache/index%u/shared_cpu_list", index);
	r = r ? r : put_group(m, cpu, path, cores, err);
	(void)snprintf(path, sizeof path, "%s/type", dir);
	(void)snprintf(text, sizeof text, "%s\n", type);
	r = r ? r : put(m, path, text, err);
	(void)snprintf(path, sizeof path, "%s/size", dir);
	(void)snprintf(text, sizeof text, "%uK\n", kib);
	return r ? r : put(m, path, text, err);
}

static int put_cpu(const struct machine *m, uint32_t cpu, struct err *err)
{
	const struct machine_shape *s = m->shape;
	uint32_t package = s->nodes * s->cores, core = core_of(s, cpu);
	char dir[160];
	(void)snprintf(dir, sizeof dir, CPU_DIR "/cpu%u/topology", cpu);
	int r = put_dir(m, dir, err);
	r = r ? r : put_number(m, cpu, "topology/physical_package_id", core / package, err);
	r = r ? r : put_number(m, cpu, "topology/die_id", 0, err);
	r = r ? r : put_number(m, cpu, "topology/core_id", core % package, err);
	r = r ? r : put_group(m, cpu, "topology/core_cpus_list", 1, err);
	r = r ? r : put_group(m, cpu, "topology/die_cpus_list", package, err);
	r = r ? r : put_group(m, cpu, "topology/package_cpus_list", package, err);
	r = r ? r : put_cache(m, cpu, 0, 1, "Data", 48, 1, err);
	r = r ? r : put_cache(m, cpu, 1, 2, "Unified", 2048, 1, err);
	return r ? r
		 : put_cache(m, cpu, 2, 3, "Unified", 32768, s->l3_cores ? s->l3_cores : package,
			     err);
}

/* Memory-only nodes follow the others; number n_nodes + p is near package p. */
static uint32_t package_of_node(const struct machine_shape *s, uint32_t node)
{
	return node < n_nodes(s) ? node / s->nodes : (node - n_nodes(s)) % s->packages;
}

static uint32_t distance(const struct machine_shape *s, uint32_t from, uint32_t to)
{
	bool near = package_of_node(s, from) == package_of_node(s, to);
	uint32_t slow = (from >= n_nodes(s) ? 5u : 0) + (to >= n_nodes(s) ? 5u : 0);
	return from == to ? 10 : (near ? 12 : 21) + slow;
}

static int put_node(const struct machine *m, uint32_t node, uint32_t total, struct err *err)
{
	const struct machine_shape *s = m->shape;
	char dir[96], path[128], text[1024] = "";
	struct rp_idset cpus;
	rp_idset_clear(&cpus);
	if (node < n_nodes(s))
		cpus_of_cores(s, node * s->cores, s->cores, &cpus);
	(void)snprintf(dir, sizeof dir, NODE_DIR "/node%u", node);
	int r = put_dir(m, dir, err);
	(void)snprintf(path, sizeof path, "%s/cpulist", dir);
	r = r ? r : put_ids(m, path, &cpus, err);
	for (uint32_t to = 0; to < total; to++) {
		size_t len = strlen(text);
		(void)snprintf(text + len, sizeof text - len, "%s%u", to ? " " : "",
			       distance(s, node, to));
	}
	(void)snprintf(path, sizeof path, "%s/distance", dir);
	r = r ? r : put(m, path, text, err);
	(void)snprintf(path, sizeof path, "%s/meminfo", dir);
	(void)snprintf(text, sizeof text,
		       "Node %u MemTotal:       16777216 kB\nNode %u MemFree: 16000000 kB\n", node,
		       node);
	return r ? r : put(m, path, text, err);
}

static int put_nodes(const struct machine *m, struct err *err)
{
	const struct machine_shape *s = m->shape;
	uint32_t total = n_nodes(s) + s->memory_nodes * s->packages;
	static const char *const lists[] = {"online", "has_memory", "has_normal_memory"};
	struct rp_idset all;
	rp_idset_clear(&all);
	rp_idset_add_range(&all, 0, total - 1);
	int r = 0;
	for (uint32_t node = 0; !r && node < total; node++)
		r = put_node(m, node, total, err);
	for (unsigned i = 0; !r && i < sizeof lists / sizeof *lists; i++) {
		char path[96];
		(void)snprintf(path, sizeof path, NODE_DIR "/%s", lists[i]);
		r = put_ids(m, path, &all, err);
	}
	return r;
}

static int put_shape(struct machine *m, struct err *err)
{
	const struct machine_shape *s = m->shape;
	static const char *const lists[] = {"possible", "present", "online"};
	uint32_t total = n_nodes(s) + s->memory_nodes * s->packages;
	char text[128];
	struct rp_idset all;
	rp_idset_clear(&all);
	rp_idset_add_range(&all, 0, m->n_cpus - 1);
	int r = put_dir(m, CPU_DIR, err);
	r = r ? r : put_dir(m, "proc", err);
	for (unsigned i = 0; !r && i < sizeof lists / sizeof *lists; i++) {
		(void)snprintf(text, sizeof text, CPU_DIR "/%s", lists[i]);
		r = put_ids(m, text, &all, err);
	}
	(void)snprintf(text, sizeof text, "%s\n", s->isolated);
	r = r ? r : put(m, CPU_DIR "/isolated", text, err);
	for (uint32_t cpu = 0; !r && cpu < m->n_cpus; cpu++)
		r = put_cpu(m, cpu, err);
	if (!r && !s->no_numa)
		r = put_nodes(m, err);
	(void)snprintf(text, sizeof text, "MemTotal:       %u kB\nMemFree:        0 kB\n",
		       total * 16777216u);
	return r ? r : put(m, "proc/meminfo", text, err);
}

/* ---- copying ------------------------------------------------------------------------------------------------------- */

struct copy {
	const struct fs_root *from;
	const struct machine *to;
	char path[PATH_MAX];
	unsigned depth;
	struct err *err;
};

static int copy_entry(const char *name, void *arg);

/* What cannot be read in a recording could not be read on the machine: it is left out. */
static int copy_file(struct copy *c)
{
	_free_ char *text = NULL;
	size_t len;
	if (fs_read_all(c->from, c->path, COPY_FILE_MAX, &text, &len))
		return 0;
	return put(c->to, c->path, text, c->err);
}

static int copy_path(struct copy *c)
{
	_close_ int fd = fs_open_dir(c->from, c->path);
	if (fd < 0)
		return copy_file(c);
	if (++c->depth > COPY_DEPTH_MAX)
		return err_set(c->err, -ELOOP, "%s/%s: nested too deeply", c->from->path, c->path);
	int r = put_dir(c->to, c->path, c->err);
	r = r ? r : fs_list(c->from, c->path, copy_entry, c);
	c->depth--;
	return r;
}

static int copy_entry(const char *name, void *arg)
{
	struct copy *c = arg;
	char full[PATH_MAX];
	struct stat st;
	size_t len = strlen(c->path);
	if (snprintf(full, sizeof full, "%s/%s/%s", c->from->path, c->path, name) >=
		    (int)sizeof full ||
	    lstat(full, &st) || S_ISLNK(st.st_mode))
		return 0; /* links lead back up, and to devices */
	(void)snprintf(c->path + len, sizeof c->path - len, "/%s", name);
	int r = copy_path(c);
	c->path[len] = '\0';
	return r;
}

static int copy_tree(struct machine *m, struct err *err)
{
	static const char *const parts[] = {CPU_DIR, NODE_DIR, "proc/meminfo"};
	struct fs_root from;
	int r = fs_root_open(&from, m->source, err);
	if (r)
		return r;
	r = put_dir(m, "proc", err);
	for (unsigned i = 0; !r && i < sizeof parts / sizeof *parts; i++) {
		struct copy c = {.from = &from, .to = m, .err = err};
		(void)snprintf(c.path, sizeof c.path, "%s", parts[i]);
		if (fs_exists(&from, parts[i]))
			r = copy_path(&c);
	}
	fs_root_close(&from);
	return r;
}

/* ---- the list of machines ------------------------------------------------------------------------------------------ */

static struct machine *add(struct machines *all, const char *name)
{
	char root[sizeof all->items[0].root];
	struct machine *m = &all->items[all->n++];
	(void)snprintf(m->name, sizeof m->name, "%s", name);
	(void)snprintf(root, sizeof root, "%.*s/%.63s", (int)sizeof all->dir - 1, all->dir, name);
	memcpy(m->root, root, sizeof root);
	return m;
}

struct folder {
	struct machines *all;
	const struct fs_root *root;
	struct err *err;
};

static int add_recorded(const char *name, void *arg)
{
	struct folder *f = arg;
	char path[PATH_MAX];
	struct rp_idset online;
	(void)snprintf(path, sizeof path, "%s/" CPU_DIR "/online", name);
	if (fs_read_ids(f->root, path, RP_CPUS_MAX, &online))
		return 0; /* something else that lies there */
	if (f->all->n == CHECK_MACHINES_MAX)
		return err_set(f->err, -E2BIG, "%s: more than %u machines", f->root->path,
			       CHECK_MACHINES_MAX);
	struct machine *m = add(f->all, name);
	(void)snprintf(m->source, sizeof m->source, "%.4000s/%s", f->root->path, m->name);
	m->n_cpus = rp_ids_count(rp_ids_of(&online));
	char text[RP_IDSET_TEXT_MAX];
	(void)rp_ids_format(rp_ids_of(&online), text, sizeof text);
	m->online = strdup(text);
	return m->online ? 0 : -ENOMEM;
}

static int add_folder(struct machines *all, const char *folder, struct err *err)
{
	struct fs_root root;
	int r = fs_root_open(&root, folder, err);
	if (r)
		return r;
	struct folder f = {all, &root, err};
	r = fs_list(&root, ".", add_recorded, &f);
	fs_root_close(&root);
	if (!r && !all->n)
		r = err_set(err, -ENOENT, "%s: no folder with a " CPU_DIR "/online in it", folder);
	return r;
}

static int add_shapes(struct machines *all)
{
	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct machine *m = add(all, shapes[i].name);
		m->shape = &shapes[i];
		m->n_cpus = n_cores(m->shape) * m->shape->threads;
		m->online = str_printf("0-%u", m->n_cpus - 1);
		if (!m->online)
			return -ENOMEM;
	}
	return 0;
}

int machines_init(struct machines *m, const char *folder, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	memset(m, 0, sizeof *m);
	if (snprintf(m->dir, sizeof m->dir, "%s/nri-rp-modcheck.XXXXXX",
		     tmp && *tmp ? tmp : "/tmp") >= (int)sizeof m->dir ||
	    !mkdtemp(m->dir))
		return err_errno(err, -errno, "a folder for machines in %s", tmp ? tmp : "/tmp");
	return folder ? add_folder(m, folder, err) : add_shapes(m);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void machines_fini(struct machines *m)
{
	if (m->dir[0])
		(void)nftw(m->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	for (unsigned i = 0; i < m->n; i++)
		free(m->items[i].online);
}

int machine_make(struct machine *m, struct err *err)
{
	if (!m->made) {
		int r = m->shape ? put_shape(m, err) : copy_tree(m, err);
		if (r)
			return r;
		m->made = true;
	}
	return put(m, CPU_DIR "/online", m->online, err);
}

int machine_set_online(const struct machine *m, struct rp_ids cpus, struct err *err)
{
	struct rp_idset set;
	rp_idset_copy(&set, cpus);
	return put_ids(m, CPU_DIR "/online", &set, err);
}

struct machine *machines_largest(struct machines *m)
{
	struct machine *best = &m->items[0];
	for (unsigned i = 1; i < m->n; i++)
		if (m->items[i].n_cpus > best->n_cpus)
			best = &m->items[i];
	return best;
}

static int cmp_cpus(const void *a, const void *b)
{
	const struct machine *x = *(struct machine *const *)a, *y = *(struct machine *const *)b;
	return x->n_cpus < y->n_cpus ? -1 : x->n_cpus > y->n_cpus;
}

struct machine *machines_middle(struct machines *m)
{
	struct machine *sorted[CHECK_MACHINES_MAX] = {NULL};
	for (unsigned i = 0; i < m->n; i++)
		sorted[i] = &m->items[i];
	qsort(sorted, m->n, sizeof *sorted, cmp_cpus);
	return sorted[m->n / 2];
}
