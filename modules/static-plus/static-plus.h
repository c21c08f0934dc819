/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static-plus policy: whole CPUs for whoever asks for them, whatever its class of service, and
 * a share of what is left for the rest. A container that asks for 2500m has two CPUs of its own and
 * runs on the shared ones as well.
 *
 *	AVAILABLE  what containers may use, of what is online
 *	ISOLATED   what the kernel isolates of it: preferred for slices
 *	RESERVED   for kube-system, and for the others when nothing else is left
 *	POOL       the rest: slices are cut out of it, what remains is SHARED
 *
 * Who owns which CPU is in the host's cache, as a container's exclusive CPUs; `owners` is an index
 * over that.
 *
 *	config.c  section and machine → sets     place.c   what one container gets
 *	sync.c    everything at once             report.c  zones, metrics
 *	stage.c   into the transaction           static-plus.c  the callbacks
 */
#ifndef STATIC_PLUS_H
#define STATIC_PLUS_H

#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/life.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"
#include "modules/lib/relief_owned.h"

/* ---- configuration (config.c) ---------------------------------------------------------------- */

struct rp_plan {
	rp_cfg section;
	struct amount available, reserve;
	struct machine *machine;
	struct cpualloc *alloc;
	struct rp_idset isolated, reserved, pool;
	struct relief_settings relief;
	bool parity; /* NUMA nodes are not considered, as in the original */
};

extern const struct rp_schema plus_schema;
/* past: what was reserved before (reserve.h). With past->hotplug missing CPUs are no error. */
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
/* Checks the plan against the CPUs that belong to containers. -RP_EBUSY with a message. */
int32_t plan_check_owners(const struct modhost *h, const struct rp_plan *p, struct rp_ids taken);

/* ---- containers (place.c) -------------------------------------------------------------------- */

enum kind { KIND_SHARED, KIND_EXCLUSIVE, KIND_MIXED, KIND_SYSTEM, N_KINDS };
extern const char *const kind_names[N_KINDS];

/* What a container asks for. */
struct wish {
	const struct rp_ctr_info *info;
	enum kind kind;
	uint32_t full; /* CPUs of its own */
	int64_t part; /* milli-CPU among those who share */
};

struct counters {
	uint64_t placed[N_KINDS], refused;
};

struct rp_instance {
	LIFE;
	struct owners owners;
	struct relief relief;
	int64_t parts,
		parts_before; /* milli-CPU that all who share ask for; before this callback */
	struct counters counters;
};

struct wish wish_of(const struct rp_ctr_info *info);
/* CPUs for a container that has `own` ones, none when it is new. -RP_ENOSPC with a message: it
 * keeps those. */
int32_t place_slice(struct rp_instance *inst, const struct wish *w, struct rp_ids own,
		    struct rp_idset *ret);
void place_explain(struct rp_instance *inst, const struct wish *w, struct rp_ids slice);
/* Returns true if containers without a slice can run after n more CPUs of the pool are given
 * away: on the reserved CPUs, or on the rest of the pool when all reserved CPUs are offline. */
bool place_leaves_some(const struct rp_instance *inst, uint32_t n);
/* What relief_owned.h asks for in a transaction. */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
/* What is left of the pool. */
void place_shared(const struct rp_instance *inst, struct rp_idset *ret);

/* ---- into the transaction (stage.c) ---------------------------------------------------------- */

/* What is kept with a container: that its slice is this policy's doing, and what it takes of the
 * shared CPUs. */
struct record {
	uint32_t version, kind;
	int64_t part;
};
bool stage_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* All of it; reason: why that is not what it asks for, or NULL. */
int32_t stage_ctr(struct rp_instance *inst, rp_txn txn, const struct wish *w, const char *reason);
/* The CPUs of all who share, and how much they ask for, anew. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn);
/* The same after one without a slice has come, as the last of them; or has gone: false when that
 * changes something for the others. */
int32_t stage_last_sharer(struct rp_instance *inst, rp_txn txn, const struct wish *w);
bool stage_forget_sharer(struct rp_instance *inst, const struct record *rec);

/* ---- everything at once (sync.c) ------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* CPUs of `except` have come free: others who lack some get them. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

extern const struct rp_zones plus_zones;
extern const struct rp_metrics plus_metrics;

#endif
