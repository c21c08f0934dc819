/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as those who write Kubernetes configurations are used to them. */
#ifndef NRI_RP_LIB_NUMBER_H
#define NRI_RP_LIB_NUMBER_H

#include <stdint.h>

/* "12", "0x1f", "0o17", "017", "0b11", with "_" between digits. -1: none of these, negative, or
 * above max. */
int64_t number_parse(const char *text, int64_t max);

#endif
