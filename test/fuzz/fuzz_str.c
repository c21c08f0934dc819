/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of text: sets, numbers, quantities, durations, frequencies, patterns, UTF-8. The first
 * byte selects one. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nri-rp/set.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/json.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_set(const char *text)
{
	static char buf[RP_IDSET_TEXT_MAX];
	struct rp_idset s, back;
	if (rp_idset_parse(&s, text, RP_CPUS_MAX))
		return;
	uint32_t len = rp_ids_format(rp_ids_of(&s), buf, sizeof buf);
	assert(len < sizeof buf && strlen(buf) == len);
	assert(rp_idset_parse(&back, buf, RP_CPUS_MAX) == 0);
	assert(rp_ids_equal(rp_ids_of(&s), rp_ids_of(&back)));
	uint32_t last = rp_ids_last(rp_ids_of(&s));
	assert((rp_idset_parse(&back, text, RP_NODES_MAX) == 0) ==
	       (last == RP_IDSET_NONE || last < RP_NODES_MAX));
}

/* The result is all or nothing; what is taken is no further apart than the units allow. */
static void check_quantity(const char *text)
{
	int64_t milli = -4711, whole = -4711;
	int r = str_to_milli(text, &milli), q = str_to_bytes(text, &whole);
	assert(r == 0 || (milli == -4711 && (r == -EINVAL || r == -ERANGE)));
	assert(q == 0 || (whole == -4711 && (q == -EINVAL || q == -ERANGE)));
	assert((r == -EINVAL) == (q == -EINVAL));
	if (r || q)
		return;
	/* Both are rounded away from zero, the coarser one once more. */
	int64_t up = milli / 1000 + (milli % 1000 > 0) - (milli % 1000 < 0);
	assert(whole == up);
}

static void check_time_and_frequency(const char *text)
{
	int64_t ms = -4711, khz = -4711;
	int r = str_to_ms(text, &ms);
	assert(r == 0 || (ms == -4711 && (r == -EINVAL || r == -ERANGE)));
	assert(r || (ms <= INT64_MAX / 1000000 + 1 && ms >= -(INT64_MAX / 1000000 + 1)));
	r = str_to_khz(text, &khz);
	assert(r == 0 ? khz >= 0 : khz == -4711);
}

static void check_numbers(const char *text)
{
	int64_t i;
	uint64_t u;
	double d;
	bool b;
	if (str_to_u64(text, &u) == 0 && u <= INT64_MAX) {
		assert(str_to_i64(text, &i) == 0);
		assert((uint64_t)i == u);
	}
	if (str_to_i64(text, &i) == 0)
		assert(i == strtoll(text, NULL, 10));
	if (str_to_double(text, &d) == 0)
		assert(d - d == 0); /* finite */
	(void)str_to_bool(text, &b);
}

static void check_utf8(const char *text, size_t n)
{
	bool valid = utf8_valid(text, n);
	for (size_t max = 0; max <= n && max < 64; max++) {
		size_t cut = utf8_cut(text, max);
		assert(cut <= max);
		assert(!valid || utf8_valid(text, cut));
	}
	struct buf out = BUF_INIT;
	struct json j;
	json_init(&j, &out);
	json_str(&j, text);
	assert(utf8_valid((const char *)buf_bytes(&out), buf_len(&out)));
	buf_fini(&out);
}

/* The text in two halves. */
static void check_pairs(const char *text, size_t n)
{
	char a[TEXT_MAX + 1], b[TEXT_MAX + 1];
	memcpy(a, text, n / 2);
	a[n / 2] = '\0';
	memcpy(b, text + n / 2, n - n / 2 + 1);
	int r = str_cmp_natural(a, b), back = str_cmp_natural(b, a);
	assert((r > 0) == (back < 0) && (r == 0) == str_eq(a, b));
	const char *const candidates[] = {a, b};
	assert(!a[0] || strlen(a) > 64 || str_closest(a, candidates, 2) == a);
	(void)str_glob(a, b);
	assert(str_glob("*", a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];
	if (!size || size > TEXT_MAX)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	size_t n = strlen(text);
	switch (data[0] % 6) {
	case 0:
		check_set(text);
		break;
	case 1:
		check_quantity(text);
		break;
	case 2:
		check_time_and_frequency(text);
		break;
	case 3:
		check_numbers(text);
		break;
	case 4:
		check_utf8(text, n);
		break;
	case 5:
		check_pairs(text, n);
		break;
	}
	return 0;
}
