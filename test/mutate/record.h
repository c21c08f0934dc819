/* SPDX-License-Identifier: Apache-2.0 */
/* Records a runtime's half of a session, message by message, to be mutated. */
#ifndef MUTATE_RECORD_H
#define MUTATE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

#define MESSAGES_MAX 64u

struct message {
	uint32_t conn, stream;
	bool response;
	const char *method; /* method of a request */
	struct buf payload;
};

struct session {
	struct message messages[MESSAGES_MAX];
	unsigned n;
};

/* Registration, configuration, two lists, pods and containers that come, change and go. */
void session_record(struct session *s);
void session_fini(struct session *s);
void session_copy(struct session *to, const struct session *from);
/* The bytes of it. */
void session_encode(const struct session *s, struct buf *out);

#endif
