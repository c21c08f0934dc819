/* SPDX-License-Identifier: Apache-2.0 */
/* Delays between attempts of an operation that fails: each is twice the previous one, up to a
 * limit. */
#pragma once

#include <stdint.h>

struct backoff {
	uint64_t ms; /* delay returned last; 0: no failure since the last reset */
};

/* Returns the delay before the next attempt: first_ms after a reset, then doubled, at most
 * last_ms. */
uint64_t backoff_next_ms(struct backoff *b, uint64_t first_ms, uint64_t last_ms);
/* Makes the next delay the first one again. */
void backoff_reset(struct backoff *b);
