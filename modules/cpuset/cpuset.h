/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpuset policy. It puts containers in three classes. An annotated container runs on the
 * CPUs that its pod names. An integer container requests a whole number of CPUs with an equal
 * limit, and gets exclusive CPUs. All other containers are shared and run on the remaining CPUs.
 * Named CPUs are always granted: integer containers that have them move while they run.
 *
 *	ALLOWED   availableResources, as far as online
 *	RESERVED  the part of ALLOWED that no integer container gets
 *	POOL      ALLOWED without the CPUs of annotated and integer containers: the CPUs of
 *                  shared containers
 *
 * The host's cache records the CPUs of each container: its CPU set and the saved record.
 * `owners` is an index of that: integer containers own CPUs, annotated containers join them.
 *
 *	config.c    section → settings and CPU sets
 *	place.c     CPUs of one container, and moves of others
 *	sync.c      placement of all containers
 *	classify.c  classes, and the CPU lists in annotations
 *	stage.c     staging in the transaction
 *	report.c    zones, metrics
 *	cpuset.c    the callbacks, index of the CPUs
 */
#pragma once

#include <nri-rp/lib/bounds.h>
#include "modules/lib/private/isolation.h"
#include <nri-rp/lib/life.h>
#include <nri-rp/lib/machine.h>
#include <nri-rp/lib/owners.h>
#include <nri-rp/lib/relief_owned.h>

/* Keys of the pod annotations that list the CPUs of a pod and the CPUs that are forbidden to it. */
struct keys {
	const char *named, *forbidden;
};
#define KEYS_DEFAULT ((struct keys){"weka.io/cores-ids", "weka.io/forbid-core-ids"})
#define KEY_MAX 317u /* length of the longest name of an annotation */

/* Conditions under which a container without exact requests is an integer container. */
struct rules {
	bool needs_memory; /* integer containers have a memory limit */
	bool by_qos; /* containers of Guaranteed pods need no CPU quota */
};

#define MIN_SHARED_DEFAULT (-1) /* default: 1 CPU while shared containers run */

/* The configuration applied to the topology of this node. */
struct rp_plan {
	rp_cfg section;
	struct keys keys; /* for new containers */
	struct rules rules; /* for new and resized containers */
	int64_t min_shared;
	int64_t update_delay_ms, max_update_delay_ms; /* delay before the pool grows */
	bool pin_memory, numa_aware, shared_cache;
	struct relief_settings relief;
	struct isolation_keys isolation;
	struct machine *machine;
	struct bounds cpus; /* allowed and reserved CPUs */
};

extern const struct rp_schema cpuset_schema;
/* ops.fill and ops.plan_fini (life.h). */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);

/* ---- classes (classify.c) -------------------------------------------------------------------- */

enum cpuset_class { CLASS_SHARED, CLASS_INTEGER, CLASS_ANNOTATED, N_CLASSES };
extern const char *const class_names[N_CLASSES];

/* A container with its class. Its texts are valid until the callback returns. */
struct looked {
	struct rp_ctr_info info;
	enum cpuset_class class;
	uint32_t n; /* integer containers: number of CPUs */
	bool follows; /* a scheduler chose the CPUs (followScheduler) */
	bool forbids; /* the pod has a list of forbidden CPUs */
	struct rp_idset forbidden;
	struct keys keys; /* annotations that were configured when the container was created */
	struct rules rules; /* by which the class was determined */
	const char *why; /* reason for the container's class */
};

/* Determines the class of a container by the rules that were active when it was created or resized:
 * a reload does not change its class. look_at_resized() uses the active rules. */
void look_at(const struct rp_instance *inst, const struct rp_ctr_info *info, struct looked *ret);
void look_at_resized(const struct rp_instance *inst, const struct rp_ctr_info *info,
		     struct looked *ret);
/* Sets *ret to the CPUs that the pod names. Returns -RP_EINVAL with a message if the list is
 * invalid or a CPU is not available; the container cannot be created then. */
int32_t named_cpus(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* Sets *ret to the CPUs that a container which already runs gets of those that its pod names: the
 * available ones, or all or none if a scheduler chose them. Returns false if some are missing. */
bool named_here(struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);

/* ---- policy instance (cpuset.c) -------------------------------------------------------------- */

struct population {
	uint32_t n[N_CLASSES]; /* number of containers by class */
	bool overlapping; /* the pool is empty, so shared containers use CPUs of other containers */
	bool sharers; /* in a walk of sync_all(): a shared container has not been placed yet */
};

struct rp_instance {
	LIFE;
	struct owners owners;
	struct relief relief;
	struct population now, before; /* before: the value when the transaction began */
	struct {
		uint64_t placed[N_CLASSES], moved, refused;
	} counters;
	/* CPUs of the device from which a claim is being allocated; NULL: any */
	const struct rp_idset *within;
};

/* Sets *ret to the CPUs of the shared containers. */
void pool_shared(const struct rp_instance *inst, struct rp_idset *ret);
/* Sets *ret to the CPUs that an integer container can get, without its forbidden ones. */
void pool_free(const struct rp_instance *inst, const struct looked *c, struct rp_idset *ret);
/* pool_add() counts a container and marks its CPUs as used; pool_del() reverts that. Shared
 * containers have no CPUs of their own. */
void pool_add(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);
void pool_del(struct rp_instance *inst, enum cpuset_class class, rp_ctr ctr, struct rp_ids cpus);

/* ---- staging in the transaction (stage.c) ---------------------------------------------------- */

/* Record saved with a container: this policy has set its CPUs. */
struct record {
	uint32_t version;
	uint16_t class, flags;
};
#define RECORD_FORBIDS 0x1u /* the pod has a list of forbidden CPUs */
#define RECORD_FOLLOWS 0x2u /* a scheduler chose the CPUs */
#define RECORD_KEYS                                                                                \
	0x4u /* the texts of struct keys follow, because they are not the default ones */
/* The values of struct rules; RECORD_RULES: they are in the record. */
#define RECORD_RULES 0x8u
#define RECORD_NEEDS_MEMORY 0x10u
#define RECORD_BY_QOS 0x20u

/* Reads the record. Returns false if another policy made the last decision; *ret is then the
 * record of a shared container. */
bool record_read(const struct rp_instance *inst, rp_ctr ctr, struct record *ret);
/* Returns the keys with which the container was created, or those for new containers if it has no
 * record. */
struct keys record_keys(const struct rp_instance *inst, rp_ctr ctr);
/* Returns the rules by which the class of the container was determined, or those for new
 * containers. */
struct rules record_rules(const struct rp_instance *inst, rp_ctr ctr);
/* Writes the record of a container. */
int32_t record_write(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     enum cpuset_class class);
/* Returns true if the container has the CPUs that a scheduler chose for its pod. */
bool record_follows(const struct rp_instance *inst, const struct rp_ctr_info *info);
/* Stages the CPUs of an annotated or integer container. reason: why these are not the intended
 * CPUs, or NULL. */
int32_t stage_own(struct rp_instance *inst, rp_txn txn, const struct looked *c, struct rp_ids cpus,
		  const char *reason);
int32_t stage_shared(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids pool, const char *reason);
/* Stages the current pool for all shared containers except one. */
int32_t stage_sharers(struct rp_instance *inst, rp_txn txn, rp_ctr except);

/* ---- CPUs of one container (place.c) --------------------------------------------------------- */

#define WHOSE_MAX 512u
#define POOL_EMPTY_TEXT "shared CPU pool is empty"

/* Finds n CPUs for an integer container: those in `keep`, and free CPUs that are not in `avoid`.
 * Returns 0, or -RP_ENOSPC with a message that begins with `whose`. */
int32_t place_find(struct rp_instance *inst, const struct looked *c, struct rp_ids keep,
		   struct rp_ids avoid, uint32_t n, const char *whose, struct rp_idset *ret);
/* Returns the description of this policy for fragmentation relief (relief_owned.h). */
struct relief_call place_relief(struct rp_instance *inst, rp_txn txn);
int32_t place_new(struct rp_instance *inst, rp_txn txn, const struct looked *c);
/* Resizes an integer container from its CPUs `own` to c->n CPUs. */
int32_t place_resize(struct rp_instance *inst, rp_txn txn, const struct looked *c,
		     struct rp_ids own);
/* Returns -RP_ENOSPC with a message if the pool has fewer CPUs than minSharedCPUs. */
int32_t place_check_pool(struct rp_instance *inst);

/* ---- all containers (sync.c) ----------------------------------------------------------------- */

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Gives free CPUs to integer containers that lack some. Returns the number of containers
 * changed. Shared containers are not staged yet. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn, rp_ctr except);

int32_t cpuset_zones(struct rp_instance *inst, const struct rp_zone_sink *sink);
int32_t cpuset_metrics(struct rp_instance *inst, const struct rp_metric_sink *sink);
