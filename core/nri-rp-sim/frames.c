/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-sim/frames.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/lib/wire/be.h"

#define PLUGIN_CONN 1u /* answers of the plugin */
#define RUNTIME_CONN 2u /* requests of the plugin */
#define REQUEST 1
#define RESPONSE 2

void frames_init(struct frames *f, void (*bad)(const char *what, void *arg), void *arg)
{
	*f = (struct frames){.bad = bad, .arg = arg};
}

__attribute__((format(printf, 2, 3))) static void bad(struct frames *f, const char *fmt, ...)
{
	char text[200];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	f->bad(text, f->arg);
}

/* Checks a frame header that is complete. */
static void begin_frame(struct frames *f)
{
	f->conn = get_be32(f->head);
	f->length = f->left = get_be32(f->head + 4);
	f->n_messages = 0;
	if (f->conn != PLUGIN_CONN && f->conn != RUNTIME_CONN) {
		bad(f, "a frame for connection %u, which has no reader", f->conn);
		return;
	}
	if (!f->length)
		bad(f, "an empty frame");
	if (f->length > FRAMES_MESSAGE_MAX + FRAMES_MESSAGE_HEAD)
		bad(f, "a frame of %u bytes", f->length);
	struct frames_conn *c = &f->conns[f->conn - 1];
	bool begins = !c->left && !c->n_head;
	if (begins && f->length > FRAMES_FIRST_MAX)
		bad(f, "a message begins with a frame of %u bytes, more than %u", f->length,
		    FRAMES_FIRST_MAX);
	c->n_frames = begins ? 1 : c->n_frames + 1;
	if (c->n_frames == 3)
		bad(f, "a message in more than two frames");
}

/* Checks a message header that is complete. */
static void begin_message(struct frames *f, struct frames_conn *c)
{
	uint32_t length = get_be32(c->head), stream = get_be32(c->head + 4);
	unsigned type = c->head[8], flags = c->head[9];
	c->left = length;
	if (f->n_messages++)
		bad(f, "two messages in one frame");
	if (length > FRAMES_MESSAGE_MAX)
		bad(f, "a message of %u bytes", length);
	if (flags)
		bad(f, "a message with flags 0x%x", flags);
	if (f->conn == PLUGIN_CONN && type != RESPONSE)
		bad(f, "a message of type %u instead of a reply", type);
	if (f->conn == PLUGIN_CONN)
		return;
	if (type != REQUEST)
		bad(f, "a message of type %u instead of a request", type);
	if (stream % 2 == 0 || stream <= c->last_request)
		bad(f, "a request with stream number %u after %u", stream, c->last_request);
	c->last_request = stream;
}

/* Consumes bytes of the frame's payload that belong to one header or one message, and returns their
 * number. */
static size_t frames_take(struct frames *f, const uint8_t *data, size_t n)
{
	struct frames_conn *c = &f->conns[f->conn - 1];
	if (c->left) {
		size_t part = n < c->left ? n : c->left;
		c->left -= (uint32_t)part;
		if (!c->left)
			c->n_head = 0;
		return part;
	}
	size_t part = FRAMES_MESSAGE_HEAD - c->n_head < n ? FRAMES_MESSAGE_HEAD - c->n_head : n;
	memcpy(c->head + c->n_head, data, part);
	c->n_head += (unsigned)part;
	if (c->n_head < FRAMES_MESSAGE_HEAD)
		return part;
	begin_message(f, c);
	if (!c->left)
		c->n_head = 0;
	return part;
}

void frames_feed(struct frames *f, const uint8_t *data, size_t n)
{
	while (n) {
		size_t part = 1;
		if (f->left) {
			size_t here = n < f->left ? n : f->left;
			bool known = f->conn == PLUGIN_CONN || f->conn == RUNTIME_CONN;
			part = known ? frames_take(f, data, here) : here;
			f->left -= (uint32_t)part;
		} else {
			f->head[f->n_head++] = *data;
			if (f->n_head == FRAMES_HEAD) {
				f->n_head = 0;
				begin_frame(f);
			}
		}
		data += part;
		n -= part;
	}
}
