/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/runc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/util/cleanup.h"

#define NUMBER_MAX 100000u

/* Parses a number at *p and moves *p behind it. */
static bool runc_take(const char **p, const char *end, unsigned *ret)
{
	unsigned v = 0;
	const char *begin = *p;
	for (; *p < end && isdigit((unsigned char)**p); (*p)++) {
		v = v * 10 + (unsigned)(**p - '0');
		if (v > NUMBER_MAX)
			return false;
	}
	*ret = v;
	return *p > begin;
}

static bool take_char(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	(*p)++;
	return true;
}

/* Returns true for "-0-gf19387a6", optionally with "-rc.1" before it. */
static bool is_described(const char *p, const char *end)
{
	unsigned n;
	if (end - p > 4 && strncmp(p, "-rc.", 4) == 0) {
		p += 4;
		if (!runc_take(&p, end, &n))
			return false;
	}
	return take_char(&p, end, '-') && runc_take(&p, end, &n) && take_char(&p, end, '-') &&
	       take_char(&p, end, 'g') && p < end && isxdigit((unsigned char)*p);
}

static bool is_debian(const char *p, const char *end)
{
	return end - p > 3 && strncmp(p, "+ds", 3) == 0 && isdigit((unsigned char)p[3]);
}

/* Parses a version that begins at p and is no part of a longer word. */
static bool version_at(const char *p, const char *end, bool after_v, struct runc_version *ret)
{
	struct runc_version v;
	if (!runc_take(&p, end, &v.major) || !take_char(&p, end, '.') ||
	    !runc_take(&p, end, &v.minor) || !take_char(&p, end, '.') ||
	    !runc_take(&p, end, &v.patch))
		return false;
	if (!(after_v ? is_described(p, end) : is_debian(p, end)))
		return false;
	*ret = v;
	return true;
}

bool runc_version_in(const char *data, size_t len, struct runc_version *ret)
{
	const char *end = data + len;
	for (const char *dot = data; (dot = memchr(dot, '.', (size_t)(end - dot))); dot++) {
		const char *p = dot;
		while (p > data && isdigit((unsigned char)p[-1]) && dot - p < 6)
			p--;
		bool after_v = p > data && p[-1] == 'v';
		bool alone = p == data || (!isdigit((unsigned char)p[-1]) && p[-1] != '.');
		if (p < dot && alone && version_at(p, end, after_v, ret))
			return true;
	}
	return false;
}

int runc_version_of(const char *path, struct runc_version *ret)
{
	struct stat st;
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENODATA;
	size_t len = (uint64_t)st.st_size < RUNC_SIZE_MAX ? (size_t)st.st_size : RUNC_SIZE_MAX;
	void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	bool found = runc_version_in(data, len, ret);
	(void)munmap(data, len);
	return found ? 0 : -ENODATA;
}

bool runc_swaps_bytes(const struct runc_version *v)
{
	return v->major < 1 || (v->major == 1 && (v->minor < 1 || (v->minor == 1 && v->patch < 6)));
}
