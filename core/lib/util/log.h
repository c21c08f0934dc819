/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log messages, one line each, on stderr: with journald's level prefix ("<6>") if stderr is the
 * journal, with time and level otherwise. The log sink is the only global state of the program.
 */
#pragma once

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
/* Sets the sources whose debug messages are written at any level: names, "*" for all. Replaces the
 * previous set; at most LOG_SOURCES_MAX. */
#define LOG_SOURCES_MAX 64
int log_set_debug(const char *const *sources, unsigned n_sources);
/* Sets the format of the source. True: a message begins with "[SOURCE] ", padded so that texts are
 * aligned; false: with "SOURCE: ". */
void log_set_source(bool brackets);
bool log_wants(const char *source, enum log_level level);

/*
 * Held messages, for a forked child that does in advance what its parent does after it. Warnings
 * and less important messages, of at most LOG_HELD_MAX bytes each, are stored in memory that parent
 * and child share; debug messages are then stored as well. However the child ends, log_tell_held()
 * writes the messages in the parent, if the parent is not going to log them itself. The memory is
 * trusted no further than a line of text.
 */
#define LOG_HELD_MAX 512u
/* largest number of messages that are held; further messages are written at once */
#define LOG_HELD_LINES 64u
struct log_held;
struct log_held *log_held_new(void); /* NULL: out of memory */
struct log_held *log_held_free(struct log_held *h); /* accepts NULL; returns NULL */
/* Holds messages in the child from now on; NULL: no longer. `dry`: the parent does not repeat the
 * child's work, so its messages are never written, whether held or not. */
void log_hold(struct log_held *h, bool dry);
void log_tell_held(const struct log_held *h);
/* Calls fn for each held message without writing it. */
void log_each_held(const struct log_held *h,
		   void (*fn)(enum log_level level, const char *text, void *arg), void *arg);

void log_write(const char *source, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void log_vwrite(const char *source, enum log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Log macros. A file that uses them first defines its source: #define LOG_SOURCE "cache". */
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

/* Limits messages that can repeat: true at most `burst` times per interval. The first message after
 * a gap states how many were suppressed. */
struct log_limit {
	uint64_t since_ms;
	unsigned burst, interval_ms, passed, dropped;
};
#define LOG_LIMIT(burst_, interval_ms_)                                                            \
	{                                                                                          \
		.burst = (burst_), .interval_ms = (interval_ms_)                                   \
	}
bool log_allowed(struct log_limit *limit, const char *source);
