/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/wire/mux.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/lib/wire/be.h"

void mux_rx_init(struct mux_rx *rx, struct buf *plugin, struct buf *runtime, uint32_t frame_max)
{
	*rx = (struct mux_rx){.in = {plugin, runtime}, .frame_max = frame_max};
}

static size_t take_header(struct mux_rx *rx, const uint8_t *data, size_t n)
{
	size_t take = MUX_HEADER_SIZE - rx->n_head;
	if (take > n)
		take = n;
	memcpy(rx->head + rx->n_head, data, take);
	rx->n_head += (unsigned)take;
	return take;
}

ssize_t mux_rx_feed(struct mux_rx *rx, const uint8_t *data, size_t n, struct err *err)
{
	size_t used = 0;
	if (!rx->left) {
		used = take_header(rx, data, n);
		if (rx->n_head < MUX_HEADER_SIZE)
			return (ssize_t)used;
		rx->n_head = 0;
		rx->conn = get_be32(rx->head);
		uint32_t length = get_be32(rx->head + 4);
		if (length > rx->frame_max)
			return err_set(err, -EMSGSIZE,
				       "the peer sends a frame of %u bytes on connection %u, at "
				       "most %u are "
				       "accepted",
				       length, rx->conn, rx->frame_max);
		rx->left = length;
	}
	size_t take = n - used < rx->left ? n - used : rx->left;
	if (rx->conn - 1 < MUX_CONNS && buf_add(rx->in[rx->conn - 1], data + used, take))
		return err_set(err, -ENOMEM, "out of memory for %zu bytes of input", take);
	rx->left -= (uint32_t)take;
	return (ssize_t)(used + take);
}

static size_t head_room(size_t n, size_t first_max)
{
	return n > first_max ? 2 * MUX_HEADER_SIZE : MUX_HEADER_SIZE;
}

uint8_t *mux_begin(struct buf *out, size_t n, size_t first_max)
{
	assert(n);
	size_t room = head_room(n, first_max);
	uint8_t *p = buf_reserve(out, room + n);
	return p ? p + room : NULL;
}

static void put_header(uint8_t *p, uint32_t conn, size_t n)
{
	put_be32(p, conn);
	put_be32(p + 4, (uint32_t)n);
}

void mux_end(struct buf *out, uint32_t conn, size_t n, size_t first_max)
{
	uint8_t *p = out->data + out->end;
	if (n <= first_max) {
		put_header(p, conn, n);
	} else {
		/*
		 * The message has room for two headers in front. Only its first part is moved
		 * between them.
		 */
		memmove(p + MUX_HEADER_SIZE, p + 2 * MUX_HEADER_SIZE, first_max);
		put_header(p, conn, first_max);
		put_header(p + MUX_HEADER_SIZE + first_max, conn, n - first_max);
	}
	buf_commit(out, head_room(n, first_max) + n);
}
