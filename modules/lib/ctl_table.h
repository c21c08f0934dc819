/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that a controller has done something for, and the class that each was given last; and
 * where a container's class comes from.
 *
 * What was given has to be taken back when a container is not to have it any more, also by a daemon
 * that was not there when it was given: the table keeps a record of who has something, to be saved
 * and loaded as the module's state (nri-rp.state/1).
 */
#ifndef NRI_RP_LIB_CTL_TABLE_H
#define NRI_RP_LIB_CTL_TABLE_H

#include <nri-rp/policy.h>

#include "modules/lib/host.h"

#define CTL_CLASS_MAX 128u /* bytes of a class's name, with its NUL */
#define CTL_RECORD_MAX (RP_STATE_MAX / sizeof(uint64_t) - 1) /* containers; more are not recorded */

struct ctl_entry {
	rp_ctr ctr;
	uint64_t mark; /* made of its id */
	char class[CTL_CLASS_MAX];
	int stale; /* to be done again whatever the class is */
	int given; /* something may be there that is to be taken back */
	uint32_t serial; /* of what was done last */
	struct ctl_entry *next; /* of its bucket */
};

struct ctl_table {
	struct ctl_entry **buckets;
	uint32_t n_buckets, n;
	uint64_t *record; /* a head, then the marks of those who have something */
	uint32_t n_record, cap_record;
};

struct ctl_entry *ctl_table_find(const struct ctl_table *t, rp_ctr ctr);
/* The same; one that is new to the table but in the record is made, stale. NULL: nothing was ever
 * done for it, or out of memory. */
struct ctl_entry *ctl_table_know(struct ctl_table *t, const struct rp_ctr_info *info);
/* Finds or makes it; NULL: out of memory. */
struct ctl_entry *ctl_table_put(struct ctl_table *t, rp_ctr ctr);
/* The same for one that is about to get this class, NULL: for which all is to be taken back. */
struct ctl_entry *ctl_table_give(struct ctl_table *t, const struct rp_ctr_info *info,
				 const char *class);
/* It has been, unless something was done for it since. */
void ctl_table_taken(struct ctl_table *t, rp_ctr ctr, uint32_t serial);
void ctl_table_del(struct ctl_table *t, rp_ctr ctr);
void ctl_table_mark_stale(struct ctl_table *t);
/* Drops entries of containers that the host does not know any more, or that have exited. */
void ctl_table_sweep(struct ctl_table *t, const struct modhost *h);
void ctl_table_fini(struct ctl_table *t);

/* For sync(): calls fn for every live container, when what is gone has been dropped; after it the
 * record is that of the table. */
void ctl_table_sync(struct ctl_table *t, const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr),
		    void *arg);

/* For the state service. The bytes are valid until the table is changed. */
void ctl_table_save(struct ctl_table *t, const void **ret_data, uint32_t *ret_size);
/* -RP_EINVAL: these are no such bytes; -RP_ENOMEM. */
int32_t ctl_table_load(struct ctl_table *t, const void *data, uint32_t size);
/* When all containers have been looked at: what the record has of others goes. */
void ctl_table_prune(struct ctl_table *t);

/* Calls fn for every live container, in order of creation. */
int32_t ctl_each_container(const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr), void *arg);

/*
 * The class that the policy has decided (`field`, RP_F_…), else that of an annotation (`key`), else
 * NULL. ret_source: for people. Good until the callback returns.
 */
const char *ctl_class_of(const struct modhost *h, rp_ctr ctr, uint32_t field, const char *key,
			 const char **ret_source);
/* "Guaranteed", "Burstable", "BestEffort" */
const char *ctl_qos_name(uint32_t qos);

#endif
