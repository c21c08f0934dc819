/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static-plus policy: containers get exclusive CPUs for the whole CPUs of their request, in
 * every QoS class, and shared CPUs for the rest. A container that requests 2500m gets two exclusive
 * CPUs, its slice, and runs on the shared CPUs as well.
 *
 *	AVAILABLE  online CPUs that containers may use
 *	ISOLATED   CPUs of AVAILABLE that the kernel isolates: preferred for slices
 *	RESERVED   CPUs for kube-system, and for other containers if no shared CPUs are left
 *	POOL       remaining CPUs: slices are taken from them, the rest is SHARED
 *
 * The host's cache stores the owner of each CPU as the exclusive CPUs of a container; `owners` is
 * an index over the cache.
 *
 *	config.c  section and topology → CPU sets  place.c   placement of one container
 *	sync.c    placement of all containers      report.c  zones, metrics
 *	stage.c   staging into the transaction     static-plus.c  callbacks
 */
#pragma once

#include "modules/lib/private/amount.h"
#include <nri-rp/lib/cpualloc.h>
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief_owned.h>

/* ---- configuration (config.c) ---------------------------------------------------------------- */

struct rp_plan {
	rp_cfg section;
	struct amount available, reserve;
	struct machine *machine;
	struct cpualloc *alloc;
	struct rp_idset isolated, reserved, pool;
	struct relief_settings relief;
	bool parity; /* ignore NUMA nodes, as the original policy does */
};

extern const struct rp_schema plus_schema;
/* ops.fill and ops.plan_fini (life.h). */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);

/* ---- containers (place.c) -------------------------------------------------------------------- */

enum kind { KIND_SHARED, KIND_EXCLUSIVE, KIND_MIXED, KIND_SYSTEM, N_KINDS };
extern const char *const kind_names[N_KINDS];

/* CPU request of a container, split into exclusive and shared CPUs. */
struct wish {
	const struct rp_ctr_info *info;
	enum kind kind;
	uint32_t full; /* number of exclusive CPUs */
	int64_t part; /* milli-CPU of shared CPUs */
};

struct counters {
	uint64_t placed[N_KINDS], refused;
};

struct rp_instance {
	LIFE;
	struct owners owners;
	struct relief relief;
	int64_t parts,
		/* milli-CPU requested on the shared CPUs; value before this callback */
		parts_before;
	struct counters counters;
};

/* Returns the kind of a container and the split of its CPU request. */
struct wish wish_of(const struct rp_ctr_info *info);
/*
 * Chooses the slice, the exclusive CPUs, of a container. own: its current slice, empty if it is
 * new. Returns 0, or -RP_ENOSPC with a message; the container then keeps its slice.
 */
int32_t place_slice(struct rp_instance *inst, const struct wish *w, struct rp_ids own,
		    struct rp_idset *ret);
void place_explain(struct rp_instance *inst, const struct wish *w, struct rp_ids slice);
/*
 * Returns true if containers without a slice can still run after n more CPUs of the pool become
 * exclusive: on the reserved CPUs, or on the rest of the pool if all reserved CPUs are offline.
 */
bool place_leaves_some(const struct rp_instance *inst, uint32_t n);
/* Returns the arguments of a relief_owned.h call in a transaction. */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
/* Returns SHARED, the CPUs of the pool without the slices. */
void place_shared(const struct rp_instance *inst, struct rp_idset *ret);

/* ---- staging (stage.c) ----------------------------------------------------------------------- */

/*
 * Record saved with a container. It marks the slice as assigned by this policy and holds the
 * milli-CPU requested on the shared CPUs.
 */
struct record {
	uint32_t version, kind;
	int64_t part;
};
/* Reads the saved record of a container. Returns false if this version saved none. */
bool stage_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/*
 * Stages slice, CPU shares, status and record of a container. reason: why it lacks requested CPUs,
 * or NULL.
 */
int32_t stage_ctr(struct rp_instance *inst, rp_txn txn, const struct wish *w, const char *reason);
/* Stages the CPUs of all containers on shared CPUs and recomputes the sum of their requests. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn);
/*
 * stage_last_sharer() stages only the newest container without a slice. stage_forget_sharer()
 * deducts the request of a removed container; it returns false if the CPUs of other containers
 * change and stage_sharers() is needed.
 */
int32_t stage_last_sharer(struct rp_instance *inst, rp_txn txn, const struct wish *w);
bool stage_forget_sharer(struct rp_instance *inst, const struct record *rec);

/* ---- synchronization (sync.c) ---------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Gives slices to containers that lack one after CPUs of container `except` became free. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

int32_t plus_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t plus_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
