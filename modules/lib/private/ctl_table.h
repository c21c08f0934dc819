/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers that a controller has changed, with the class that each received last.
 *
 * A controller must revoke what a container is no longer to have, also after a restart of the
 * daemon. So the table keeps a record of the containers with changes, which the module saves and
 * loads as its state (nri-rp.state/1).
 */
#pragma once

#include <nri-rp/lib/ctl_life.h>
#include "modules/lib/private/table.h"

/* largest number of recorded containers; further containers are not recorded */
#define CTL_RECORD_MAX (RP_STATE_MAX / sizeof(uint64_t) - 1)

struct ctl_entry {
	rp_ctr ctr;
	uint64_t mark; /* hash of the container's id */
	char class[CTL_CLASS_MAX];
	int stale; /* apply again, even if the class is unchanged */
	int given; /* changes may exist that must be revoked */
	uint32_t serial; /* number of the last change */
};

struct ctl_table {
	struct table entries; /* struct ctl_entry, by container */
	uint64_t *record; /* a version, then the marks of containers with changes */
	uint32_t n_record, cap_record;
};

/* Returns the entry of a container, or NULL. */
struct ctl_entry *ctl_table_find(const struct ctl_table *t, rp_ctr ctr);
/* Returns the entry of a container. Creates a stale one if the container is only in the record of
 * an earlier run. NULL: the container was never changed, or out of memory. */
struct ctl_entry *ctl_table_know(struct ctl_table *t, const struct rp_ctr_info *info);
/* Returns the entry of a container, creating it if necessary. NULL: out of memory. */
struct ctl_entry *ctl_table_put(struct ctl_table *t, rp_ctr ctr);
/* Returns the entry of a container that is about to receive this class, creating it if necessary;
 * NULL without memory. class NULL: everything is revoked. */
struct ctl_entry *ctl_table_give(struct ctl_table *t, const struct rp_ctr_info *info,
				 const char *class);
/* Records that everything was revoked, unless the container was changed since (`serial`). */
void ctl_table_taken(struct ctl_table *t, rp_ctr ctr, uint32_t serial);
/* Removes the entry of a container. */
void ctl_table_del(struct ctl_table *t, rp_ctr ctr);
/* Marks all entries stale. */
void ctl_table_mark_stale(struct ctl_table *t);
/* Drops the entries of containers that have exited or that the host has removed. */
void ctl_table_sweep(struct ctl_table *t, const struct modhost *h);
/* Frees all memory. The table is empty afterwards. */
void ctl_table_fini(struct ctl_table *t);

/* Runs a synchronization, for sync(): drops entries of removed containers, calls fn for each live
 * container, and drops recorded containers that no longer exist. */
void ctl_table_sync(struct ctl_table *t, const struct modhost *h, void (*fn)(void *arg, rp_ctr ctr),
		    void *arg);

/* Returns the record, for the state service. Valid until the table changes. */
void ctl_table_save(struct ctl_table *t, const void **ret_data, uint32_t *ret_size);
/* Loads a record. -RP_EINVAL: not a record of this version; -RP_ENOMEM. */
int32_t ctl_table_load(struct ctl_table *t, const void *data, uint32_t size);
/* Removes recorded marks without an entry. Called after a full synchronization, when every live
 * container has its entry. */
void ctl_table_prune(struct ctl_table *t);
