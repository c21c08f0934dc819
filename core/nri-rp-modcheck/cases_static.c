/* SPDX-License-Identifier: Apache-2.0 */
/* What the file is, before anything of it runs, and what it asks the dynamic loader for. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/host/note.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/util/cleanup.h"
#include "core/util/str.h"

static int facts_of(struct check *c, struct note_facts *ret, struct err *err)
{
	_close_ int fd = open(c->o->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, -errno, "%s", c->o->path);
	return note_read(fd, c->o->path, ret, err);
}

static int note(struct check *c, struct err *err)
{
	struct note_facts f = {.n_exports = 0};
	int r = facts_of(c, &f, err);
	r = r ? r : note_check(&f, c->o->path, loader_default_flags(), err);
	if (r)
		return r;
	if (!str_eq(f.note.name, c->o->name))
		return err_set(err, -EBADMSG, "the file is called %s.so, its note says %s",
			       c->o->name, f.note.name);
	check_note(c, "%s %s, ABI %u.%u, needs a host of %u.%u", f.note.name, f.note.version,
		   f.note.abi_major, f.note.abi_minor, f.note.abi_major, f.note.min_host_minor);
	return 0;
}

static int exports(struct check *c, struct err *err)
{
	struct note_facts f = {.n_exports = 0};
	int r = facts_of(c, &f, err);
	if (r)
		return r;
	if (!f.has_symbol)
		return err_set(err, -ENOEXEC, "%s does not define the data symbol %s", c->o->path,
			       RP_MODULE_SYMBOL);
	if (f.n_exports > 1 && !(loader_default_flags() & LOADER_INSTRUMENTED))
		return err_set(err, -EINVAL,
			       "%u symbols are exported; only %s should be: build with "
			       "-fvisibility=hidden",
			       f.n_exports, RP_MODULE_SYMBOL);
	return 0;
}

static int memory(struct check *c, struct err *err)
{
	struct note_facts f = {.n_exports = 0};
	int r = facts_of(c, &f, err);
	if (r)
		return r;
	if (f.text_relocations)
		return err_set(err, -EPERM, "text relocations: build with -fPIC");
	if (f.exec_stack)
		return err_set(err, -EPERM, "an executable stack: link with -z noexecstack");
	return 0;
}

static int constructors(struct check *c, struct err *err)
{
	struct note_facts f = {.n_exports = 0};
	int r = facts_of(c, &f, err);
	if (r)
		return r;
	if (loader_default_flags() & LOADER_INSTRUMENTED)
		return check_skip(c, "instrumented build");
	if (f.n_constructors > NOTE_COMPILER_CTORS)
		return err_set(err, -EPERM,
			       "%u constructors: they run before the host could check anything",
			       f.n_constructors - NOTE_COMPILER_CTORS);
	if (f.run_path)
		return err_set(err, -EPERM, "an RPATH or RUNPATH: link without -rpath");
	return 0;
}

static int loads(struct check *c, struct err *err)
{
	(void)err;
	check_note(c, "%s", c->module->path);
	return 0;
}

static int strings(struct check *c, struct err *err)
{
	const struct module *m = c->module;
	const struct {
		const char *name, *text;
	} texts[] = {{"version", m->version}, {"summary", m->summary}, {"licence", m->licence}};
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (!*texts[i].text)
			return err_set(err, -EINVAL, "the %s is empty", texts[i].name);
		if (strpbrk(texts[i].text, "\n\r\t"))
			return err_set(err, -EINVAL, "the %s is more than one line", texts[i].name);
	}
	return 0;
}

/* ---- symbols ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name, *why;
} forbidden[] = {
	{"exit", "ends the host"},
	{"_exit", "ends the host"},
	{"_Exit", "ends the host"},
	{"quick_exit", "ends the host"},
	{"printf", "writes to standard output"},
	{"vprintf", "writes to standard output"},
	{"__printf_chk", "writes to standard output"},
	{"__vprintf_chk", "writes to standard output"},
	{"puts", "writes to standard output"},
	{"putchar", "writes to standard output"},
	{"perror", "writes to standard error"},
	{"stdout", "writes to standard output"},
	{"stderr", "writes to standard error"},
	{"fork", "starts a process"},
	{"vfork", "starts a process"},
	{"system", "starts a process"},
	{"popen", "starts a process"},
	{"posix_spawn", "starts a process"},
	{"execve", "replaces the host"},
	{"execv", "replaces the host"},
	{"execvp", "replaces the host"},
	{"pthread_create", "starts a thread; blocking work goes to nri-rp.host.work/1"},
	{"thrd_create", "starts a thread; blocking work goes to nri-rp.host.work/1"},
	{"sleep", "blocks"},
	{"usleep", "blocks"},
	{"nanosleep", "blocks"},
	{"clock_nanosleep", "blocks"},
	{"signal", "changes the host's signals"},
	{"sigaction", "changes the host's signals"},
	{"pthread_sigmask", "changes the host's signals"},
	{"sigprocmask", "changes the host's signals"},
	{"alarm", "changes the host's signals"},
	{"setlocale", "changes the host's locale"},
	{"setenv", "changes the host's environment"},
	{"putenv", "changes the host's environment"},
	{"chdir", "changes the host's working directory"},
	{"atexit", "outlives the module"},
	{"dlopen", "loads code that the host has not checked"},
	{"rand", "is not deterministic across hosts"},
	{"random", "is not deterministic across hosts"},
};

/* The tables of an image that is loaded: the dynamic loader has relocated their addresses. */
struct image {
	const ElfW(Sym) * symbols;
	const char *strings;
	uint32_t n_symbols;
};

/* Symbols that the hash table leaves out come first: those are the undefined ones. */
static uint32_t unhashed(const uint32_t *gnu_hash)
{
	return gnu_hash[1];
}

static bool image_of(const struct link_map *map, struct image *ret)
{
	const uint32_t *hash = NULL, *gnu_hash = NULL;
	*ret = (struct image){0};
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		const void *address = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_SYMTAB)
			ret->symbols = address;
		else if (d->d_tag == DT_STRTAB)
			ret->strings = address;
		else if (d->d_tag == DT_HASH)
			hash = address;
		else if (d->d_tag == DT_GNU_HASH)
			gnu_hash = address;
	}
	ret->n_symbols = hash ? hash[1] : gnu_hash ? unhashed(gnu_hash) : 0;
	return ret->symbols && ret->strings;
}

static int check_symbol(const char *name, struct err *err)
{
	for (unsigned i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
		if (str_eq(forbidden[i].name, name))
			return err_set(err, -EPERM, "it calls for %s, which %s", name,
				       forbidden[i].why);
	return 0;
}

static int symbols(struct check *c, struct err *err)
{
	struct link_map *map;
	struct image image;
	if (loader_default_flags() & LOADER_INSTRUMENTED)
		return check_skip(c, "instrumented build");
	void *handle = dlopen(c->module->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !image_of(map, &image))
		return err_set(err, -EBADMSG, "%s: no dynamic symbols", c->module->path);
	unsigned n = 0;
	for (uint32_t i = 0; i < image.n_symbols; i++) {
		const ElfW(Sym) *s = &image.symbols[i];
		if (s->st_shndx != SHN_UNDEF || !s->st_name)
			continue;
		int r = check_symbol(image.strings + s->st_name, err);
		if (r)
			return r;
		n++;
	}
	check_note(c, "%u symbols of other libraries", n);
	return 0;
}

/* What is linked besides the C library is the author's business, as long as he knows. */
static int libraries(struct check *c, struct err *err)
{
	static const char *const usual[] = {"libc.so.6", "libm.so.6", "libgcc_s.so.1",
					    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
	struct link_map *map;
	struct image image;
	void *handle = dlopen(c->module->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !image_of(map, &image))
		return err_set(err, -EBADMSG, "%s: no dynamic section", c->module->path);
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag != DT_NEEDED)
			continue;
		const char *name = image.strings + d->d_un.d_val;
		bool known = false;
		for (unsigned i = 0; i < sizeof usual / sizeof *usual; i++)
			known = known || str_eq(name, usual[i]);
		if (!known)
			check_note(c, "needs %s on each node", name);
	}
	return 0;
}

static const struct check_case cases[] = {
	{"static/note", 0, CASE_FILE, note,
	 "the ELF note is there, well-formed, for this host, and names the file"},
	{"static/exports", 0, CASE_FILE, exports, "one exported symbol, " RP_MODULE_SYMBOL},
	{"static/constructors", 0, CASE_FILE, constructors, "no constructors, no run path"},
	{"static/memory", 0, CASE_FILE, memory, "no text relocations, no executable stack"},
	{"static/load", 0, CASE_GATE | CASE_NO_CONFIG, loads,
	 "the host loads it: file, note, struct and table agree"},
	{"static/symbols", 0, CASE_NO_CONFIG, symbols,
	 "no function that exits, prints, blocks, starts threads or processes"},
	{"static/libraries", 0, CASE_NO_CONFIG, libraries,
	 "which libraries a node needs (for your information)"},
	{"static/strings", 0, CASE_NO_CONFIG, strings, "version, summary and licence are set"},
};

const struct check_group static_cases = {cases, sizeof cases / sizeof *cases};
