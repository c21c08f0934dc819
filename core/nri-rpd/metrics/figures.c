/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of a cgroup and parses their figures. */
#include "core/nri-rpd/metrics/figures.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/nri-rpd/host/cgroup.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"

#define KEYS_MAX 8

/* ---- contents -------------------------------------------------------------------------------- */

/* Reads the digits at the start of text; false: no digits, or the number exceeds 64 bits. */
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

static bool figures_ends(const char *p)
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

/* Returns the rest of a line that starts with "WORD "; NULL: it does not. */
static const char *figures_behind(const char *line, const char *word)
{
	size_t len = strlen(word);
	return strncmp(line, word, len) == 0 && line[len] == ' ' ? line + len + 1 : NULL;
}

uint32_t figures_keys(const char *text, const char *const *keys, uint32_t n, uint64_t *ret)
{
	uint32_t all = (1u << n) - 1, seen = 0, good = 0;
	for (const char *line = text; line && seen != all; line = next_line(line))
		for (uint32_t i = 0; i < n; i++) {
			const char *p = *line == *keys[i] ? figures_behind(line, keys[i]) : NULL;
			uint64_t v;
			if (!p || seen & 1u << i)
				continue;
			seen |= 1u << i;
			if (!take_number(&p, &v) || !figures_ends(p))
				continue;
			ret[i] = v;
			good |= 1u << i;
		}
	return good;
}

/* Reads the number of a word NAME=NUMBER of a line. */
static bool word_number(const char *line, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);
	for (const char *p = line; *p && *p != '\n'; p += strcspn(p, " \n")) {
		uint64_t v;
		p += strspn(p, " ");
		if (strncmp(p, name, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		if (!take_number(&p, &v) || !figures_ends(p))
			return false;
		*ret = v;
		return true;
	}
	return false;
}

bool figures_wait(const char *text, uint64_t *ret)
{
	for (const char *line = text; line; line = next_line(line)) {
		const char *p = figures_behind(line, "some");
		if (p)
			return word_number(p, "total", ret);
	}
	return false;
}

static void figures_add(uint64_t *to, uint64_t v)
{
	if (__builtin_add_overflow(*to, v, to))
		*to = UINT64_MAX;
}

/* Returns the rest of a line about a device, "8:0 …"; NULL: another line. */
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
			figures_add(&read, v);
		if (word_number(p, "wbytes", &v))
			figures_add(&written, v);
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
		const char *r = figures_behind(p, "Read"), *w = figures_behind(p, "Write");
		if (r && take_number(&r, &v) && figures_ends(r))
			figures_add(&read, v);
		else if (w && take_number(&w, &v) && figures_ends(w))
			figures_add(&written, v);
	}
	*ret_read = read;
	*ret_written = written;
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum how { NUMBER, KEYS, WAIT, IO, IO_V1 };

/* Conditions for reading a file. Each time; each time while the file counts periods, which it does
 * only under a quota; or now and then, because its values change slowly or reading is expensive.
 * Files of the last kind are also read each time if the caller asks for them (FIGURES_…_WAIT). */
enum when { EACH_TIME = -1, WHILE_LIMITED = -2, NOW_AND_THEN = 0 };

struct source {
	const char *controller; /* v1 controller; files of a controller are adjacent */
	const char *file;
	enum how how;
	int when; /* enum when, or the caller's bit */
	const char *keys[KEYS_MAX];
	/* figure and unit of each key; the values of several keys with one figure are added */
	struct {
		enum figure figure;
		uint32_t scale;
	} to[KEYS_MAX];
};

static const struct source v2[] = {
	{"",
	 "cpu.stat",
	 KEYS,
	 EACH_TIME,
	 {"usage_usec", "nr_periods", "nr_throttled", "throttled_usec"},
	 {{FIG_CPU, 1000}, {FIG_PERIODS, 1}, {FIG_THROTTLED_PERIODS, 1}, {FIG_THROTTLED, 1000}}},
	{"", "memory.current", NUMBER, NOW_AND_THEN, {NULL}, {{FIG_MEMORY, 1}}},
	{"", "cpu.pressure", WAIT, FIGURES_CPU_WAIT, {NULL}, {{FIG_CPU_WAIT, 1}}},
	{"", "memory.pressure", WAIT, FIGURES_MEMORY_WAIT, {NULL}, {{FIG_MEMORY_WAIT, 1}}},
	{"", "io.pressure", WAIT, FIGURES_IO_WAIT, {NULL}, {{FIG_IO_WAIT, 1}}},
	{"",
	 "memory.stat",
	 KEYS,
	 NOW_AND_THEN,
	 {"anon", "pgmajfault", "inactive_anon", "active_anon", "unevictable", "inactive_file",
	  "active_file"},
	 {{FIG_MEMORY_ANON, 1},
	  {FIG_MEMORY_FAULTS, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_FILES, 1},
	  {FIG_MEMORY_FILES, 1}}},
	{"", "memory.events", KEYS, NOW_AND_THEN, {"oom_kill"}, {{FIG_OOM_KILLS, 1}}},
	{"", "io.stat", IO, NOW_AND_THEN, {NULL}, {{FIG_IO_READ, 1}, {FIG_IO_WRITTEN, 1}}},
};

static const struct source v1[] = {
	{"cpuacct", "cpuacct.usage", NUMBER, EACH_TIME, {NULL}, {{FIG_CPU, 1}}},
	{"cpu",
	 "cpu.stat",
	 KEYS,
	 WHILE_LIMITED,
	 {"nr_periods", "nr_throttled", "throttled_time"},
	 {{FIG_PERIODS, 1}, {FIG_THROTTLED_PERIODS, 1}, {FIG_THROTTLED, 1}}},
	{"memory", "memory.usage_in_bytes", NUMBER, NOW_AND_THEN, {NULL}, {{FIG_MEMORY, 1}}},
	{"memory",
	 "memory.stat",
	 KEYS,
	 NOW_AND_THEN,
	 {"total_rss", "total_pgmajfault", "total_inactive_anon", "total_active_anon",
	  "total_unevictable", "total_inactive_file", "total_active_file"},
	 {{FIG_MEMORY_ANON, 1},
	  {FIG_MEMORY_FAULTS, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_KEPT, 1},
	  {FIG_MEMORY_FILES, 1},
	  {FIG_MEMORY_FILES, 1}}},
	{"memory", "memory.oom_control", KEYS, NOW_AND_THEN, {"oom_kill"}, {{FIG_OOM_KILLS, 1}}},
	{"blkio",
	 "blkio.throttle.io_service_bytes",
	 IO_V1,
	 NOW_AND_THEN,
	 {NULL},
	 {{FIG_IO_READ, 1}, {FIG_IO_WRITTEN, 1}}},
};

#define N_V2 (sizeof v2 / sizeof *v2)
#define N_V1 (sizeof v1 / sizeof *v1)
_Static_assert(N_V2 <= FIGURES_SOURCES && N_V1 <= FIGURES_SOURCES, "sources of a cgroup");

static void figures_put(struct figures *to, enum figure f, uint64_t value, uint32_t scale)
{
	value = __builtin_mul_overflow(value, scale, &value) ? UINT64_MAX : value;
	if (to->has & 1u << f)
		figures_add(&to->value[f], value);
	else
		to->value[f] = value;
	to->has |= 1u << f;
}

static void take_io(const struct source *s, const char *text, struct figures *to)
{
	uint64_t read, written;
	if (s->how == IO ? figures_io(text, &read, &written)
			 : figures_io_v1(text, &read, &written)) {
		figures_put(to, FIG_IO_READ, read, 1);
		figures_put(to, FIG_IO_WRITTEN, written, 1);
	}
}

static void take_keys(const struct source *s, const char *text, struct figures *to)
{
	uint64_t values[KEYS_MAX];
	uint32_t n = 0, found;
	while (n < KEYS_MAX && s->keys[n])
		n++;
	found = figures_keys(text, s->keys, n, values);
	for (uint32_t i = 0; i < n; i++)
		if (found & 1u << i)
			figures_put(to, s->to[i].figure, values[i], s->to[i].scale);
	/* A partial sum would be too small, so the figure is left out. */
	for (uint32_t i = 0; i < n; i++)
		if (!(found & 1u << i))
			to->has &= ~(1u << s->to[i].figure);
}

static void figures_take(const struct source *s, const char *text, struct figures *to)
{
	uint64_t v;
	switch (s->how) {
	case NUMBER:
		if (figures_number(text, &v))
			figures_put(to, s->to[0].figure, v, 1);
		return;
	case WAIT:
		if (figures_wait(text, &v))
			figures_put(to, s->to[0].figure, v, 1);
		return;
	case KEYS:
		take_keys(s, text, to);
		return;
	default:
		take_io(s, text, to);
	}
}

/* ---- a cgroup's files ------------------------------------------------------------------------ */

static const struct source *sources_of(const struct figures_place *p, uint32_t *ret_n)
{
	*ret_n = p->unified ? N_V2 : N_V1;
	return p->unified ? v2 : v1;
}

/* Returns true for a cgroup file system of the kernel. Files of another tree may be replaced by new
 * ones. */
static bool is_kernels(int dir)
{
	struct statfs st;
	return fstatfs(dir, &st) == 0 &&
	       (st.f_type == CGROUP_SUPER_MAGIC || st.f_type == CGROUP2_SUPER_MAGIC);
}

void figures_place_close(struct figures_place *p)
{
	uint32_t n;
	const struct source *list = sources_of(p, &n);
	for (uint32_t i = 0; i < n && p->open; i++) {
		bool shared = i && p->dirs[i] == p->dirs[i - 1] &&
			      str_eq(list[i].controller, list[i - 1].controller);
		if (p->dirs[i] >= 0 && !shared)
			(void)close(p->dirs[i]);
		if (p->files[i] >= 0)
			(void)close(p->files[i]);
	}
	*p = (struct figures_place){0};
}

int figures_place_open(const struct fs_root *root, bool unified, const struct figures_cgroup *of,
		       struct figures_place *ret)
{
	uint32_t n;
	int r = -ENOENT;
	bool any = false;
	*ret = (struct figures_place){.unified = unified, .open = true};
	const struct source *list = sources_of(ret, &n);
	for (uint32_t i = 0; i < n; i++) {
		bool same = i && str_eq(list[i].controller, list[i - 1].controller);
		ret->files[i] = -1;
		ret->dirs[i] =
			same ? ret->dirs[i - 1]
			     : cgroup_open(root, unified, of->path, of->pid, list[i].controller);
		if (ret->dirs[i] >= 0 && !any)
			ret->kernels = is_kernels(ret->dirs[i]);
		if (ret->dirs[i] >= 0)
			any = true;
		else if (ret->dirs[i] != -ENOENT)
			r = ret->dirs[i];
	}
	if (!any)
		figures_place_close(ret);
	return any ? 0 : r;
}

bool figures_place_complete(const struct figures_place *p)
{
	uint32_t n;
	(void)sources_of(p, &n);
	for (uint32_t i = 0; i < n; i++)
		if (p->dirs[i] < 0)
			return false;
	return p->open;
}

unsigned figures_place_files(const struct figures_place *p)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < FIGURES_SOURCES && p->open; i++)
		n += (p->dirs[i] >= 0 && (!i || p->dirs[i] != p->dirs[i - 1])) + (p->files[i] >= 0);
	return n;
}

/* Reads a file that stays open between rounds, which saves a sixth of the cost. */
static ssize_t read_kept(struct figures_place *p, uint32_t i, const char *file, char *buf)
{
	if (p->files[i] < 0)
		p->files[i] = openat(p->dirs[i], file, O_RDONLY | O_CLOEXEC);
	return p->files[i] < 0 ? -errno : fs_read_from(p->files[i], buf, FIGURES_FILE_MAX);
}

static bool is_each_time(const struct figures_place *p, const struct source *s, uint32_t what)
{
	if (s->when == WHILE_LIMITED)
		return p->limited;
	return s->when == EACH_TIME || (uint32_t)s->when & what;
}

int figures_read(struct figures_place *p, uint32_t what, char *buf, struct figures *ret)
{
	uint32_t n;
	const struct source *list = sources_of(p, &n);
	*ret = (struct figures){0};
	for (uint32_t i = 0; i < n; i++) {
		bool each = is_each_time(p, &list[i], what);
		ssize_t len;
		if (p->dirs[i] < 0 || !(each || what & FIGURES_SLOW))
			continue;
		len = each && what & FIGURES_KEEP && p->kernels
			      ? read_kept(p, i, list[i].file, buf)
			      : fs_read_at(p->dirs[i], list[i].file, buf, FIGURES_FILE_MAX);
		if (len < 0)
			continue;
		ret->n_files++;
		figures_take(&list[i], buf, ret);
	}
	if (ret->has & 1u << FIG_PERIODS)
		p->limited = ret->value[FIG_PERIODS] != 0;
	return ret->n_files ? 0 : -ENOENT;
}
