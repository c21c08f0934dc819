/* SPDX-License-Identifier: Apache-2.0 */
#include "core/metrics/figures.h"

#include <string.h>

#include "core/host/cgroup.h"
#include "core/util/cleanup.h"
#include "core/util/str.h"

#define KEYS_MAX 4

/* ---- contents -------------------------------------------------------------------------------- */

/* Digits at the start of text; false: there are none, or it is no number of 64 bits. */
static bool take_number(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	*text = p;
	*ret = v;
	return true;
}

static bool ends(const char *p)
{
	return !*p || *p == '\n' || *p == ' ';
}

bool figures_number(const char *text, uint64_t *ret)
{
	uint64_t v;
	if (!take_number(&text, &v) || (*text && !(*text == '\n' && !text[1])))
		return false;
	*ret = v;
	return true;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');
	return end && end[1] ? end + 1 : NULL;
}

/* What is behind "WORD" and a blank at the start of the line, or NULL. */
static const char *behind(const char *line, const char *word)
{
	size_t len = strlen(word);
	return strncmp(line, word, len) == 0 && line[len] == ' ' ? line + len + 1 : NULL;
}

bool figures_key(const char *text, const char *key, uint64_t *ret)
{
	for (const char *line = text; line; line = next_line(line)) {
		const char *p = behind(line, key);
		uint64_t v;
		if (!p)
			continue;
		if (!take_number(&p, &v) || !ends(p))
			return false;
		*ret = v;
		return true;
	}
	return false;
}

/* NAME=NUMBER among the words of a line. */
static bool word_number(const char *line, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);
	for (const char *p = line; *p && *p != '\n'; p += strcspn(p, " \n")) {
		uint64_t v;
		p += strspn(p, " ");
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		if (!take_number(&p, &v) || !ends(p))
			return false;
		*ret = v;
		return true;
	}
	return false;
}

bool figures_wait(const char *text, uint64_t *ret)
{
	for (const char *line = text; line; line = next_line(line)) {
		const char *p = behind(line, "some");
		if (p)
			return word_number(p, "total", ret);
	}
	return false;
}

static void add(uint64_t *to, uint64_t v)
{
	if (__builtin_add_overflow(*to, v, to))
		*to = UINT64_MAX;
}

/* "8:0 …": a line about a device. Returns what is behind it. */
static const char *device_line(const char *line)
{
	uint64_t number;
	if (!take_number(&line, &number) || *line++ != ':' || !take_number(&line, &number))
		return NULL;
	return *line == ' ' ? line + 1 : NULL;
}

bool figures_io(const char *text, uint64_t *ret_read, uint64_t *ret_written)
{
	uint64_t read = 0, written = 0, v;
	for (const char *line = text; line && *line; line = next_line(line)) {
		const char *p = device_line(line);
		if (!p)
			return false;
		if (word_number(p, "rbytes", &v))
			add(&read, v);
		if (word_number(p, "wbytes", &v))
			add(&written, v);
	}
	*ret_read = read;
	*ret_written = written;
	return true;
}

bool figures_io_v1(const char *text, uint64_t *ret_read, uint64_t *ret_written)
{
	uint64_t read = 0, written = 0, v;
	for (const char *line = text; line && *line; line = next_line(line)) {
		const char *p = device_line(line);
		if (!p)
			continue; /* "Total 123" */
		const char *r = behind(p, "Read"), *w = behind(p, "Write");
		if (r && take_number(&r, &v) && ends(r))
			add(&read, v);
		else if (w && take_number(&w, &v) && ends(w))
			add(&written, v);
	}
	*ret_read = read;
	*ret_written = written;
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum how { NUMBER, KEYS, WAIT, IO, IO_V1 };

struct source {
	const char *controller; /* of v1 */
	const char *file;
	enum how how;
	struct {
		const char *key;
		enum figure figure;
		uint32_t scale;
	} keys[KEYS_MAX];
};

static const struct source v2[] = {
	{"",
	 "cpu.stat",
	 KEYS,
	 {{"usage_usec", FIG_CPU, 1000},
	  {"nr_periods", FIG_PERIODS, 1},
	  {"nr_throttled", FIG_THROTTLED_PERIODS, 1},
	  {"throttled_usec", FIG_THROTTLED, 1000}}},
	{"", "memory.current", NUMBER, {{"", FIG_MEMORY, 1}}},
	{"",
	 "memory.stat",
	 KEYS,
	 {{"anon", FIG_MEMORY_ANON, 1}, {"pgmajfault", FIG_MEMORY_FAULTS, 1}}},
	{"", "memory.events", KEYS, {{"oom_kill", FIG_OOM_KILLS, 1}}},
	{"", "cpu.pressure", WAIT, {{"", FIG_CPU_WAIT, 1}}},
	{"", "memory.pressure", WAIT, {{"", FIG_MEMORY_WAIT, 1}}},
	{"", "io.pressure", WAIT, {{"", FIG_IO_WAIT, 1}}},
	{"", "io.stat", IO, {{"", FIG_IO_READ, 1}, {"", FIG_IO_WRITTEN, 1}}},
};

static const struct source v1[] = {
	{"cpuacct", "cpuacct.usage", NUMBER, {{"", FIG_CPU, 1}}},
	{"cpu",
	 "cpu.stat",
	 KEYS,
	 {{"nr_periods", FIG_PERIODS, 1},
	  {"nr_throttled", FIG_THROTTLED_PERIODS, 1},
	  {"throttled_time", FIG_THROTTLED, 1}}},
	{"memory", "memory.usage_in_bytes", NUMBER, {{"", FIG_MEMORY, 1}}},
	{"memory",
	 "memory.stat",
	 KEYS,
	 {{"total_rss", FIG_MEMORY_ANON, 1}, {"total_pgmajfault", FIG_MEMORY_FAULTS, 1}}},
	{"memory", "memory.oom_control", KEYS, {{"oom_kill", FIG_OOM_KILLS, 1}}},
	{"blkio",
	 "blkio.throttle.io_service_bytes",
	 IO_V1,
	 {{"", FIG_IO_READ, 1}, {"", FIG_IO_WRITTEN, 1}}},
};

static void put(struct figures *to, enum figure f, uint64_t value, uint32_t scale)
{
	to->value[f] = __builtin_mul_overflow(value, scale, &value) ? UINT64_MAX : value;
	to->has |= 1u << f;
}

static void take_io(const struct source *s, const char *text, struct figures *to)
{
	uint64_t read, written;
	if (s->how == IO ? figures_io(text, &read, &written)
			 : figures_io_v1(text, &read, &written)) {
		put(to, FIG_IO_READ, read, 1);
		put(to, FIG_IO_WRITTEN, written, 1);
	}
}

static void take(const struct source *s, const char *text, struct figures *to)
{
	uint64_t v;
	switch (s->how) {
	case NUMBER:
		if (figures_number(text, &v))
			put(to, s->keys[0].figure, v, 1);
		return;
	case WAIT:
		if (figures_wait(text, &v))
			put(to, s->keys[0].figure, v, 1);
		return;
	case KEYS:
		for (unsigned i = 0; i < KEYS_MAX && s->keys[i].key; i++)
			if (figures_key(text, s->keys[i].key, &v))
				put(to, s->keys[i].figure, v, s->keys[i].scale);
		return;
	default:
		take_io(s, text, to);
	}
}

static void read_source(int dir, const struct source *s, char *buf, struct figures *to)
{
	if (fs_read_at(dir, s->file, buf, FIGURES_FILE_MAX) < 0)
		return;
	to->n_files++;
	take(s, buf, to);
}

bool figures_unified(const struct fs_root *root)
{
	return fs_exists(root, "sys/fs/cgroup/cgroup.controllers");
}

static int open_cgroup(const struct fs_root *root, const char *cgroups_path, uint32_t pid,
		       const char *controller)
{
	char path[CACHE_PATH_MAX + 64];
	int r = cgroup_find_dir(root, cgroups_path, pid, controller, path, sizeof path);
	return r ? r : fs_open_dir(root, path);
}

int figures_read(const struct fs_root *root, bool unified, const char *cgroups_path, uint32_t pid,
		 char *buf, struct figures *ret)
{
	const struct source *list = unified ? v2 : v1;
	size_t n = unified ? sizeof v2 / sizeof *v2 : sizeof v1 / sizeof *v1;
	const char *controller = NULL;
	_close_ int dir = -1;
	int r = 0;
	*ret = (struct figures){0};
	for (size_t i = 0; i < n; i++) {
		if (!controller || !str_eq(controller, list[i].controller)) {
			controller = list[i].controller;
			if (dir >= 0)
				(void)close(take_fd(&dir));
			dir = open_cgroup(root, cgroups_path, pid, controller);
			r = dir < 0 ? dir : r;
		}
		if (dir >= 0)
			read_source(dir, &list[i], buf, ret);
	}
	return ret->n_files ? 0 : r ? r : -ENOENT;
}
