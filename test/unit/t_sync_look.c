/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that a packed SynchronizeRequest reveals before it is unpacked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/nri-rpd/nri/sync.h"

static void test_look(void **state)
{
	bool more;
	uint32_t n;
	static const struct {
		const char *bytes;
		size_t len;
		int r;
		bool more;
		uint32_t n;
	} cases[] = {
		{"", 0, 0, false, 0},
		{"\x18\x01", 2, 0, true, 0},
		{"\x18\x01\x18\x00", 4, 0, false, 0},
		{"\x0a\x00\x12\x01x", 5, 0, false, 2},
		{"\x0a\x02x", 3, -EBADMSG, false, 0},
		{"\x0a", 1, -EBADMSG, false, 0},
		{"\x18", 1, -EBADMSG, false, 0},
		{"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, -EBADMSG, false, 0},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, -EBADMSG, false, 0},
		{"\x21xxxxxxxx\x25xxxx", 14, 0, false, 0},
		{"\x21xxxx", 5, -EBADMSG, false, 0},
		{"\x25xx", 3, -EBADMSG, false, 0},
		{"\x0b", 1, -EBADMSG, false, 0},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r = sync_look((const uint8_t *)cases[i].bytes, cases[i].len, &more, &n);
		if (r != cases[i].r)
			fail_msg("case %u: %d", i, r);
		if (r)
			continue;
		assert_int_equal(more, cases[i].more);
		assert_int_equal(n, cases[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
