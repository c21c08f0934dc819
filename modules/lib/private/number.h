/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of integers in the notations of Go, which users of Kubernetes expect. */
#pragma once

#include <stdint.h>

/* Parses "12", "0x1f", "0o17", "017" or "0b11", with "_" between digits. Returns -1 for another
 * text, a negative number, or one above max. */
int64_t number_parse(const char *text, int64_t max);
