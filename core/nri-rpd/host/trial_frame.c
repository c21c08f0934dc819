/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/host/trial_frame.h"

#include <string.h>

#include "core/lib/util/fs.h"

#define FRAME_MAGIC 0x7472696cu

struct frame {
	uint32_t magic;
	int32_t code;
	uint32_t text_size;
	uint32_t pad;
	uint64_t data_size;
};

/* ---- in the child ---------------------------------------------------------------------------- */

int frame_send(int fd, int code, const struct err *err, const struct buf *data, size_t data_max)
{
	const char *text = code < 0 ? err_text(err, code) : "";
	struct frame f = {.magic = FRAME_MAGIC,
			  .code = code,
			  .text_size = (uint32_t)strlen(text),
			  .data_size = buf_len(data)};
	int r = fs_write_all(fd, &f, sizeof f);
	if (r || f.data_size > data_max)
		return r;
	r = fs_write_all(fd, text, f.text_size);
	return r || !f.data_size ? r : fs_write_all(fd, buf_bytes(data), f.data_size);
}

/* ---- in the parent --------------------------------------------------------------------------- */

/* Copies the header of the frame. Returns false if it is incomplete. */
static bool trial_frame_peek(const struct frame_in *f, struct frame *ret)
{
	if (buf_len(&f->in) < sizeof *ret)
		return false;
	memcpy(ret, buf_bytes(&f->in), sizeof *ret);
	return true;
}

/* Detects invalid frames as early as possible. */
static enum frame_state trial_frame_judge(const struct frame_in *f)
{
	struct frame head;
	if (!trial_frame_peek(f, &head))
		return FRAME_PART;
	if (head.magic != FRAME_MAGIC || head.text_size >= ERR_TEXT_MAX)
		return FRAME_GARBLED;
	if (head.data_size > f->data_max)
		return FRAME_TOO_LONG;
	uint64_t have = buf_len(&f->in) - sizeof head;
	if (have < head.text_size)
		return FRAME_PART;
	have -= head.text_size;
	return have < head.data_size	? FRAME_PART
	       : have == head.data_size ? FRAME_WHOLE
					: FRAME_GARBLED;
}

uint8_t *frame_room(struct frame_in *f, size_t n)
{
	uint8_t *p = buf_reserve(&f->in, n);
	if (!p)
		f->state = FRAME_TOO_LONG;
	return p;
}

enum frame_state frame_add(struct frame_in *f, size_t n)
{
	buf_commit(&f->in, n);
	if (f->state == FRAME_PART || f->state == FRAME_WHOLE)
		f->state = trial_frame_judge(f);
	return f->state;
}

bool frame_get(const struct frame_in *f, struct frame_answer *ret)
{
	struct frame head;
	if (f->state != FRAME_WHOLE || !trial_frame_peek(f, &head))
		return false;
	const uint8_t *text = buf_bytes(&f->in) + sizeof head;
	*ret = (struct frame_answer){.code = head.code,
				     .text = (const char *)text,
				     .text_size = head.text_size,
				     .data = text + head.text_size,
				     .size = (size_t)head.data_size};
	return true;
}
