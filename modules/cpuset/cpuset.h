/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpuset policy. A pod may name the CPUs that its containers run on (annotated), a container that asks for a whole number of CPUs and
 * is limited to just that gets them for itself (integer), and all others run on what is left (shared). A named CPU is always given:
 * integer containers that sit there move while they run.
 *
 *	ALLOWED   availableResources, of what is online
 *	RESERVED  a part of ALLOWED that no integer container gets
 *	POOL      ALLOWED without the CPUs of annotated and integer containers: where the shared ones run
 *
 * Who has which CPU is in the host's cache, as the set of a container and the record that is kept with it; `owners` is an index over
 * that: integer containers own CPUs, annotated ones join them.
 *
 *	config.c    section → settings and the machine's sets     classify.c  which class; the lists in annotations
 *	pick.c      which CPUs an integer container gets
 *	place.c     what one container gets, and who moves        stage.c     into the transaction
 *	sync.c      everything at once                            report.c    zones, metrics
 *	cpuset.c    the callbacks
 */
#ifndef CPUSET_CPUSET_H
#define CPUSET_CPUSET_H

#include "modules/lib/amount.h"
#include "modules/lib/life.h"
#include "modules/lib/machine.h"
#include "modules/lib/owners.h"

#define SET_TEXT_MAX 128u
#define LIST_TEXT_MAX 4096u /* characters of a CPU list in an annotation */
#define LIST_ITEMS_MAX 1024u /* its elements */
#define LIST_CPU_MAX 16384u

/* ---- configuration (config.c) ------------------------------------------------------------------------------------ */

#define MIN_SHARED_DEFAULT (-1) /* one, while shared containers run */

/* A configuration on the machine as it is. */
struct rp_plan {
	char named_key[256], forbidden_key[256]; /* of the annotations */
	struct amount available, reserve;
	int64_t min_shared;
	int shared_overlap, pin_memory, numa_aware, shared_cache, needs_memory, by_qos;
	rp_cfg section;

	struct machine *machine;
	struct rp_idset allowed, reserved;
};

extern const struct rp_schema cpuset_schema;
int32_t plan_new(const struct modhost *h, rp_cfg section, struct rp_plan **ret);
/* The machine has changed: what worked once has to go on. */
int32_t plan_look(const struct modhost *h, rp_cfg section, struct rp_plan **ret);
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */

/* ---- classes (classify.c) ------------------------------------------------------------------------------------------- */

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
/* "0-3,8" with blanks around the elements; false: it is no list, with what is wrong in why. *ret_beyond: a CPU of it that no machine
 * has, which is not in *ret; 0: all can be. */
#define LIST_WHY_MAX 160u
bool list_parse(const char *text, struct rp_idset *ret, uint32_t *ret_beyond,
		char why[LIST_WHY_MAX]);
/* The CPUs that an annotated container names and may have. -RP_EINVAL with a message: it cannot be created so. */
int32_t named_cpus(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* Those of them that are there, for one that runs already; empty: none. */
void named_here(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);

/* ---- which CPUs (pick.c) --------------------------------------------------------------------------------------------- */

/* n of the free CPUs, of which there have to be as many. */
void pick(const struct rp_plan *p, struct rp_ids free, uint32_t n, struct rp_idset *ret);
/* The same, from as near together as the configuration asks for. */
void pick_near(const struct rp_instance *inst, struct rp_ids free, uint32_t n,
	       struct rp_idset *ret);

/* ---- the instance (cpuset.c) ------------------------------------------------------------------------------------------ */

struct counters {
	uint64_t placed[N_CLASSES], moved, refused;
};

struct rp_instance {
	LIFE;
	struct owners owners;
	uint32_t n_shared, n_shared_before; /* containers; before this callback */
	bool overlapping,
		overlapping_before; /* shared containers run on CPUs of others, as nothing is left for them */
	struct counters counters;
};

/* What the shared containers have. */
void pool_shared(const struct rp_instance *inst, struct rp_idset *ret);
/* What an integer container could be given, without what is forbidden to it. */
void pool_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* CPUs of containers of a class other than shared. */
void pool_of(const struct rp_instance *inst, enum cpuset_class class, struct rp_idset *ret);
/* The container has these CPUs, or is one that shares; or has them no more. */
void pool_add(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);
void pool_del(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);

/* ---- into the transaction (stage.c) --------------------------------------------------------------------------------- */

/* What is kept with a container, for this policy on this machine. */
struct record {
	uint32_t version;
	uint16_t class;
	uint16_t flags;
	uint32_t n; /* CPUs that an integer one is entitled to, perhaps more than it has */
};
#define RECORD_VERSION 1u
#define RECORD_MEMORY 0x1u /* memory pinned */
#define RECORD_FORBIDS 0x2u

/* false: it is not this policy that decided last; *ret is that of a shared one. */
bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* Its own CPUs; reason: why they are not what they should be, or NULL. */
int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct looked *c, struct rp_ids cpus,
		  const char *reason);
int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids pool, const char *reason);
/* Gives the pool as it is now to all who share but one. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- what one container gets (place.c) ------------------------------------------------------------------------------ */

#define INSUFFICIENT_TEXT "insufficient free CPUs: need %u, have %u"
#define POOL_EMPTY_TEXT "shared CPU pool is empty"

int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct looked *c);
/* An integer container that has `own` CPUs and is to have n. */
int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids own);
/* -RP_ENOSPC with a message when too little is left for those who share. */
int32_t place_check_pool(struct rp_instance *inst);

/* ---- everything at once (sync.c) -------------------------------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* CPUs have come free: those who lack some get them. How many that were; the others are not told yet. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- reports (report.c) ----------------------------------------------------------------------------------------------- */

extern const struct rp_zones cpuset_zones;
extern const struct rp_metrics cpuset_metrics;

#endif
