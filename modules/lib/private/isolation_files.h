/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the kernel by which exclusive CPUs are isolated: written and restored by the host's
 * worker. */
#pragma once

#include "modules/lib/private/isolation.h"

/* A container whose cgroup becomes a partition with these CPUs, or, with no CPUs, whose pod runs
 * only when idle. */
struct isolation_place {
	char *ref; /* result of rp_host_work.cgroup_ref() */
	char *cpus; /* list of CPUs; "": none */
};

/* A wanted state, which is not changed any more when it was committed. */
struct isolation_order {
	uint32_t refs; /* users: the creator, and jobs */
	struct isolation_keys keys;
	struct rp_idset exclusive, online;
	struct isolation_place *places;
	uint32_t n, cap;
};

struct isolation_order *isolation_order_new(
	const struct isolation_keys *keys); /* NULL: no memory */
struct isolation_order *isolation_order_free(
	struct isolation_order *o); /* NULL allowed, returned */
/* Adds a container; returns 0 or -RP_ENOMEM. */
int32_t isolation_order_add(struct isolation_order *o, const char *ref, struct rp_ids cpus);

struct isolation_files;

struct isolation_files *isolation_files_new(const struct modhost *h); /* NULL: no memory */
struct isolation_files *isolation_files_free(
	struct isolation_files *f); /* NULL allowed, returned */
/* Submits the wanted state and takes ownership of `o`. An unchanged state costs a comparison
 * only. */
void isolation_commit(struct isolation_files *f, struct isolation_order *o);
