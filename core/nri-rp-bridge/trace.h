/* SPDX-License-Identifier: Apache-2.0 */
/* Logs passing calls by the rules of the command line; the first rule that matches a method
 * applies. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TRACE_RULES_MAX 32u
#define TRACE_BYTES_MAX 16384u /* largest part of a message that is stored and shown, in bytes */

enum trace_level {
	TRACE_OFF,
	TRACE_NAME, /* method, result and duration */
	TRACE_SHORT, /* also log the number of bytes in both directions */
	TRACE_FULL, /* also log the messages */
};

struct trace_rule {
	char glob[64]; /* matches the method's name, or the whole path if the glob has a slash */
	enum trace_level level;
};
struct trace_rules {
	struct trace_rule list[TRACE_RULES_MAX];
	unsigned n;
};

/* Adds a rule "GLOB" or "GLOB=off|name|short|full"; the default level is short. Returns 0, -EINVAL
 * or -E2BIG. */
int trace_add(struct trace_rules *rules, const char *text);
enum trace_level trace_level_of(const struct trace_rules *rules, const char *path);
/*
 * Logs a message as text with the numbers of its fields: "{1: "name", 2: {…}}". `n` may be less
 * than the length of the message. Credentials for image registries are left out.
 */
void trace_log_message(const char *path, const char *arrow, const uint8_t *data, size_t n);
/* Returns the method's name, such as "CreateContainer", or the whole path if it has none. */
const char *trace_method(const char *path);
