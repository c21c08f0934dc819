/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that ends for one shared object alone: the allocations that a module makes fail, one after
 * the other, and those of the test and its host around it do not. To be included in the test's one
 * source file. Sanitizers bring a malloc of their own: there nothing fails.
 */
#ifndef TEST_OOM_MODULE_H
#define TEST_OOM_MODULE_H

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <nri-rp/module.h>

static struct {
	uintptr_t start, end; /* address range of the module */
	bool armed;
	bool rest; /* all later allocations in the callback fail too */
	bool failing; /* until the callback ends */
	bool failed; /* any, in this run */
	unsigned at, n; /* the first one that fails, from 1; so far */
	unsigned span; /* number of consecutive failures, at least 1 */
} mem;

#ifndef SANITIZED
#define FOR_ALL __attribute__((visibility("default")))
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
FOR_ALL void *malloc(size_t size);
FOR_ALL void *calloc(size_t n, size_t size);
FOR_ALL void *realloc(void *p, size_t size);
FOR_ALL char *strdup(const char *s);
FOR_ALL char *strndup(const char *s, size_t n);

static bool is_refused(const void *caller)
{
	if (!mem.armed || !mem.at || (uintptr_t)caller < mem.start || (uintptr_t)caller >= mem.end)
		return false;
	mem.n++;
	if ((mem.n < mem.at || mem.n - mem.at >= mem.span) && !mem.failing)
		return false;
	mem.failed = true;
	mem.failing = mem.rest;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

static char *copy(const char *s, size_t len)
{
	char *p = __libc_malloc(len + 1);
	if (!p)
		return NULL;
	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *strdup(const char *s)
{
	return is_refused(__builtin_return_address(0)) ? NULL : copy(s, strlen(s));
}

char *strndup(const char *s, size_t n)
{
	return is_refused(__builtin_return_address(0)) ? NULL : copy(s, strnlen(s, n));
}
#endif

static int find_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t in = (uintptr_t)arg, start = UINTPTR_MAX, last = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		uintptr_t from = info->dlpi_addr + p->p_vaddr;
		start = from < start ? from : start;
		last = from + p->p_memsz > last ? from + p->p_memsz : last;
	}
	if (in < start || in >= last)
		return 0;
	mem.start = start;
	mem.end = last;
	return 1;
}

/* Loads the module file that this build ships. */
static const struct rp_module *mem_load(const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	assert_true(n > 0);
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	(void)sprintf(strrchr(path, '/'), "/modules/%s.so", name);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	const struct rp_module *m = dlsym(handle, RP_MODULE_SYMBOL);
	assert_non_null(m);
	assert_int_equal(dl_iterate_phdr(find_range, (void *)(uintptr_t)m), 1);
	return m;
}

static void mem_arm(unsigned at, unsigned span)
{
	mem.at = at;
	mem.span = span;
	mem.n = 0;
	mem.failed = mem.failing = false;
	mem.armed = true;
}

static int cmp_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the lines of a text in sorted order, for a text without a defined order. The caller
 * frees it. */
static char *sorted_lines(const char *text)
{
	char *all = strdup(text), *lines[256], *rest = NULL;
	size_t n = 0;
	char *sorted = calloc(1, strlen(text) + 2);
	for (char *line = strtok_r(all, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		assert_true(n < sizeof lines / sizeof lines[0]);
		lines[n++] = line;
	}
	qsort(lines, n, sizeof lines[0], cmp_lines);
	for (size_t i = 0; i < n; i++)
		strcat(strcat(sorted, lines[i]), "\n");
	free(all);
	return sorted;
}

#endif
