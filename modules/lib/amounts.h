/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of amounts of CPU and memory. */
#ifndef NRI_RP_LIB_AMOUNTS_H
#define NRI_RP_LIB_AMOUNTS_H

#include <nri-rp/cache.h>
#include <nri-rp/calculator.h>

extern const char *const calc_amount_names[RP_NR_AMOUNTS]; /* "cpu", "memory" */

/* Returns value × percent / 100, rounded towards zero and limited to 4 × RP_NR_AMOUNT_MAX. */
int64_t calc_percent(int64_t value, int64_t percent);
/* Returns the larger of two amounts. */
static inline int64_t calc_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
/* Returns the smaller of two amounts. */
static inline int64_t calc_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}
/* Returns the amount, or 0 if it is unknown. */
static inline int64_t calc_known(int64_t amount)
{
	return amount == RP_NOT_SET ? 0 : amount;
}

#endif
