/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the balloon for a container, and of a better one later. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"
#include "modules/lib/private/match.h"

#define ANNOTATION_DOMAIN "resource-policy.nri.io"

#define CHOOSE_TEXT_MAX 512u

struct choice {
	const struct type *type;
	struct balloon *balloon;
	const char *method;
	bool created;
	char group[MATCH_VALUE_MAX];
	char text[CHOOSE_TEXT_MAX]; /* why this balloon type was chosen */
	char error[CHOOSE_TEXT_MAX];
	rp_cfg decided_at;
};

/* Reason why a container belongs in its balloon, strongest first: shares a groupBy value, a pod
 * or a namespace with another member; is alone in its balloon; no reason. */
enum tie { TIE_GROUP, TIE_POD, TIE_SPACE, TIE_OWN, TIE_NONE };

/* Returns true if the configuration or an annotation excludes the container from the policy. */
bool choose_untouched(struct rp_instance *inst, const struct rp_ctr_info *info);
/* Chooses the balloon type of a container. Returns 0, or -RP_EINVAL with c->error set, as the
 * choose functions below do. */
int32_t choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Chooses a balloon of c->type, or creates one. Returns 0 or -RP_ENOSPC. */
int32_t choose_balloon(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Grows c->balloon for the container and makes the container a member. */
int32_t choose_join(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Returns a new member for a container, in no balloon yet; NULL: out of memory. */
struct member *choose_member(struct rp_instance *inst, const struct rp_ctr_info *info,
			     const struct type *t);
/* Numbers of other members of a balloon that share the group, namespace and pod of a member. */
struct company {
	uint32_t in_group, in_space, in_pod;
};
struct company choose_company(const struct member *m);
/* Returns the strongest tie of a member to its balloon. */
enum tie choose_tie(const struct member *m);
/* Finds a balloon to which a container has a stronger tie than `than`. The container has already
 * left its balloon, of type c->type. Sets c->balloon to NULL if there is none. */
void choose_stronger(struct rp_instance *inst, const struct rp_ctr_info *info, enum tie than,
		     struct choice *c);
/* Returns the balloon of the same type with the most room, other than `but`, or NULL. Resizes no
 * balloon. */
struct balloon *choose_roomier(struct rp_instance *inst, const struct rp_ctr_info *info,
			       const struct balloon *but);

/* ---- room in one NUMA node (place_relief.c) -------------------------------------------------- */

/* Moves other balloons if the balloon of a new member spans several nodes and the configuration
 * enables relief at admission. Returns 0 or an error. */
int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, const struct member *m);
/* Helps balloons that wait for room in one node. Moves at most `budget` balloons (0: any
 * number). Returns the number of balloons moved, or an error. */
int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Returns true if the memory of all members fits near the CPUs of the balloon. Preserved memory
 * cannot move, so it never fits. */
bool better_memory_fits(const struct state *s, const struct balloon *b);

/* ---- devices of containers (place_devices.c) ------------------------------------------------- */

#define POD_RESOURCE "podresourceapi:"
#define CLAIM "claim:" /* begins the resource of a device that a claim allocated */
/* largest size of the RESOURCE=NODES lines saved with a container, in bytes */
#define DEVICES_TEXT_MAX 2900u

/* Finds the devices of a container that a balloon of type t, created for the container, should
 * be near. Sets *ret to NULL if there are none. Returns 0 or -RP_ENOMEM. */
int32_t devices_near(struct rp_instance *inst, rp_ctr ctr, const struct type *t, bool quiet,
		     struct near **ret);
struct near *near_free(struct near *near); /* returns NULL */
/* Sets s->near to the devices of the balloon, before a resize or a comparison. */
void devices_look(struct state *s, const struct balloon *b);
/* Returns the CPUs near a device; uses s->near. */
struct rp_ids devices_cpus(const struct state *s, uint32_t device);
/* Updates the balloon's devices after a member joined or left. Devices count only while their
 * container is a member. */
void devices_moved(const struct member *m, bool joined);
/* devices_owns() returns true if devices of this member are counted for its balloon.
 * devices_restore() counts them again after a restart, and returns 0 or -RP_ENOMEM. */
bool devices_owns(const struct member *m);
int32_t devices_restore(struct rp_instance *inst, const struct member *m);
/* Writes the device lines of a container to text; "": the container has no devices. */
void devices_text(struct rp_instance *inst, rp_ctr ctr, char *text, size_t size);

/* ---- claims (place_claims.c) ----------------------------------------------------------------- */

/* Reports the devices that pods can claim. Returns 0. */
int32_t claims_devices(struct rp_instance *inst, const struct rp_devices_sink *sink);
/* Returns the balloon type of a device; NULL: there is no such device. */
const struct type *claims_type(const struct rp_plan *p, const char *device);
/* Returns true if the only member of the balloon is a claim. */
bool claims_has(const struct balloon *b);
/* Chooses the balloon type of a claim: of its device, of its record, or the default type. */
void claims_choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Gives claims among the first n entries of inst->list.ctrs balloons with the CPUs that they have.
 * The other containers become the first entries. Returns their number, or an error. */
int32_t claims_keep_all(struct rp_instance *inst, int32_t n, struct choice *c);

/* ---- better places (place_better.c, place_compact.c) ----------------------------------------- */

/* Moves containers to better places, at most `budget` (0: any number). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Moves a container that lacks CPU or memory, if the new place is better. */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
/* Finds better CPUs for a balloon, as many as before. Returns 1 with the reason in *ret_why, 0
 * if there are none, or -RP_ENOMEM. */
int32_t compact(struct state *s, struct balloon *b, const char **ret_why);
/* Returns the number of units of a level that contain CPUs of the set. */
uint32_t compact_count(const struct plan_machine *m, enum tree_level level, struct rp_ids cpus);
