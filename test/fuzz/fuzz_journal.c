/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's journal. The first byte says how: the rest as it is, or in batches that are given their heads with the right sums. What
 * is read lies within the bytes, in the order of keys, each of them once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/util/crc32c.h"
#include "core/cache/store_internal.h"

#define NUMBER UINT64_C(0x0123456789abcdef)
#define HEAD 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Up to 255 bytes of the input become the entries of a batch; one in eight is of another number, and the end of it all then. */
static size_t add_batch(uint8_t *to, const uint8_t *data, size_t size)
{
	uint32_t n = data[0], sum;
	uint64_t number = NUMBER;
	if (n > size - 1)
		n = (uint32_t)size - 1;
	if (n % 8 == 7)
		number++;
	memcpy(to + 4, &n, 4);
	memcpy(to + 8, &number, 8);
	memcpy(to + HEAD, data + 1, n);
	sum = crc32c(0, to + 4, HEAD - 4 + n);
	memcpy(to, &sum, 4);
	return n;
}

static size_t make_batches(uint8_t *to, const uint8_t *data, size_t size)
{
	size_t len = 0;
	while (size) {
		size_t n = add_batch(to + len, data, size);
		len += HEAD + n;
		data += 1 + n;
		size -= 1 + n;
	}
	return len;
}

static void check_entries(const struct journal_reader *r)
{
	unsigned sum = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct journal_entry *e = &r->at[i];
		const uint8_t *key = e->key.mv_data, *value = e->value.mv_data;
		assert(key >= r->data + HEAD && key + e->key.mv_size == value);
		assert(value + e->value.mv_size <= r->data + r->size);
		assert(i == 0 || store_compare_keys(&e[-1].key, &e->key) < 0);
		for (size_t k = 0; k < e->key.mv_size + e->value.mv_size; k++)
			sum += key[k];
	}
	assert(r->n || !sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct journal_reader r = {0};
	if (!size)
		return 0;
	/* an empty batch for every byte is the most that comes of them */
	uint8_t *bytes = malloc(size * (HEAD + 1));
	assert(bytes);
	if (data[0] % 4 == 0) {
		memcpy(bytes, data + 1, size - 1);
		r.size = size - 1;
	} else {
		r.size = make_batches(bytes, data + 1, size - 1);
	}
	/* so that a byte behind the end is noticed */
	r.data = malloc(r.size ? r.size : 1);
	assert(r.data);
	memcpy(r.data, bytes, r.size);
	free(bytes);
	int rc = store_journal_parse(&r, NUMBER);
	assert(rc == 0 || rc == EBADMSG);
	check_entries(&r);
	store_journal_forget(&r);
	return 0;
}
