/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts of CPU in sections of policies (availableResources.cpu, reservedResources.cpu):
 *
 *	2  750m  1.5            a quantity
 *	cpuset:0-3,8  0-3,8     a set of CPUs (without the prefix it must contain "-" or ",")
 *	exclude-cpuset:0-3      all online CPUs except these
 *	cgroup:PATH  /PATH      the CPUs of a cgroup
 */
#pragma once

#include <nri-rp/lib/reserve.h>

enum amount_kind {
	AMOUNT_NONE, /* the key is absent */
	AMOUNT_QUANTITY,
	AMOUNT_CPUS, /* the CPUs in `cpus`, as written, online or not */
	AMOUNT_EXCEPT, /* all online CPUs except `cpus` */
};

struct amount {
	enum amount_kind kind;
	int64_t mcpu; /* value of a QUANTITY in milli-CPU, at least 0 */
	struct rp_idset cpus; /* CPUs of the kinds CPUS and EXCEPT */
};

/* Kinds of amounts that a key accepts. */
#define AMOUNT_TAKES_QUANTITY 0x1u
#define AMOUNT_TAKES_CPUS 0x2u
#define AMOUNT_TAKES_EXCEPT 0x4u
#define AMOUNT_TAKES_ANY 0x7u

/* Reads an amount from a node, which may be NULL. Errors name the node's place. Reads cgroup files
 * through the host, so it belongs in prepare() and not in requests. */
int32_t amount_read(const struct modhost *h, rp_cfg node, uint32_t takes, struct amount *ret);

/* Reads availableResources.cpu, which must be a set, and reservedResources.cpu of a section. */
int32_t amount_read_both(const struct modhost *h, rp_cfg section, uint32_t reserved_takes,
			 struct amount *ret_available, struct amount *ret_reserved);

/* Returns a quantity in whole CPUs, rounded up, at most RP_CPUS_MAX + 1; the number of CPUs of a
 * set; else 0. */
uint32_t amount_count(const struct amount *a);

/* Checks a list of reserved CPUs by reserve_list(). -RP_EINVAL with the place `at`: some of them
 * are neither allowed nor awaited. */
int32_t amount_check_reserved(const struct modhost *h, rp_cfg at, const struct reserve_past *past,
			      struct rp_ids listed, struct rp_ids allowed, struct rp_ids online,
			      struct rp_idset *ret_awaited);

/* Stores the CPUs of `from` that the amount selects; an amount of kind NONE or QUANTITY selects
 * all. */
void amount_pick(const struct amount *a, struct rp_ids from, struct rp_idset *ret);
