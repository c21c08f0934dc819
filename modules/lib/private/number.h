/* SPDX-License-Identifier: Apache-2.0 */
/* Integers in the notations of Go, which users of Kubernetes expect, and fractions of amounts. */
#pragma once

#include <stdint.h>

/* Parses "12", "0x1f", "0o17", "017" or "0b11", with "_" between digits. Returns -1 for another
 * text, a negative number, or one above max. */
int64_t number_parse(const char *text, int64_t max);

/* Returns the fraction `part`, from 0 to 1, of an amount that is not negative, rounded down. The
 * fraction counts with nine decimals, so that a tenth of 10 is 1 although 0.1 is less exact. */
int64_t number_part(int64_t amount, double part);
