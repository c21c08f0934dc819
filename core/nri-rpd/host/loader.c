/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the steps of loading that host.h lists; each has a function here. Everything in a
 * loaded image is read through struct image, which knows the bounds of the image's segments. A wild
 * pointer in a module's struct is therefore an error and no crash.
 */
#include "core/nri-rpd/host/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/host/breadcrumb.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/sized.h"
#include "core/lib/util/str.h"

#define SUFFIX ".so"
#define IMAGE_SEGMENTS_MAX 32u
#define MODULE_ARENA_MAX ((size_t)8 << 20)
#define MODULE_SIZE_MIN (offsetof(struct rp_module, service) + sizeof(void *))
#define SCHEMA_SIZE_MIN (offsetof(struct rp_schema, cr_kind) + sizeof(void *))
#define KEY_SIZE_MIN (offsetof(struct rp_key, doc) + sizeof(void *))
#define KEY_SIZE_MAX 1024u

struct segment {
	uintptr_t start, end;
	uint32_t flags;
};

/* Segments of a mapped object. */
struct image {
	struct segment segments[IMAGE_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t notes_hash;
	uintptr_t wanted; /* address to search for: find the image that contains it */
};

struct module_private {
	void *handle;
	struct arena *arena; /* memory of texts and schema */
	struct image image;
	struct stat st; /* state of the file when it was loaded */
	bool schema_known;
	const struct rp_schema *schema;
};

struct loaded {
	struct module module;
	struct module_private priv;
};

struct loader {
	char *paths[LOADER_PATHS_MAX];
	unsigned n_paths;
	unsigned flags;
	struct crumb *crumb;
	struct loaded *modules[LOADER_MODULES_MAX];
	unsigned n_modules;
};

unsigned loader_default_flags(void)
{
#if defined(SANITIZED) || defined(INSTRUMENTED)
	return LOADER_INSTRUMENTED;
#else
	return 0;
#endif
}

/* ---- the loader ------------------------------------------------------------------------------ */

static void free_paths(char **paths, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(paths[i]);
}

int loader_set_paths(struct loader *l, const char *const *paths, unsigned n_paths, struct err *err)
{
	char *copies[LOADER_PATHS_MAX];
	if (n_paths > LOADER_PATHS_MAX)
		return err_set(err, -E2BIG, "%u module directories, at most %u", n_paths,
			       LOADER_PATHS_MAX);
	for (unsigned i = 0; i < n_paths; i++) {
		copies[i] = strdup(paths[i]);
		if (!copies[i]) {
			free_paths(copies, i);
			return err_errno(err, -ENOMEM, "cannot set the module directories");
		}
	}
	free_paths(l->paths, l->n_paths);
	memcpy(l->paths, copies, n_paths * sizeof copies[0]);
	l->n_paths = n_paths;
	return 0;
}

int loader_new(const char *const *paths, unsigned n_paths, unsigned flags, struct crumb *crumb,
	       struct loader **ret, struct err *err)
{
	struct loader *l = calloc(1, sizeof *l);
	if (!l)
		return err_errno(err, -ENOMEM, "cannot create the module loader");
	l->flags = flags;
	l->crumb = crumb;
	int r = loader_set_paths(l, paths, n_paths, err);
	if (r < 0) {
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* Unloads the image in instrumented builds. In production an image stays mapped: its timers,
 * thread-local destructors and exit handlers may outlive the last call. */
static void release_image(const struct loader *l, void *handle)
{
	if (handle && (l->flags & LOADER_INSTRUMENTED))
		(void)dlclose(handle);
}

static void free_loaded(const struct loader *l, struct loaded *m)
{
	if (!m)
		return;
	release_image(l, m->priv.handle);
	(void)arena_free(m->priv.arena);
	free(m);
}

struct loader *loader_free(struct loader *l)
{
	if (!l)
		return NULL;
	while (l->n_modules)
		free_loaded(l, l->modules[--l->n_modules]);
	free_paths(l->paths, l->n_paths);
	free(l);
	return NULL;
}

struct module *loader_get(const struct loader *l, const char *name)
{
	for (unsigned i = 0; i < l->n_modules; i++)
		if (str_eq(l->modules[i]->module.name, name))
			return &l->modules[i]->module;
	return NULL;
}

/* ---- search and trust ------------------------------------------------------------------------ */

/* Returns the reason why other users could have changed the file or directory; NULL: they could
 * not. */
static const char *find_distrust(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "is owned by another user (chown root)";
	if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	if (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && st->st_uid == 0)
		return NULL;
	return "is writable by other users (chmod go-w)";
}

static int check_file(const char *path, const struct stat *st, struct err *err)
{
	if (S_ISLNK(st->st_mode))
		return err_set(err, -EPERM,
			       "module file %s is a symbolic link; install the file itself", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EPERM, "module file %s is not a regular file", path);
	const char *why = find_distrust(st);
	return why ? err_set(err, -EPERM, "module file %s %s", path, why) : 0;
}

/* Checks the directories above a resolved path, up to "/". */
static int check_dirs(const char *path, struct err *err)
{
	char dir[PATH_MAX];
	(void)snprintf(dir, sizeof dir, "%s", path);
	for (char *slash = strrchr(dir, '/'); slash; slash = strrchr(dir, '/')) {
		struct stat st;
		slash[slash == dir] = '\0';
		if (stat(dir, &st) < 0)
			return err_errno(err, -errno, "cannot check directory %s of module file %s",
					 dir, path);
		const char *why = find_distrust(&st);
		if (why)
			return err_set(err, -EPERM, "directory %s of module file %s %s", dir, path,
				       why);
		if (slash == dir)
			break;
	}
	return 0;
}

static int check_trust(const char *path, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return err_errno(err, -errno, "cannot check module file %s", path);
	int r = check_file(path, &st, err);
	return r < 0 ? r : check_dirs(path, err);
}

/* Returns -errno of a look-up; a file in place of a directory is treated as missing. */
static int lookup_errno(void)
{
	return errno == ENOTDIR ? -ENOENT : -errno;
}

/* Writes the path DIR/NAME.so with DIR resolved. -ENOENT: there is no such directory or file. */
static int loader_locate(const char *dir, const char *name, char ret_path[PATH_MAX],
			 struct err *err)
{
	char real[PATH_MAX];
	struct stat st;
	if (!realpath(dir, real))
		return err_errno(err, lookup_errno(), "cannot list modules in %s", dir);
	int n = snprintf(ret_path, PATH_MAX, "%s/%s" SUFFIX, str_eq(real, "/") ? "" : real, name);
	if (n < 0 || n >= PATH_MAX)
		return err_errno(err, -ENAMETOOLONG, "cannot list modules in %s", dir);
	if (lstat(ret_path, &st) < 0)
		return err_errno(err, lookup_errno(), "cannot find module file %s", ret_path);
	return 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

struct names {
	char **names; /* names of modules, without the file suffix, in natural order */
	unsigned n;
};

static void names_fini(struct names *names)
{
	for (unsigned i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
}
#define _names_ _cleanup_(names_fini)

static int cmp_names(const void *a, const void *b)
{
	return str_cmp_natural(*(char *const *)a, *(char *const *)b);
}

static int read_names(const char *dir, struct names *ret)
{
	_closedir_ DIR *d = opendir(dir);
	if (!d)
		return -errno;
	ret->names = calloc(LOADER_LIST_MAX, sizeof ret->names[0]);
	if (!ret->names)
		return -ENOMEM;
	struct dirent *e;
	while ((e = readdir(d)) && ret->n < LOADER_LIST_MAX) {
		if (e->d_name[0] == '.' || !str_has_suffix(e->d_name, SUFFIX))
			continue;
		char *name = strndup(e->d_name, strlen(e->d_name) - strlen(SUFFIX));
		if (!name)
			return -ENOMEM;
		ret->names[ret->n++] = name;
	}
	qsort(ret->names, ret->n, sizeof ret->names[0], cmp_names);
	return 0;
}

static int not_found(const struct loader *l, const char *name, struct err *err)
{
	struct buf text = BUF_INIT;
	(void)buf_printf(&text, "no module \"%s\" in ", name);
	for (unsigned i = 0; i < l->n_paths; i++)
		(void)buf_printf(&text, "%s%s", i ? ", " : "", l->paths[i]);
	for (unsigned i = 0; i < l->n_paths; i++) {
		_names_ struct names names = {NULL, 0};
		if (read_names(l->paths[i], &names) < 0 || !names.n)
			continue;
		const char *closest = str_closest(name, (const char *const *)names.names, names.n);
		if (!closest)
			continue;
		(void)buf_printf(&text, "; did you mean \"%s\"?", closest);
		break;
	}
	int r = err_set(err, -ENOENT, "%s", buf_text(&text));
	buf_fini(&text);
	return r;
}

int loader_find(const struct loader *l, const char *name, char ret_path[PATH_MAX], struct err *err)
{
	char path[PATH_MAX];
	if (!note_name_valid(name))
		return err_set(err, -EINVAL,
			       "\"%s\" is not a module's name (a-z, 0-9 and -, at most %u)", name,
			       RP_NAME_MAX - 1);
	for (unsigned i = 0; i < l->n_paths; i++) {
		int r = loader_locate(l->paths[i], name, path, err);
		if (r == -ENOENT)
			continue;
		if (r == 0)
			r = check_trust(path, err);
		if (r < 0)
			return r;
		memcpy(ret_path, path, strlen(path) + 1);
		return 0;
	}
	return not_found(l, name, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Opens the file and checks everything that does not need loading. *ret_readable: the facts are
 * filled, whatever the result. */
static int loader_inspect(const struct loader *l, const char *path, const char *name,
			  struct note_facts *facts, bool *ret_readable, struct stat *st,
			  struct err *err)
{
	*ret_readable = false;
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, st) < 0)
		return err_errno(err, -errno, "cannot open module file %s", path);
	int r = check_file(path, st, err);
	if (r < 0)
		return r;
	r = note_read(fd, path, facts, err);
	if (r < 0)
		return r;
	*ret_readable = true;
	r = note_check(facts, path, l->flags & LOADER_INSTRUMENTED ? NOTE_INSTRUMENTED : 0, err);
	if (r == 0 && !str_eq(facts->note.name, name))
		r = err_set(err, -EBADMSG,
			    "module file %s declares the name \"%s\"; rename the file to %s" SUFFIX,
			    path, facts->note.name, facts->note.name);
	return r;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int refuse_quarantined(const char *name, struct err *err)
{
	return err_set(err, -ECANCELED,
		       "module \"%s\" is quarantined: the process crashed inside it %u times "
		       "within ten minutes; clear it or install another build",
		       name, CRUMB_DEATHS);
}

/* ---- the image ------------------------------------------------------------------------------- */

static int take_image(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct image *image = arg, found = {.wanted = image->wanted, .notes_hash = NOTE_HASH_INIT};
	bool ours = false;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD || found.n_segments == IMAGE_SEGMENTS_MAX)
			continue;
		found.segments[found.n_segments++] =
			(struct segment){start, start + p->p_memsz, p->p_flags};
		ours |= image->wanted >= start && image->wanted - start < p->p_memsz;
	}
	if (!ours)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_NOTE)
			found.notes_hash = note_hash(found.notes_hash,
						     (const void *)(info->dlpi_addr + p->p_vaddr),
						     p->p_filesz);
	}
	*image = found;
	return 1;
}

/* Returns true if `size` bytes from p on are within one segment that has all of `flags`. */
static bool image_has(const struct image *image, const void *p, size_t size, uint32_t flags)
{
	uintptr_t at = (uintptr_t)p;
	for (unsigned i = 0; i < image->n_segments; i++) {
		const struct segment *s = &image->segments[i];
		if (at >= s->start && at < s->end && size <= s->end - at)
			return (s->flags & flags) == flags;
	}
	return false;
}

/* Returns the length of a text of at most max bytes; -1: no valid text. */
static ssize_t image_text(const struct image *image, const char *text, size_t max)
{
	for (size_t n = 0; n <= max && image_has(image, text + n, 1, PF_R); n++)
		if (!text[n])
			return utf8_valid(text, n) ? (ssize_t)n : -1;
	return -1;
}

static bool image_function(const struct image *image, const void *function)
{
	return function && image_has(image, function, 1, PF_X);
}

/* ---- the module's struct --------------------------------------------------------------------- */

static int loader_disagree(const char *path, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "module file %s: its struct %s %s", path, RP_MODULE_SYMBOL,
		       what);
}

static int copy_text(struct loaded *m, const char *path, const char *text, const char **ret,
		     struct err *err)
{
	*ret = "";
	if (!text)
		return 0;
	if (image_text(&m->priv.image, text, LOADER_TEXT_MAX) < 0)
		return loader_disagree(
			path, "has a summary or licence that is not text, or too long", err);
	*ret = arena_strdup(m->priv.arena, text);
	return *ret ? 0 : err_errno(err, -ENOMEM, "cannot load module file %s", path);
}

static bool image_text_is(const struct image *image, const char *text, const char *expected)
{
	return text && image_text(image, text, strlen(expected)) >= 0 && str_eq(text, expected);
}

/* Returns the text for a message, or a substitute if the text is not readable. */
static const char *image_shown(const struct image *image, const char *text)
{
	return text && image_text(image, text, LOADER_TEXT_MAX) >= 0 ? text : "no text";
}

static int compare_with_note(const struct image *image, const struct rp_module *abi,
			     const struct rp_note *note, const char *path, struct err *err)
{
	if (abi->abi_minor != note->abi_minor || abi->kinds != note->kinds ||
	    abi->min_host_minor != note->min_host_minor)
		return err_set(err, -EBADMSG,
			       "module file %s: its struct %s and its note differ in version or "
			       "kinds: ABI %u.%u and %u.%u, for hosts of %u.%u and %u.%u, kinds "
			       "0x%x and 0x%x",
			       path, RP_MODULE_SYMBOL, RP_ABI_MAJOR, abi->abi_minor, RP_ABI_MAJOR,
			       note->abi_minor, RP_ABI_MAJOR, abi->min_host_minor, RP_ABI_MAJOR,
			       note->min_host_minor, abi->kinds, note->kinds);
	if (!image_text_is(image, abi->name, note->name) ||
	    !image_text_is(image, abi->version, note->version))
		return err_set(err, -EBADMSG,
			       "module file %s: its struct %s and its note differ in name or "
			       "version: \"%.64s\" %.64s and \"%s\" %s",
			       path, RP_MODULE_SYMBOL, image_shown(image, abi->name),
			       image_shown(image, abi->version), note->name, note->version);
	return 0;
}

static int check_struct(struct loaded *m, const struct rp_note *note, uint64_t symbol_size,
			const char *path, struct err *err)
{
	const struct rp_module *abi = m->module.abi;
	const struct image *image = &m->priv.image;
	if (!image_has(image, abi, MODULE_SIZE_MIN, PF_R) || abi->size < MODULE_SIZE_MIN)
		return loader_disagree(path, "is too short", err);
	if (abi->size > symbol_size)
		return loader_disagree(path, "declares a larger size than it has", err);
	int r = compare_with_note(image, abi, note, path, err);
	if (r)
		return r;
	if (!image_function(image, (const void *)abi->create) ||
	    !image_function(image, (const void *)abi->destroy) ||
	    !image_function(image, (const void *)abi->service))
		return loader_disagree(path, "lacks create(), destroy() or service()", err);
	r = copy_text(m, path, abi->summary, &m->module.summary, err);
	return r < 0 ? r : copy_text(m, path, abi->licence, &m->module.licence, err);
}

static int take_module(struct loaded *m, const struct note_facts *facts, const char *path,
		       struct err *err)
{
	struct module *mod = &m->module;
	m->priv.arena = arena_new(4096, MODULE_ARENA_MAX);
	if (!m->priv.arena)
		return err_errno(err, -ENOMEM, "cannot load module file %s", path);
	memcpy(mod->name, facts->note.name, sizeof mod->name);
	memcpy(mod->version, facts->note.version, sizeof mod->version);
	mod->kinds = facts->note.kinds;
	mod->abi_minor = facts->note.abi_minor;
	mod->min_host_minor = facts->note.min_host_minor;
	mod->build_id = facts->build_id;
	mod->priv = &m->priv;
	mod->path = arena_strdup(m->priv.arena, path);
	return mod->path ? 0 : err_errno(err, -ENOMEM, "cannot load module file %s", path);
}

/* Checks that the image belongs to the file. dlopen() goes by the path alone, so its image may be
 * older than the file. */
static int check_image(struct loaded *m, const struct note_facts *facts, const char *path,
		       struct err *err)
{
	struct stat now;
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;
	m->module.abi = dlsym(m->priv.handle, RP_MODULE_SYMBOL);
	if (!m->module.abi || !dladdr1(m->module.abi, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol)
		return loader_disagree(path, "cannot be found", err);
	m->priv.image.wanted = (uintptr_t)m->module.abi;
	if (dl_iterate_phdr(take_image, &m->priv.image) != 1)
		return loader_disagree(path, "is not in a loaded segment", err);
	if (stat(path, &now) < 0 || !same_file(&m->priv.st, &now))
		return err_set(err, -ESTALE,
			       "module file %s was replaced while it was loaded; try again", path);
	if (m->priv.image.notes_hash != facts->notes_hash)
		return err_set(err, -ESTALE,
			       "an older build of module file %s is still loaded; restart to load "
			       "the new build",
			       path);
	return check_struct(m, &facts->note, symbol->st_size, path, err);
}

static int loader_load(struct loader *l, const char *path, struct loaded *m,
		       const struct note_facts *facts, struct err *err)
{
	int r = take_module(m, facts, path, err);
	if (r < 0)
		return r;
	crumb_enter(l->crumb, CRUMB_LOOP, m->module.name, CRUMB_LOAD, NULL);
	m->priv.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	crumb_leave(l->crumb, CRUMB_LOOP);
	if (!m->priv.handle)
		return err_set(err, -ELIBBAD, "module \"%s\" cannot be loaded: %s", m->module.name,
			       dlerror());
	return check_image(m, facts, path, err);
}

void module_note_code(const struct module *m, struct crumb *crumb)
{
	for (unsigned i = 0; m->priv && i < m->priv->image.n_segments; i++) {
		const struct segment *s = &m->priv->image.segments[i];
		if (s->flags & PF_X)
			crumb_image(crumb, m->name, s->start, s->end);
	}
}

int loader_open(struct loader *l, const char *name, struct module **ret, struct err *err)
{
	char path[PATH_MAX];
	struct note_facts facts;
	bool readable;
	struct module *known = loader_get(l, name);
	if (known) {
		*ret = known;
		return 0;
	}
	if (l->n_modules == LOADER_MODULES_MAX)
		return err_set(err, -EMFILE,
			       "module \"%s\" cannot be loaded: the limit of %u modules is reached",
			       name, l->n_modules);
	int r = loader_find(l, name, path, err);
	if (r < 0)
		return r;
	struct loaded *m = calloc(1, sizeof *m);
	if (!m)
		return err_errno(err, -ENOMEM, "module \"%s\" cannot be loaded", name);
	r = loader_inspect(l, path, name, &facts, &readable, &m->priv.st, err);
	if (r == 0)
		crumb_seen(l->crumb, name, &facts.build_id);
	if (r == 0 && crumb_quarantined(l->crumb, name))
		r = refuse_quarantined(name, err);
	if (r == 0)
		r = loader_load(l, path, m, &facts, err);
	if (r < 0) {
		/* Unload the image, because none of its functions has been called. A repaired file
		 * can then be loaded without a restart. */
		if (m->priv.handle)
			(void)dlclose(TAKE(m->priv.handle));
		free_loaded(l, m);
		return r;
	}
	l->modules[l->n_modules++] = m;
	*ret = &m->module;
	return 0;
}

void loader_drop(struct loader *l, struct module *m)
{
	unsigned at = 0;
	while (&l->modules[at]->module != m)
		at++;
	(void)dlclose(TAKE(l->modules[at]->priv.handle));
	free_loaded(l, l->modules[at]);
	memmove(l->modules + at, l->modules + at + 1, (--l->n_modules - at) * sizeof l->modules[0]);
}

int module_stale(const struct loader *l, const struct module *m)
{
	char path[PATH_MAX];
	struct note_facts facts;
	struct stat st;
	bool readable;
	int r = loader_find(l, m->name, path, NULL);
	if (r == -ENOENT)
		return MODULE_GONE;
	if (r < 0 || !str_eq(path, m->path))
		return MODULE_CHANGED;
	r = loader_inspect(l, path, m->name, &facts, &readable, &st, NULL);
	if (r < 0 || facts.notes_hash != m->priv->image.notes_hash)
		return MODULE_CHANGED;
	/* Without a build id, two builds can have the same notes, so compare the files. */
	return m->build_id.size || same_file(&st, &m->priv->st) ? MODULE_FRESH : MODULE_CHANGED;
}

int module_restart(const struct loader *l, const struct module *m, struct err *err)
{
	char path[PATH_MAX];
	struct note_facts facts;
	struct stat st;
	bool readable;
	int r = loader_find(l, m->name, path, err);
	return r < 0 ? r : loader_inspect(l, path, m->name, &facts, &readable, &st, err);
}

/* ---- schema ---------------------------------------------------------------------------------- */

struct schema_copy {
	const struct module *m;
	const struct image *image;
	struct arena *arena;
	uint32_t row;
	struct err *err;
};

static int bad_schema(const struct schema_copy *c, const char *what)
{
	return err_set(c->err, -EBADMSG, "module \"%s\": its configuration schema %s", c->m->name,
		       what);
}

static int bad_row(const struct schema_copy *c, const char *what)
{
	return err_set(c->err, -EBADMSG, "module \"%s\": row %u of its configuration schema %s",
		       c->m->name, c->row, what);
}

static int copy_row_text(const struct schema_copy *c, const char **text, size_t max)
{
	if (!*text)
		return 0;
	if (image_text(c->image, *text, max) < 0)
		return bad_row(c, "has a text that is malformed or too long");
	*text = arena_strdup(c->arena, *text);
	return *text ? 0
		     : err_errno(c->err, -ENOMEM, "cannot store the schema of module \"%s\"",
				 c->m->name);
}

static int copy_row(const struct schema_copy *c, struct rp_key *key)
{
	if (!key->path)
		return bad_row(c, "has no path");
	if (key->type < RP_T_BOOL || key->type > RP_T_FREQ)
		return bad_row(c, "has an unknown type");
	if (key->type == RP_T_ENUM && !key->choices)
		return bad_row(c, "is an enumeration without choices");
	int r = copy_row_text(c, &key->path, LOADER_KEY_PATH_MAX);
	if (r == 0 && !key->path[0])
		return bad_row(c, "has an empty path");
	if (r == 0)
		r = copy_row_text(c, &key->choices, LOADER_KEY_TEXT_MAX);
	if (r == 0)
		r = copy_row_text(c, &key->fallback, LOADER_KEY_TEXT_MAX);
	if (r == 0)
		r = copy_row_text(c, &key->doc, LOADER_KEY_TEXT_MAX);
	return r < 0 ? r : copy_row_text(c, &key->expected, LOADER_KEY_TEXT_MAX);
}

static int copy_rows(struct schema_copy *c, const struct rp_schema *from, struct rp_schema *to)
{
	struct rp_key *keys = arena_array(c->arena, from->n_keys + 1, sizeof *keys);
	if (!keys)
		return err_errno(c->err, -ENOMEM, "cannot store the schema of module \"%s\"",
				 c->m->name);
	for (c->row = 0; c->row < from->n_keys; c->row++) {
		size_t size = from->key_size < sizeof *keys ? from->key_size : sizeof *keys;
		const char *row = (const char *)from->keys + (size_t)c->row * from->key_size;
		memcpy(&keys[c->row], row, size);
		int r = sized_is_understood(row, from->key_size, sizeof *keys)
				? copy_row(c, &keys[c->row])
				: bad_row(c, "needs a newer nri-rpd");
		if (r < 0)
			return r;
	}
	to->keys = keys;
	to->n_keys = from->n_keys;
	return 0;
}

static int copy_schema(struct schema_copy *c, const struct rp_schema *from,
		       const struct rp_schema **ret)
{
	if (!image_has(c->image, from, SCHEMA_SIZE_MIN, PF_R) || from->size < SCHEMA_SIZE_MIN)
		return bad_schema(c, "is not static data of the module, or too short");
	if (from->key_size < KEY_SIZE_MIN || from->key_size > KEY_SIZE_MAX ||
	    from->key_size % sizeof(void *))
		return bad_schema(c, "has rows of an impossible size");
	if (from->n_keys > LOADER_KEYS_MAX)
		return bad_schema(c, "has too many rows");
	if (from->n_keys &&
	    !image_has(c->image, from->keys, (size_t)from->n_keys * from->key_size, PF_R))
		return bad_schema(c, "points to rows that are not static data of the module");
	struct rp_schema *to = arena_zero(c->arena, struct rp_schema);
	if (!to)
		return err_errno(c->err, -ENOMEM, "cannot store the schema of module \"%s\"",
				 c->m->name);
	*to = (struct rp_schema){.size = sizeof *to,
				 .flags = from->flags,
				 .key_size = sizeof(struct rp_key),
				 .cr_kind = from->cr_kind};
	if (to->cr_kind && image_text(c->image, to->cr_kind, LOADER_TEXT_MAX) < 0)
		return bad_schema(c, "names a kind of custom resource that is not text");
	if (to->cr_kind) {
		to->cr_kind = arena_strdup(c->arena, to->cr_kind);
		if (!to->cr_kind)
			return err_errno(c->err, -ENOMEM,
					 "cannot store the schema of module \"%s\"", c->m->name);
	}
	*ret = to;
	return copy_rows(c, from, to);
}

int module_schema(const struct loader *l, struct module *m, const struct rp_schema **ret,
		  struct err *err)
{
	struct module_private *p = m->priv;
	if (p->schema_known) {
		*ret = p->schema;
		return 0;
	}
	crumb_enter(l->crumb, CRUMB_LOOP, m->name, CRUMB_SERVICE, RP_SCHEMA_1);
	const struct rp_schema *from = m->abi->service(NULL, RP_SCHEMA_1);
	crumb_leave(l->crumb, CRUMB_LOOP);
	if (from) {
		struct schema_copy copy = {
			.m = m, .image = &p->image, .arena = p->arena, .err = err};
		const struct rp_schema *schema = NULL;
		int r = copy_schema(&copy, from, &schema);
		if (r < 0)
			return r;
		p->schema = schema;
	}
	p->schema_known = true;
	*ret = p->schema;
	return 0;
}

/* ---- list ------------------------------------------------------------------------------------ */

static bool has_earlier(const struct loader *l, unsigned dir, const char *name)
{
	char path[PATH_MAX];
	for (unsigned i = 0; i < dir; i++)
		if (loader_locate(l->paths[i], name, path, NULL) == 0)
			return true;
	return false;
}

static int list_one(const struct loader *l, unsigned dir, const char *name,
		    int (*fn)(const struct loader_item *item, void *arg), void *arg)
{
	char path[PATH_MAX] = "";
	struct note_facts facts;
	struct stat st;
	struct err err = ERR_INIT;
	bool readable = false;
	int r = loader_locate(l->paths[dir], name, path, &err);
	if (r == -ENOENT)
		return 0; /* the file was removed meanwhile */
	if (r == 0)
		r = check_trust(path, &err);
	if (r == 0)
		r = loader_inspect(l, path, name, &facts, &readable, &st, &err);
	struct module *m = loader_get(l, name);
	struct loader_item item = {
		.name = name,
		.path = path,
		.facts = readable ? &facts : NULL,
		.module = m && str_eq(m->path, path) ? m : NULL,
		.quarantined = crumb_quarantined(l->crumb, name),
		.hidden = has_earlier(l, dir, name),
	};
	if (r == 0 && item.quarantined)
		r = refuse_quarantined(name, &err);
	item.err = r < 0 ? &err : NULL;
	return fn(&item, arg);
}

int loader_list(const struct loader *l, int (*fn)(const struct loader_item *item, void *arg),
		void *arg)
{
	for (unsigned dir = 0; dir < l->n_paths; dir++) {
		_names_ struct names names = {NULL, 0};
		int r = read_names(l->paths[dir], &names);
		if (r == -ENOENT || r == -ENOTDIR)
			continue;
		if (r < 0)
			return r;
		for (unsigned i = 0; i < names.n; i++) {
			r = list_one(l, dir, names.names[i], fn, arg);
			if (r)
				return r;
		}
	}
	return 0;
}
