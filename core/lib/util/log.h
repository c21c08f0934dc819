/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a message on stderr: with journald's level prefix ("<6>") when stderr goes to the
 * journal, with time and level otherwise. The log sink is the one global of the program.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

void log_init(const char *program);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
int log_level_from_name(const char *name,
			enum log_level *ret); /* error, warning, notice, info, debug */
const char *log_level_name(enum log_level level);
/* Sources whose debug messages pass whatever the level: names, "*" for all. Replaces the set
 * before; at most LOG_SOURCES_MAX. */
#define LOG_SOURCES_MAX 64
int log_set_debug(const char *const *sources, unsigned n_sources);
/* True: a message begins with "[SOURCE] ", padded so that texts stand below each other; false: with
 * "SOURCE: ". */
void log_set_source(bool brackets);
bool log_wants(const char *source, enum log_level level);

/*
 * For a forked child that does what its parent does after it: warnings and less are kept, of each
 * LOG_HELD_MAX bytes at most, and debug messages meanwhile, in memory that both have. However the
 * child ends, log_tell_held() writes what was kept, in the parent, when that is not going to say
 * it. What is there is believed no further than a line of text.
 */
#define LOG_HELD_MAX 512u
#define LOG_HELD_LINES 64u /* more are written at once */
struct log_held;
struct log_held *log_held_new(void); /* NULL: no memory */
struct log_held *log_held_free(struct log_held *h); /* returns NULL; NULL is fine */
/* In the child, to its end; NULL: no more. `dry`: what the child does is done by nobody else, and
 * nothing of it is written, be it kept or not. */
void log_hold(struct log_held *h, bool dry);
void log_tell_held(const struct log_held *h);
/* What was kept, without writing it. */
void log_each_held(const struct log_held *h,
		   void (*fn)(enum log_level level, const char *text, void *arg), void *arg);

void log_write(const char *source, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void log_vwrite(const char *source, enum log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Each file that logs has: #define LOG_SOURCE "cache" before these are used. */
#define log_error(...) log_write(LOG_SOURCE, LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_SOURCE, LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_SOURCE, LOG_NOTICE, __VA_ARGS__)
#define log_info(...)                                                                              \
	do {                                                                                       \
		if (log_wants(LOG_SOURCE, LOG_INFO))                                               \
			log_write(LOG_SOURCE, LOG_INFO, __VA_ARGS__);                              \
	} while (0)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_wants(LOG_SOURCE, LOG_DEBUG))                                              \
			log_write(LOG_SOURCE, LOG_DEBUG, __VA_ARGS__);                             \
	} while (0)

/* For things that can repeat: true at most `burst` times an interval; the first one let through
 * after a gap says how many were not. */
struct log_limit {
	uint64_t since_ms;
	unsigned burst, interval_ms, passed, dropped;
};
#define LOG_LIMIT(burst_, interval_ms_)                                                            \
	{                                                                                          \
		.burst = (burst_), .interval_ms = (interval_ms_)                                   \
	}
bool log_allowed(struct log_limit *limit, const char *source);

#endif
