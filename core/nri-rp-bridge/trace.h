/* SPDX-License-Identifier: Apache-2.0 */
/* What of the calls that pass is logged: rules of the command line, the first that fits a method
 * counts. */
#ifndef NRI_RP_BRIDGE_TRACE_H
#define NRI_RP_BRIDGE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_RULES_MAX 32u
#define TRACE_BYTES_MAX 16384u /* of a message, that are kept and shown */

enum trace_level {
	TRACE_OFF,
	TRACE_NAME, /* the method, how it ended and how long it took */
	TRACE_SHORT, /* and how many bytes went either way */
	TRACE_FULL, /* and the messages */
};

struct trace_rule {
	char glob[64]; /* of a method's name, or of its path where the glob has a slash */
	enum trace_level level;
};
struct trace_rules {
	struct trace_rule list[TRACE_RULES_MAX];
	unsigned n;
};

/* "GLOB" or "GLOB=off|name|short|full"; without a level: short. 0, or -EINVAL, -E2BIG. */
int trace_add(struct trace_rules *rules, const char *text);
enum trace_level trace_level_of(const struct trace_rules *rules, const char *path);
/*
 * A message as text: "{1: "name", 2: {…}}" with the numbers of its fields. `n` bytes of one that
 * may have been longer. What tells a registry who we are is left out.
 */
void trace_log_message(const char *path, const char *arrow, const uint8_t *data, size_t n);
/* "CreateContainer", or all of a path that has no method. */
const char *trace_method(const char *path);

#endif
