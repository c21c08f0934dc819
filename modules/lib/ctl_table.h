/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that a controller has done something for, and the class that each was given last; and where a container's class comes from.
 */
#ifndef NRI_RP_LIB_CTL_TABLE_H
#define NRI_RP_LIB_CTL_TABLE_H

#include "modules/lib/host.h"

#define CTL_CLASS_MAX 128u /* bytes of a class's name, with its NUL */

struct ctl_entry {
	rp_ctr ctr;
	char class[CTL_CLASS_MAX];
	int stale; /* to be done again whatever the class is */
	uint32_t serial; /* of the last thing done for it, for whoever counts */
	struct ctl_entry *next; /* of its bucket */
};

struct ctl_table {
	struct ctl_entry **buckets;
	uint32_t n_buckets, n;
};

struct ctl_entry *ctl_table_find(const struct ctl_table *t, rp_ctr ctr);
/* Finds or makes it; NULL: out of memory. */
struct ctl_entry *ctl_table_put(struct ctl_table *t, rp_ctr ctr);
void ctl_table_del(struct ctl_table *t, rp_ctr ctr);
void ctl_table_mark_stale(struct ctl_table *t);
/* Drops entries of containers that the host does not know any more, or that have exited. */
void ctl_table_sweep(struct ctl_table *t, const struct modhost *h);
void ctl_table_fini(struct ctl_table *t);

/* Calls fn for every live container, in order of creation. */
int32_t ctl_each_container(const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr), void *arg);

/*
 * The class that the policy has decided (`field`, RP_F_…), else that of an annotation (`key`), else NULL. ret_source: for people.
 * Good until the callback returns.
 */
const char *ctl_class_of(const struct modhost *h, rp_ctr ctr, uint32_t field, const char *key,
			 const char **ret_source);
/* "Guaranteed", "Burstable", "BestEffort" */
const char *ctl_qos_name(uint32_t qos);

#endif
