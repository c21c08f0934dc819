/* SPDX-License-Identifier: Apache-2.0 */
/* Machines as trees of files: made-up ones, and copies of recorded ones. CPUs are set online and
 * offline only in the list of online CPUs. */
#include "core/nri-rp-modcheck/machines.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <nri-rp/set.h>

#include "core/lib/machines/doc.h"
#include "core/lib/machines/machine.h"
#include "core/lib/machines/tree.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

#define CPU_DIR "sys/devices/system/cpu"
#define NODE_DIR "sys/devices/system/node"
#define COPY_FILE_MAX 65536u
#define COPY_DEPTH_MAX 12u

struct machine_shape {
	const char *name, *description;
};

static const struct machine_shape shapes[] = {
	{"small", "{memory: 16Gi, cores: 4}"},
	{"laptop", "{memory: 16Gi, cores: 6, threads: 2}"},
	{"no-numa", "{memory: 16Gi, cores: 8, numa: false}"},
	{"two-sockets", "{memory: 16Gi, packages: 2, nodes: 2, cores: 2, threads: 2}"},
	{"isolated",
	 "{memory: 16Gi, packages: 2, nodes: 2, cores: 2, threads: 2, isolated: '2-3,12'}"},
	{"memory-nodes",
	 "{memory: 16Gi, packages: 2, cores: 4, threads: 2, numbering: far, memoryNodes: ["
	 "{distances: {'0': 17, '1': 26}}, {distances: {'0': 26, '1': 17, '2': 31}}]}"},
	{"l3-domains", "{memory: 16Gi, nodes: 2, cores: 12, threads: 2, numbering: far, caches: "
		       "{l3: 32Mi, l3Cores: 4}}"},
	{"large",
	 "{memory: 16Gi, packages: 2, nodes: 4, cores: 8, threads: 2, numbering: far, caches: {l3: "
	 "32Mi, l3Cores: 4}}"},
};

/* ---- writing --------------------------------------------------------------------------------- */

int machine_put(const struct check_machine *m, const char *path, const char *text, struct err *err)
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

int machine_put_dir(const struct check_machine *m, const char *path, struct err *err)
{
	char full[PATH_MAX];
	if (snprintf(full, sizeof full, "%s/%s", m->root, path) >= (int)sizeof full)
		return err_set(err, -ENAMETOOLONG, "%s/%s", m->root, path);
	return fs_mkdirs(full, 0755, err);
}

static int put_ids(const struct check_machine *m, const char *path, const struct rp_idset *ids,
		   struct err *err)
{
	char text[RP_IDSET_TEXT_MAX + 1];
	uint32_t n = rp_ids_format(rp_ids_of(ids), text, RP_IDSET_TEXT_MAX);
	memcpy(text + n, "\n", 2);
	return machine_put(m, path, text, err);
}

/* Builds the machine that a shape describes; free it with machine_fini(). */
static int machine_of(const struct machine_shape *shape, struct machine *ret, struct err *err)
{
	struct doc doc;
	int r = doc_parse(shape->name, shape->description, strlen(shape->description), &doc, err);
	if (r)
		return r;
	r = machine_from(json_array_get(doc.documents, 0), ret, err);
	doc_fini(&doc);
	return r;
}

static int put_shape(const struct check_machine *m, struct err *err)
{
	struct machine machine;
	int r = machine_of(m->shape, &machine, err);
	if (r)
		return r;
	r = machine_write(&machine, m->root, err);
	machine_fini(&machine);
	return r;
}

/* ---- copying --------------------------------------------------------------------------------- */

struct copy {
	const struct fs_root *from;
	const struct check_machine *to;
	char path[PATH_MAX];
	unsigned depth;
	struct err *err;
};

static int copy_entry(const char *name, void *arg);

/* Copies a file. Files that cannot be read in a recording are left out: they were unreadable on the
 * machine, too. */
static int copy_file(struct copy *c)
{
	_free_ char *text = NULL;
	size_t len;
	if (fs_read_all(c->from, c->path, COPY_FILE_MAX, &text, &len))
		return 0;
	return machine_put(c->to, c->path, text, c->err);
}

static int copy_path(struct copy *c)
{
	_close_ int fd = fs_open_dir(c->from, c->path);
	if (fd < 0)
		return copy_file(c);
	if (++c->depth > COPY_DEPTH_MAX)
		return err_set(c->err, -ELOOP, "%s/%s: nested too deeply", c->from->path, c->path);
	int r = machine_put_dir(c->to, c->path, c->err);
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
		return 0; /* links would lead to parent folders and devices */
	(void)snprintf(c->path + len, sizeof c->path - len, "/%s", name);
	int r = copy_path(c);
	c->path[len] = '\0';
	return r;
}

static int copy_tree(struct check_machine *m, struct err *err)
{
	static const char *const parts[] = {CPU_DIR, NODE_DIR, "proc/meminfo"};
	struct fs_root from;
	int r = fs_root_open(&from, m->source, err);
	if (r)
		return r;
	r = machine_put_dir(m, "proc", err);
	for (unsigned i = 0; !r && i < sizeof parts / sizeof *parts; i++) {
		struct copy c = {.from = &from, .to = m, .err = err};
		(void)snprintf(c.path, sizeof c.path, "%s", parts[i]);
		if (fs_exists(&from, parts[i]))
			r = copy_path(&c);
	}
	fs_root_close(&from);
	return r;
}

/* ---- list of machines ------------------------------------------------------------------------ */

static struct check_machine *machines_add(struct machines *all, const char *name)
{
	char root[sizeof all->items[0].root];
	struct check_machine *m = &all->items[all->n++];
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
		return 0; /* not the folder of a machine */
	if (f->all->n == CHECK_MACHINES_MAX)
		return err_set(f->err, -E2BIG, "%s: more than %u machines", f->root->path,
			       CHECK_MACHINES_MAX);
	struct check_machine *m = machines_add(f->all, name);
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
		r = err_set(err, -ENOENT, "%s: no folder with " CPU_DIR "/online in it", folder);
	return r;
}

static int add_shapes(struct machines *all, struct err *err)
{
	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct machine machine;
		int r = machine_of(&shapes[i], &machine, err);
		if (r)
			return r;
		struct check_machine *m = machines_add(all, shapes[i].name);
		m->shape = &shapes[i];
		m->n_cpus = machine.n_cpus;
		m->online = str_printf("0-%u", m->n_cpus - 1);
		machine_fini(&machine);
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
		return err_errno(err, -errno, "creating a folder for machines in %s",
				 tmp ? tmp : "/tmp");
	return folder ? add_folder(m, folder, err) : add_shapes(m, err);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

void machines_fini(struct machines *m)
{
	if (m->dir[0])
		(void)nftw(m->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	for (unsigned i = 0; i < m->n; i++)
		free(m->items[i].online);
}

int machine_make(struct check_machine *m, struct err *err)
{
	if (!m->made) {
		int r = m->shape ? put_shape(m, err) : copy_tree(m, err);
		if (r)
			return r;
		m->made = true;
	}
	return machine_put(m, CPU_DIR "/online", m->online, err);
}

int machine_set_online(const struct check_machine *m, struct rp_ids cpus, struct err *err)
{
	struct rp_idset set;
	rp_idset_copy(&set, cpus);
	return put_ids(m, CPU_DIR "/online", &set, err);
}

struct check_machine *machines_largest(struct machines *m)
{
	struct check_machine *best = &m->items[0];
	for (unsigned i = 1; i < m->n; i++)
		if (m->items[i].n_cpus > best->n_cpus)
			best = &m->items[i];
	return best;
}

static int cmp_cpus(const void *a, const void *b)
{
	const struct check_machine *x = *(struct check_machine *const *)a,
				   *y = *(struct check_machine *const *)b;
	return x->n_cpus < y->n_cpus ? -1 : x->n_cpus > y->n_cpus;
}

struct check_machine *machines_middle(struct machines *m)
{
	struct check_machine *sorted[CHECK_MACHINES_MAX] = {NULL};
	for (unsigned i = 0; i < m->n; i++)
		sorted[i] = &m->items[i];
	qsort(sorted, m->n, sizeof *sorted, cmp_cpus);
	return sorted[m->n / 2];
}
