/* SPDX-License-Identifier: Apache-2.0 */
/* Cases: the file before any of its code runs, and its symbols. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/nri-rp-modcheck/check.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

static int cases_static_note(struct check *c, struct err *err)
{
	const struct rp_note *note = &c->facts.note;
	int r = note_check(&c->facts, c->o->path, loader_default_flags(), err);
	if (r)
		return r;
	if (!str_eq(note->name, c->o->name))
		return err_set(err, -EBADMSG,
			       "the file is named %s.so, but its note has the name %s", c->o->name,
			       note->name);
	check_note(c, "%s %s, ABI %u.%u, needs a host of %u.%u", note->name, note->version,
		   note->abi_major, note->abi_minor, note->abi_major, note->min_host_minor);
	return 0;
}

static int cases_static_exports(struct check *c, struct err *err)
{
	const struct note_facts *f = &c->facts;
	if (!f->has_symbol)
		return err_set(err, -ENOEXEC, "%s does not define the data symbol %s", c->o->path,
			       RP_MODULE_SYMBOL);
	if (f->n_exports > 1 && !(loader_default_flags() & LOADER_INSTRUMENTED))
		return err_set(err, -EINVAL,
			       "%u symbols are exported; only %s should be: build with "
			       "-fvisibility=hidden",
			       f->n_exports, RP_MODULE_SYMBOL);
	return 0;
}

static int cases_static_memory(struct check *c, struct err *err)
{
	const struct note_facts *f = &c->facts;
	if (f->text_relocations)
		return err_set(err, -EPERM, "text relocations: build with -fPIC");
	if (f->exec_stack)
		return err_set(err, -EPERM, "an executable stack: link with -z noexecstack");
	return 0;
}

static int cases_static_constructors(struct check *c, struct err *err)
{
	const struct note_facts *f = &c->facts;
	if (loader_default_flags() & LOADER_INSTRUMENTED)
		return check_skip(c, "instrumented build");
	if (f->n_constructors > NOTE_COMPILER_CTORS)
		return err_set(err, -EPERM,
			       "%u constructors: they run before the host could check anything",
			       f->n_constructors - NOTE_COMPILER_CTORS);
	if (f->own_init)
		return err_set(err, -EPERM,
			       "a DT_INIT function (-init): it runs before the host could "
			       "check anything");
	if (f->n_resolvers)
		return err_set(
			err, -EPERM,
			"%u resolvers of indirect functions (ifunc): they run before the host "
			"could check anything",
			f->n_resolvers);
	if (f->run_path)
		return err_set(err, -EPERM, "an RPATH or RUNPATH: link without -rpath");
	return 0;
}

static unsigned n_threads(void)
{
	unsigned n = 0;
	const struct dirent *d;
	_closedir_ DIR *dir = opendir("/proc/self/task");
	while (dir && (d = readdir(dir)))
		n += d->d_name[0] != '.';
	return n;
}

static int cases_static_strings(struct check *c, struct err *err)
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

/* ---- symbols --------------------------------------------------------------------------------- */

/* Functions of the C library that a module may use: functions that only compute, and the heap. A
 * star matches the rest of a name. */
static const char *const allowed[] = {
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"free",
	"posix_memalign",
	"aligned_alloc",
	"malloc_usable_size",
	"memcpy",
	"memmove",
	"memset",
	"memcmp",
	"memchr",
	"memrchr",
	"memmem",
	"mempcpy",
	"memccpy",
	"rawmemchr",
	"explicit_bzero",
	"bcmp",
	"bzero",
	"str*",
	"stp*",
	"wcs*",
	"wmem*",
	"index",
	"rindex",
	"basename",
	"is*",
	"to*",
	"ato*",
	"abs",
	"labs",
	"llabs",
	"div",
	"ldiv",
	"lldiv",
	"imaxabs",
	"imaxdiv",
	"ffs*",
	"qsort",
	"qsort_r",
	"bsearch",
	"lfind",
	"lsearch",
	"tsearch",
	"tfind",
	"tdelete",
	"twalk*",
	"tdestroy",
	"snprintf",
	"vsnprintf",
	"sprintf",
	"vsprintf",
	"asprintf",
	"vasprintf",
	"sscanf",
	"vsscanf",
	"__isoc99_sscanf",
	"__isoc99_vsscanf",
	"__isoc23_sscanf",
	"__isoc23_vsscanf",
	"__isoc23_strto*",
	"__snprintf_chk",
	"__vsnprintf_chk",
	"__sprintf_chk",
	"__vsprintf_chk",
	"__asprintf_chk",
	"__vasprintf_chk",
	"__mem*_chk",
	"__str*",
	"__stp*",
	"__explicit_bzero_chk",
	"open_memstream",
	"fmemopen",
	"fprintf",
	"__fprintf_chk",
	"vfprintf",
	"__vfprintf_chk",
	"fputs",
	"fputc",
	"putc",
	"fwrite",
	"fclose",
	"fnmatch",
	"glob_pattern_p",
	"regcomp",
	"regexec",
	"regfree",
	"regerror",
	"rand_r",
	"clock_gettime",
	"time",
	"gmtime_r",
	"timegm",
	"inet_*",
	"hton*",
	"ntoh*",
	"getopt*",
	"gettext",
	"nl_langinfo",
	"abort",
	"__assert*",
	"__errno_location",
	"__ctype_*",
	"__cxa_*",
	"__gmon_start__",
	"_ITM_*",
	"__stack_chk_fail",
	"__tls_get_addr",
	"__register_frame*",
	"__deregister_frame*",
	"_Unwind_*",
	"__memcpy*",
	"__memset*",
	"dl_iterate_phdr",
};

#define REASON_NAMES_MAX 256u

/* Reasons why other functions are refused. The names of a row are separated by "|". */
static const struct {
	const char *names, *why;
} reasons[] = {
	{"exit|_exit|_Exit|quick_exit", "ends the host"},
	{"printf|vprintf|__printf_chk|__vprintf_chk|puts|putchar|stdout",
	 "writes to standard output"},
	{"perror|stderr", "writes to standard error"},
	{"syslog", "writes to the log without the host"},
	{"fork|vfork|clone|system|popen|posix_spawn*", "starts a process"},
	{"exec*", "replaces the host"},
	{"pthread_create|thrd_create", "starts a thread; use nri-rp.host.work/1 for blocking work"},
	{"pthread_mutex_*", "takes a lock, although only one thread calls the module"},
	{"pthread_cond_*|pthread_join|sem_*", "waits for another thread"},
	{"sleep|usleep|nanosleep|clock_nanosleep|poll|select|epoll_*", "blocks"},
	{"signal|sigaction|pthread_sigmask|sigprocmask|alarm", "changes the host's signals"},
	{"setlocale", "changes the host's locale"},
	{"getenv|secure_getenv", "reads the host's environment"},
	{"setenv|putenv|unsetenv", "changes the host's environment"},
	{"chdir", "changes the host's working directory"},
	{"umask", "changes the host's files"},
	{"setrlimit", "changes the host's limits"},
	{"atexit|on_exit", "outlives the module"},
	{"dl*open|dlopen", "loads code that the host has not checked"},
	{"dlsym|syscall", "calls functions that this list cannot show"},
	{"mmap*|sbrk", "allocates memory that the host cannot count"},
	{"memfd_create", "makes a file"},
	{"open*|fopen*|creat", "opens a file; use nri-rp.host.work/1 to read and write files"},
	{"stat|access", "inspects the file system; use nri-rp.host.work/1"},
	{"read*", "reads a file; use nri-rp.host.work/1"},
	{"write", "writes to a file; use nri-rp.host.work/1"},
	{"unlink*", "removes a file"},
	{"rename*", "renames a file"},
	{"socket|connect", "opens a connection"},
	{"rand|random", "is not deterministic across hosts"},
	{"arc4random*|getrandom", "is not deterministic"},
	{"sysconf|get_nprocs*", "inspects this machine; use the host's nri-rp.host.topology/1"},
	{"sched_*", "inspects or changes this machine; use the host's nri-rp.host.topology/1"},
};

/* Tables of a loaded image, with addresses relocated by the dynamic loader. */
struct image {
	const ElfW(Sym) * symbols;
	const char *strings;
	uint32_t n_symbols;
};

/* Returns the number of leading symbols that the hash table leaves out, which are the undefined
 * ones. */
static uint32_t cases_static_unhashed(const uint32_t *gnu_hash)
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
	ret->n_symbols = hash ? hash[1] : gnu_hash ? cases_static_unhashed(gnu_hash) : 0;
	return ret->symbols && ret->strings;
}

static bool is_allowed(const char *name)
{
	for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++)
		if (fnmatch(allowed[i], name, 0) == 0)
			return true;
	return false;
}

static const char *why_not(const char *name)
{
	char pattern[REASON_NAMES_MAX];
	for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		(void)snprintf(pattern, sizeof pattern, "@(%s)", reasons[i].names);
		if (fnmatch(pattern, name, FNM_EXTMATCH) == 0)
			return reasons[i].why;
	}
	return "is not a function that modules may call";
}

/* Returns true if a symbol's use must be allowed by the list: it is undefined or in the C library.
 * static/libraries names other libraries; the mathematical library only computes. */
static bool is_judged(const char *name)
{
	Dl_info where;
	const void *address = dlsym(RTLD_DEFAULT, name);
	if (!address || !dladdr(address, &where) || !where.dli_fname)
		return true;
	return !strstr(where.dli_fname, "/libm.so") && strstr(where.dli_fname, "/libc.so");
}

static int image_of_module(const struct check *c, struct image *ret, struct err *err)
{
	struct link_map *map;
	void *handle = dlopen(c->module->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !image_of(map, ret))
		return err_set(err, -EBADMSG, "%s: no dynamic symbols", c->module->path);
	return 0;
}

/* Checks that the module was built with sanitizers, because otherwise those of the checker cannot
 * see its memory accesses. */
static int with_sanitizers(const struct check *c, struct err *err)
{
	struct image image = {0};
	int r = image_of_module(c, &image, err);
	for (uint32_t i = 0; !r && i < image.n_symbols; i++)
		if (str_has_prefix(image.strings + image.symbols[i].st_name, "__asan_"))
			return 0;
	return r ? r
		 : err_set(err, -EPERM,
			   "it was built without sanitizers, so memory errors would not be found: "
			   "build it with make check-sanitized of the kit's module.mk");
}

static int cases_static_loads(struct check *c, struct err *err)
{
	if (n_threads() > 1)
		return err_set(err, -EPERM,
			       "loading it started a thread, by a constructor of a library that it "
			       "needs (static/libraries)");
	check_note(c, "%s", c->module->path);
	return c->o->sanitize ? with_sanitizers(c, err) : 0;
}

static int cases_static_symbols(struct check *c, struct err *err)
{
	_cleanup_(buf_fini) struct buf bad = BUF_INIT;
	struct image image = {0};
	unsigned n = 0, n_bad = 0;
	if (loader_default_flags() & LOADER_INSTRUMENTED)
		return check_skip(c, "instrumented build");
	int r = image_of_module(c, &image, err);
	if (r)
		return r;
	for (uint32_t i = 0; i < image.n_symbols; i++) {
		const ElfW(Sym) *s = &image.symbols[i];
		const char *name = image.strings + s->st_name;
		if (s->st_shndx != SHN_UNDEF || !s->st_name)
			continue;
		n++;
		if (is_allowed(name) || !is_judged(name))
			continue;
		(void)buf_printf(&bad, "%s%s, which %s", n_bad++ ? "; " : "", name, why_not(name));
	}
	check_note(c, "%u symbols of other libraries", n);
	if (!n_bad)
		return 0;
	return err_set(err, -EPERM, "it calls %s", buf_text(&bad));
}

/* Returns the number of .init_array entries of a loaded image, without the compiler's own. */
static size_t constructors_of(const struct link_map *map)
{
	size_t n = 0;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_INIT_ARRAYSZ)
			n = d->d_un.d_val / sizeof(void *);
	return n > NOTE_COMPILER_CTORS ? n - NOTE_COMPILER_CTORS : 0;
}

static void note_library(struct check *c, const char *name)
{
	static const char *const usual[] = {"libc.so.6", "libm.so.6", "libgcc_s.so.1",
					    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
	struct link_map *map;
	for (unsigned i = 0; i < sizeof usual / sizeof *usual; i++)
		if (str_eq(name, usual[i]))
			return;
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	size_t n = handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) ? constructors_of(map) : 0;
	check_note(c, "needs %s on each node", name);
	if (n)
		check_note(
			c,
			"%s has %zu constructors, which run before the host could check anything",
			name, n);
}

/* Lists unusual libraries for the author's information; it never fails for them. */
static int cases_static_libraries(struct check *c, struct err *err)
{
	struct link_map *map;
	struct image image = {0};
	void *handle = dlopen(c->module->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !image_of(map, &image))
		return err_set(err, -EBADMSG, "%s: no dynamic section", c->module->path);
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED)
			note_library(c, image.strings + d->d_un.d_val);
	return 0;
}

static const struct check_case cases[] = {
	{"static/note", 0, CASE_FILE, cases_static_note,
	 "the ELF note exists, is well-formed, for this host, and names the file"},
	{"static/exports", 0, CASE_FILE, cases_static_exports,
	 "one exported symbol, " RP_MODULE_SYMBOL},
	{"static/constructors", 0, CASE_FILE, cases_static_constructors,
	 "no code runs while it is loaded: no constructors, DT_INIT, ifunc; no run path"},
	{"static/memory", 0, CASE_FILE, cases_static_memory,
	 "no text relocations, no executable stack"},
	{"static/load", 0, CASE_GATE | CASE_NO_CONFIG, cases_static_loads,
	 "the host loads it: file, note, struct and table agree"},
	{"static/symbols", 0, CASE_NO_CONFIG, cases_static_symbols,
	 "it calls no function of the C library that exits, prints, blocks, starts threads or "
	 "opens files"},
	{"static/libraries", 0, CASE_NO_CONFIG, cases_static_libraries,
	 "libraries that a node needs (for information)"},
	{"static/strings", 0, CASE_NO_CONFIG, cases_static_strings,
	 "version, summary and licence are set"},
};

const struct check_group static_cases = {cases, sizeof cases / sizeof *cases};
