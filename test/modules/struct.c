/* SPDX-License-Identifier: Apache-2.0 */
/* Contradicts the note by its struct, or has an invalid pointer: STRUCT_CASE says which. */
#include "common.h"

#if STRUCT_CASE == 1 /* longer than the symbol is */
#define CHANGE .size = 4096
#elif STRUCT_CASE == 2 /* shorter than the first release */
#define CHANGE .size = 16
#elif STRUCT_CASE == 3
#define CHANGE .kinds = RP_KIND_CONTROLLER
#elif STRUCT_CASE == 4
#define CHANGE .abi_minor = 5
#elif STRUCT_CASE == 5
#define CHANGE .name = "good"
#elif STRUCT_CASE == 6 /* a wild pointer */
#define CHANGE .version = (const char *)24
#elif STRUCT_CASE == 7
#define CHANGE .create = NULL
#elif STRUCT_CASE == 8 /* data where code should be */
#define CHANGE .service = (const void *(*)(struct rp_instance *, const char *)) & test_policy
#elif STRUCT_CASE == 9
#define CHANGE .summary = (const char *)24
#elif STRUCT_CASE == 10 /* no UTF-8 */
#define CHANGE .licence = "\xff\xfe"
#endif

#define NAME_OF(n) NAME_OF_(n)
#define NAME_OF_(n) "struct-" #n

TEST_NOTE(RP_ABI_MAJOR, RP_ABI_MINOR, 0, RP_KIND_POLICY, NAME_OF(STRUCT_CASE));

TEST_EXPORT extern const struct rp_module rp_module_1;
const struct rp_module rp_module_1 = {.size = sizeof rp_module_1,
				      .abi_minor = RP_ABI_MINOR,
				      .kinds = RP_KIND_POLICY,
				      .name = NAME_OF(STRUCT_CASE),
				      .version = "1.0",
				      TEST_FUNCTIONS,
				      CHANGE};
