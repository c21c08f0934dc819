/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of CPU lists that people write into annotations, with error messages. */
#pragma once

#include <stdbool.h>

#include <nri-rp/set.h>

#define CPULIST_TEXT_MAX 4096u /* characters */
#define CPULIST_ITEMS_MAX 1024u
#define CPULIST_CPU_MAX 16384u
#define CPULIST_WHY_MAX 160u

/* Parses a list such as "0-3,8", with blanks around elements. False: malformed, with the reason in
 * why. *ret_beyond is an id in the list that no machine has and that is not in *ret; 0: none. */
bool cpulist_parse(const char *text, struct rp_idset *ret, uint32_t *ret_beyond,
		   char why[CPULIST_WHY_MAX]);

/* Writes "[3 5 99]", with "…" for CPUs after the 16th. Returns buf. */
#define CPULIST_FEW_MAX 256u
const char *cpulist_few(struct rp_ids cpus, char buf[CPULIST_FEW_MAX]);
