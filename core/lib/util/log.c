/* SPDX-License-Identifier: Apache-2.0 */
/* Formats log messages and writes or holds them. */
#include "core/lib/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/lib/util/loop.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_LINE_MAX 4096
#define LOG_PROGRAM_MAX 32
#define LOG_SOURCE_MAX 60
#define LOG_SOURCE_WIDTH 14 /* topology-aware, the longest name of the project's sources */

/*
 * Written at start and at a reload; read also by the worker's thread and by forked children, so
 * there are no locks. Debugged sources are stored as hashes, so that a reader sees an old one or a
 * new one but never half a name.
 */
static struct {
	char program[LOG_PROGRAM_MAX];
	bool journal;
	atomic_bool brackets;
	_Atomic(int) level;
	atomic_uint n_sources;
	_Atomic(uint64_t) sources[LOG_SOURCES_MAX];
} sink = {.level = LOG_INFO};

struct held_line {
	int32_t level;
	char source[64], text[LOG_HELD_MAX];
};

struct log_held {
	uint32_t n;
	struct held_line lines[LOG_HELD_LINES];
};

/* Messages that a child process holds back; the child has one thread. */
static struct log_held *held;
static bool held_dry;

static const char *const level_names[] = {
	[LOG_ERROR] = "error", [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
	[LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

/* Returns true if stderr is connected to the journal. systemd sets JOURNAL_STREAM to the device and
 * inode of stderr, which a parent process may have redirected since. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;
	if (!stream || sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &dev, &ino) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void log_init(const char *program)
{
	(void)snprintf(sink.program, sizeof sink.program, "%s", program);
	sink.journal = stderr_is_journal();
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&sink.level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&sink.level, memory_order_relaxed);
}

int log_level_from_name(const char *name, enum log_level *ret)
{
	for (int i = LOG_ERROR; i <= LOG_DEBUG; i++)
		if (str_eq(name, level_names[i])) {
			*ret = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
	return level >= LOG_ERROR && level <= LOG_DEBUG ? level_names[level] : "unknown";
}

void log_set_source(bool brackets)
{
	atomic_store_explicit(&sink.brackets, brackets, memory_order_relaxed);
}

static uint64_t source_hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

int log_set_debug(const char *const *sources, unsigned n_sources)
{
	if (n_sources > LOG_SOURCES_MAX)
		return -E2BIG;
	atomic_store(&sink.n_sources, 0);
	for (unsigned i = 0; i < n_sources; i++)
		atomic_store(&sink.sources[i], source_hash(sources[i]));
	atomic_store(&sink.n_sources, n_sources);
	return 0;
}

bool log_wants(const char *source, enum log_level level)
{
	if (level <= log_get_level())
		return true;
	unsigned n = atomic_load_explicit(&sink.n_sources, memory_order_acquire);
	if (!n)
		return false;
	uint64_t hash = source_hash(source), any = source_hash("*");
	for (unsigned i = 0; i < n; i++) {
		uint64_t wanted = atomic_load_explicit(&sink.sources[i], memory_order_relaxed);
		if (wanted == hash || wanted == any)
			return true;
	}
	return false;
}

static char *put_digits(char *out, unsigned number, unsigned n)
{
	for (unsigned i = n; i-- > 0; number /= 10u)
		out[i] = (char)('0' + number % 10u);
	return out + n;
}

/* Writes the time in ISO 8601, UTC. The C library's conversion is not used because it takes a lock
 * that a forked child could find locked. */
static char *put_time(char *out)
{
	uint64_t ms = clock_wall_ns() / 1000000u, s = ms / 1000u;
	unsigned days = (unsigned)(s / 86400u), of_day = (unsigned)(s % 86400u);
	/* Years begin in March here, so that the leap day is the last one. 719468 days are between
	 * the first of these years and 1970. */
	unsigned n = days + 719468u, era = n / 146097u, of_era = n % 146097u;
	unsigned year = (of_era - of_era / 1460u + of_era / 36524u - of_era / 146096u) / 365u;
	unsigned of_year = of_era - (365u * year + year / 4u - year / 100u);
	unsigned month = (5u * of_year + 2u) / 153u;
	unsigned day = of_year - (153u * month + 2u) / 5u + 1u;
	year += era * 400u + (month >= 10u);
	month = month < 10u ? month + 3u : month - 9u;
	const struct {
		unsigned number, digits;
		char after;
	} parts[] = {
		{year, 4, '-'},
		{month, 2, '-'},
		{day, 2, 'T'},
		{of_day / 3600u, 2, ':'},
		{of_day / 60u % 60u, 2, ':'},
		{of_day % 60u, 2, '.'},
		{(unsigned)(ms % 1000u), 3, 'Z'},
	};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		out = put_digits(out, parts[i].number, parts[i].digits);
		*out++ = parts[i].after;
	}
	return out;
}

static char *put_text(char *out, const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	memcpy(out, text, len);
	return out + len;
}

static char *put_source(char *out, const char *source)
{
	if (!atomic_load_explicit(&sink.brackets, memory_order_relaxed))
		return put_text(put_text(out, source, LOG_SOURCE_MAX), ": ", 2);
	*out++ = '[';
	char *end = put_text(out, source, LOG_SOURCE_MAX);
	for (; end < out + LOG_SOURCE_WIDTH; end++)
		*end = ' ';
	return put_text(end, "] ", 2);
}

/* Writes time or priority, program, level and source. */
static size_t put_head(char *line, const char *source, enum log_level level)
{
	char *p = line;
	if (sink.journal) {
		*p++ = '<';
		*p++ = (char)('0' + level);
		*p++ = '>';
	} else {
		p = put_time(p);
		*p++ = ' ';
		if (sink.program[0]) {
			p = put_text(p, sink.program, sizeof sink.program);
			*p++ = ' ';
		}
		p = put_text(put_text(p, log_level_name(level), LOG_SOURCE_MAX), ": ", 2);
	}
	p = put_source(p, source);
	return (size_t)(p - line);
}

/* Returns the length of the prefix that needs no escaping. */
static size_t log_plain(const char *text, size_t len)
{
	size_t n = 0;
	while (n < len && (unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x7f)
		n++;
	return n;
}

/* Copies text, with control characters and invalid UTF-8 escaped. Stops if the next piece does not
 * fit. */
static size_t log_escape(char *out, size_t size, const char *text, size_t left)
{
	size_t len = log_plain(text, left < size ? left : size);
	memcpy(out, text, len);
	text += len;
	left -= len;
	while (left) {
		char piece[8];
		size_t n = utf8_char(text, left), n_piece = n;
		unsigned char c = (unsigned char)text[0];
		if (!n || c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0)) {
			n = 1;
			n_piece =
				(size_t)(c == '\n'   ? snprintf(piece, sizeof piece, "\\n")
					 : c == '\t' ? snprintf(piece, sizeof piece, "\\t")
						     : snprintf(piece, sizeof piece, "\\x%02x", c));
		} else {
			memcpy(piece, text, n);
		}
		if (len + n_piece > size)
			break;
		memcpy(out + len, piece, n_piece);
		len += n_piece;
		text += n;
		left -= n;
	}
	return len;
}

static size_t without_line_ends(const char *text, size_t len)
{
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	return len;
}

struct log_held *log_held_new(void)
{
	void *p = mmap(NULL, sizeof(struct log_held), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

struct log_held *log_held_free(struct log_held *h)
{
	if (h)
		(void)munmap(h, sizeof *h);
	return NULL;
}

void log_hold(struct log_held *h, bool dry)
{
	held = h;
	held_dry = h && dry;
}

/* Copies a held message and makes it valid, because the child may have overwritten the memory. */
static void copy_held(const struct log_held *h, uint32_t i, struct held_line *ret)
{
	*ret = h->lines[i];
	if (ret->level < LOG_ERROR || ret->level > LOG_INFO)
		ret->level = LOG_WARNING;
	ret->source[sizeof ret->source - 1] = ret->text[sizeof ret->text - 1] = '\0';
	for (char *p = ret->source; *p; p++)
		*p = *p > ' ' && *p <= '~' ? *p : '?';
}

void log_tell_held(const struct log_held *h)
{
	struct held_line line;
	for (uint32_t i = 0; i < h->n && i < LOG_HELD_LINES; i++) {
		copy_held(h, i, &line);
		log_write(line.source, (enum log_level)line.level, "%s", line.text);
	}
}

void log_each_held(const struct log_held *h,
		   void (*fn)(enum log_level level, const char *text, void *arg), void *arg)
{
	struct held_line line;
	for (uint32_t i = 0; i < h->n && i < LOG_HELD_LINES; i++) {
		copy_held(h, i, &line);
		fn((enum log_level)line.level, line.text, arg);
	}
}

/* Holds a message; false: no room. The count is raised after the message is complete, because the
 * child may die while it writes. */
static bool log_do_hold(const char *source, enum log_level level, const char *fmt, va_list ap)
{
	uint32_t n = held->n;
	if (n >= LOG_HELD_LINES)
		return false;
	held->lines[n].level = (int32_t)level;
	(void)snprintf(held->lines[n].source, sizeof held->lines[n].source, "%s", source);
	(void)vsnprintf(held->lines[n].text, sizeof held->lines[n].text, fmt, ap);
	held->n = n + 1;
	return true;
}

void log_vwrite(const char *source, enum log_level level, const char *fmt, va_list ap)
{
	if (!log_wants(source, level))
		return;
	if (held && level < LOG_DEBUG && (held_dry || level > LOG_ERROR)) {
		va_list copy;
		va_copy(copy, ap);
		bool kept = log_do_hold(source, level, fmt, copy);
		va_end(copy);
		if (kept && !log_wants(source, LOG_DEBUG))
			return;
		level = kept ? LOG_DEBUG : level;
	}
	if (held_dry)
		return;
	int saved = errno;
	char text[LOG_LINE_MAX], line[LOG_LINE_MAX + 8];
	int n = vsnprintf(text, sizeof text, fmt, ap);
	bool cut = n >= (int)sizeof text;
	size_t whole = n < 0 ? 0 : cut ? sizeof text - 1 : (size_t)n;
	size_t len = put_head(line, source, level), room = LOG_LINE_MAX - len;
	len += log_escape(line + len, room, text, without_line_ends(text, whole));
	if (cut || len + 8 > LOG_LINE_MAX) {
		memcpy(line + len, "...", 3);
		len += 3;
	}
	line[len++] = '\n';
	ssize_t written = write(STDERR_FILENO, line, len);
	(void)written; /* there is no place to report a failure */
	errno = saved;
}

void log_write(const char *source, enum log_level level, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	log_vwrite(source, level, fmt, ap);
	va_end(ap);
}

bool log_allowed(struct log_limit *limit, const char *source)
{
	uint64_t now = clock_ms();
	if (!limit->since_ms || now - limit->since_ms >= limit->interval_ms) {
		if (limit->dropped)
			log_write(source, LOG_NOTICE, "suppressed %u messages like the next one",
				  limit->dropped);
		limit->since_ms = now ? now : 1;
		limit->passed = limit->dropped = 0;
	}
	if (limit->passed < limit->burst) {
		limit->passed++;
		return true;
	}
	limit->dropped++;
	return false;
}
