/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts of CPU as policies' sections have them (availableResources.cpu, reservedResources.cpu):
 *
 *	2  750m  1.5            a quantity
 *	cpuset:0-3,8  0-3,8     these CPUs (without the prefix a "-" or "," has to be in it)
 *	exclude-cpuset:0-3      all online CPUs but these
 *	cgroup:PATH  /PATH      the CPUs of a cgroup
 */
#ifndef NRI_RP_LIB_AMOUNT_H
#define NRI_RP_LIB_AMOUNT_H

#include "modules/lib/host.h"

enum amount_kind {
	AMOUNT_NONE, /* the key is not there */
	AMOUNT_QUANTITY,
	AMOUNT_CPUS, /* cpus holds them, as written */
	AMOUNT_EXCEPT, /* all but cpus */
};

struct amount {
	enum amount_kind kind;
	int64_t mcpu; /* of a QUANTITY; at least 0 */
	struct rp_idset cpus; /* of CPUS and EXCEPT */
};

/* What a key takes. */
#define AMOUNT_TAKES_QUANTITY 0x1u
#define AMOUNT_TAKES_CPUS 0x2u
#define AMOUNT_TAKES_EXCEPT 0x4u
#define AMOUNT_TAKES_ANY 0x7u

/* Reads a node, NULL included. Errors name the node's place. Cgroup files are read through the
 * host: for prepare(), not for requests. */
int32_t amount_read(const struct modhost *h, rp_cfg node, uint32_t takes, struct amount *ret);

/* availableResources.cpu, which is a set, and reservedResources.cpu of a section. */
int32_t amount_read_both(const struct modhost *h, rp_cfg section, uint32_t reserved_takes,
			 struct amount *ret_available, struct amount *ret_reserved);

/* Whole CPUs of a quantity, rounded up (more than RP_CPUS_MAX: one more than that); of CPUS how
 * many they are; else 0. */
uint32_t amount_count(const struct amount *a);

/* The CPUs among `from` that the amount names: all for NONE and QUANTITY. */
void amount_pick(const struct amount *a, struct rp_ids from, struct rp_idset *ret);

#endif
