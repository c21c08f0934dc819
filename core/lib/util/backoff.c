/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/util/backoff.h"

uint64_t backoff_next_ms(struct backoff *b, uint64_t first_ms, uint64_t last_ms)
{
	b->ms = b->ms ? b->ms * 2 : first_ms;
	if (b->ms > last_ms)
		b->ms = last_ms;
	return b->ms;
}

void backoff_reset(struct backoff *b)
{
	b->ms = 0;
}
