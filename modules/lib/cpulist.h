/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs that people write into annotations, and what is wrong with them. */
#ifndef NRI_RP_LIB_CPULIST_H
#define NRI_RP_LIB_CPULIST_H

#include <stdbool.h>

#include <nri-rp/set.h>

#define CPULIST_TEXT_MAX 4096u /* characters */
#define CPULIST_ITEMS_MAX 1024u
#define CPULIST_CPU_MAX 16384u
#define CPULIST_WHY_MAX 160u

/* "0-3,8" with blanks around the elements; false: the text is no list, with what is wrong in why.
 * *ret_beyond: a CPU of it that no machine has, which is not in *ret; 0: all can be. */
bool cpulist_parse(const char *text, struct rp_idset *ret, uint32_t *ret_beyond,
		   char why[CPULIST_WHY_MAX]);

/* "[3 5 99]", with "…" for those behind the 16th. Returns buf. */
#define CPULIST_FEW_MAX 256u
const char *cpulist_few(struct rp_ids cpus, char buf[CPULIST_FEW_MAX]);

#endif
