/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpuset policy. A pod may name the CPUs that its containers run on (annotated), a container
 * that asks for a whole number of CPUs and is limited to just that gets them for itself (integer),
 * and all others run on what is left (shared). A named CPU is always given: integer containers that
 * sit there move while they run.
 *
 *	ALLOWED   availableResources, of what is online
 *	RESERVED  a part of ALLOWED that no integer container gets
 *	POOL      ALLOWED without the CPUs of annotated and integer containers: where the shared
 *                ones run
 *
 * Who has which CPU is in the host's cache, as the set of a container and the record that is kept
 * with it; `owners` is an index over that: integer containers own CPUs, annotated ones join them.
 *
 *	config.c    section → settings and the machine's sets
 *	place.c     what one container gets, and who moves
 *	sync.c      everything at once
 *	classify.c  which class; the lists in annotations
 *	stage.c     into the transaction
 *	report.c    zones, metrics
 *	cpuset.c    the callbacks, who has which CPU
 */
#ifndef CPUSET_CPUSET_H
#define CPUSET_CPUSET_H

#include "modules/lib/bounds.h"
#include "modules/lib/life.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"
#include "modules/lib/relief_owned.h"

#define MIN_SHARED_DEFAULT (-1) /* one, while shared containers run */

/* A configuration on the machine as it is. */
struct rp_plan {
	rp_cfg section;
	const char *named_key, *forbidden_key; /* of the annotations */
	int64_t min_shared;
	int64_t update_delay_ms, max_update_delay_ms; /* of a pool that grows */
	bool pin_memory, numa_aware, shared_cache, needs_memory, by_qos;
	struct relief_settings relief;
	struct machine *machine;
	struct bounds cpus; /* ALLOWED, RESERVED */
};

extern const struct rp_schema cpuset_schema;
/* past: what was reserved before (bounds.h). */
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */

/* ---- classes (classify.c) -------------------------------------------------------------------- */

enum cpuset_class { CLASS_SHARED, CLASS_INTEGER, CLASS_ANNOTATED, N_CLASSES };
extern const char *const class_names[N_CLASSES];

/* A container, as far as the policy looks at it. */
struct looked {
	struct rp_ctr_info info;
	enum cpuset_class class;
	uint32_t n; /* CPUs of an integer one */
	bool forbids; /* it has a list of forbidden CPUs */
	struct rp_idset forbidden;
	const char *why; /* it has its class */
};

void look_at(const struct rp_instance *inst, const struct rp_ctr_info *info, struct looked *ret);
/* The CPUs that an annotated container names and may have. -RP_EINVAL with a message: it cannot be
 * created so. */
int32_t named_cpus(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* Those of them that are there, for one that runs already; false: not all that it names. */
bool named_here(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);

/* ---- the instance (cpuset.c) ----------------------------------------------------------------- */

struct population {
	uint32_t n[N_CLASSES]; /* containers */
	bool overlapping; /* shared containers run on CPUs of others, as nothing is left for them */
};

struct rp_instance {
	LIFE;
	struct owners owners;
	struct relief relief;
	struct population now, before; /* before this transaction */
	struct {
		uint64_t placed[N_CLASSES], moved, refused;
	} counters;
};

/* What the shared containers have. */
void pool_shared(const struct rp_instance *inst, struct rp_idset *ret);
/* What an integer container could be given, without what is forbidden to it. */
void pool_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* The container has these CPUs, or is one that shares; or has them no more. */
void pool_add(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);
void pool_del(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);

/* ---- into the transaction (stage.c) ---------------------------------------------------------- */

/* What is kept with a container: that its set is this policy's doing. */
struct record {
	uint32_t version;
	uint16_t class, forbids;
};

/* false: it is not this policy that decided last; *ret is that of a shared one. */
bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* Its own CPUs; reason: why they are not what they should be, or NULL. */
int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct looked *c, struct rp_ids cpus,
		  const char *reason);
int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids pool, const char *reason);
/* Gives the pool as it is now to all who share but one. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- what one container gets (place.c) ------------------------------------------------------- */

#define WHOSE_MAX 512u
#define POOL_EMPTY_TEXT "shared CPU pool is empty"

/* n CPUs for an integer container: those that it keeps, and others that are free and not avoided.
 * -RP_ENOSPC; `whose`: before the message. */
int32_t place_find(struct rp_instance *inst, const struct looked *c, struct rp_ids keep,
		   struct rp_ids avoid, uint32_t n, const char *whose, struct rp_idset *ret);
/* What relief_owned.h asks for in a transaction. */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct looked *c);
/* An integer container that has `own` CPUs and is to have n. */
int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids own);
/* -RP_ENOSPC with a message when too little is left for those who share. */
int32_t place_check_pool(struct rp_instance *inst);

/* ---- everything at once (sync.c) ------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* CPUs have come free: those who lack some get them. How many that were; the others are not told
 * yet. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

extern const struct rp_zones cpuset_zones;
extern const struct rp_metrics cpuset_metrics;

#endif
