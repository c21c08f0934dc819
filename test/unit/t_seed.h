/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of tests that are new each time: the seed is printed, and NRI_RP_TEST_SEED=N
 * repeats a run. */
#ifndef TEST_UNIT_T_SEED_H
#define TEST_UNIT_T_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct seed {
	uint64_t first, now;
};

static inline struct seed seed_begin(void)
{
	struct timespec t;
	const char *wanted = getenv("NRI_RP_TEST_SEED");
	(void)clock_gettime(CLOCK_REALTIME, &t);
	uint64_t first = wanted ? strtoull(wanted, NULL, 10)
				: (uint64_t)t.tv_sec * 1000003u ^ (uint64_t)t.tv_nsec;
	printf("NRI_RP_TEST_SEED=%llu\n", (unsigned long long)first);
	return (struct seed){first, first};
}

/* Returns a random number below n. */
static inline uint32_t draw(struct seed *s, uint32_t n)
{
	s->now = s->now * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(s->now >> 33) % n;
}

/* Returns true once in n times. */
static inline int once_in(struct seed *s, uint32_t n)
{
	return draw(s, n) == 0;
}

#endif
