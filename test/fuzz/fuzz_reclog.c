/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that somebody else may have written. The first byte says how: the rest as it is, or in
 * batches that are given a head and the right sums. What is read lies within the bytes, in their
 * order; a log that is cut off has a beginning of the same records.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/util/crc32c.h"
#include "core/lib/util/reclog.h"

#define MAGIC "nrirplg1"
#define HEAD 12u /* bytes of a batch's head */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct reclog_head head = {"fuzz", 1, "boot", "1"};
static const char head_record[] = "\1\0\0\0fuzz\0boot\0"
				  "1";

struct seen {
	const uint8_t *from, *end;
	unsigned n, sum;
};

static int take(void *arg, const void *record, size_t len)
{
	struct seen *s = arg;
	const uint8_t *bytes = record;
	assert(bytes >= s->from && bytes + len <= s->end);
	s->from = bytes + len;
	s->n++;
	for (size_t i = 0; i < len; i++)
		s->sum += bytes[i];
	return 0;
}

static size_t add_batch(uint8_t *to, size_t at, const void *records, uint32_t n)
{
	uint64_t place = at;
	uint32_t sum = crc32c(0, records, n);
	memcpy(to + at, &n, 4);
	memcpy(to + at + 4, &sum, 4);
	sum = crc32c(crc32c(0, &place, sizeof place), to + at, 8);
	memcpy(to + at + 8, &sum, 4);
	memcpy(to + at + HEAD, records, n);
	return at + HEAD + n;
}

/* Up to 255 bytes of the input are a batch; the first one is the head, unless the input says
 * otherwise. */
static size_t make_log(uint8_t *to, const uint8_t *data, size_t size, bool own_head)
{
	uint8_t record[4 + sizeof head_record] = {sizeof head_record};
	size_t at = sizeof MAGIC - 1;
	memcpy(to, MAGIC, at);
	memcpy(record + 4, head_record, sizeof head_record);
	if (!own_head)
		at = add_batch(to, at, record, sizeof record);
	while (size) {
		uint32_t n = data[0] < size - 1 ? data[0] : (uint32_t)size - 1;
		at = add_batch(to, at, data + 1, n);
		data += 1 + n;
		size -= 1 + n;
	}
	return at;
}

static int parse(const uint8_t *log, size_t size, struct seen *ret)
{
	struct err err = ERR_INIT;
	*ret = (struct seen){log, log + size, 0, 0};
	int r = reclog_parse(log, size, &head, take, ret, &err);
	assert(r == 0 || r == -EBADMSG ||
	       ((r == -ENOMSG || r == -EPROTO || r == -ESTALE) && !ret->n));
	assert(r == 0 || err.text[0]);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen all, some;
	if (!size)
		return 0;
	/* an empty batch for every byte is the most that comes of them */
	uint8_t *room = malloc(size * (HEAD + 1) + 64);
	assert(room);
	size_t len = size - 1;
	if (data[0] % 4 == 0)
		memcpy(room, data + 1, len);
	else
		len = make_log(room, data + 1, size - 1, data[0] % 4 == 1);
	/* exact size: a read past the end is detected */
	uint8_t *log = malloc(len ? len : 1);
	assert(log);
	memcpy(log, room, len);
	free(room);
	int r = parse(log, len, &all);
	int cut = parse(log, len / 2, &some);
	assert(some.n <= all.n && (r || cut == 0 || cut == -ENOMSG || cut == -EBADMSG));
	free(log);
	return 0;
}
