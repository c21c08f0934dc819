/* SPDX-License-Identifier: Apache-2.0 */
/* Which balloon a container gets, and whether there is a better one by now. */
#ifndef BALLOONS_PLACE_H
#define BALLOONS_PLACE_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"
#include "modules/lib/match.h"

#define ANNOTATION_DOMAIN "resource-policy.nri.io"

#define CHOOSE_TEXT_MAX 512u

struct choice {
	const struct type *type;
	struct balloon *balloon;
	const char *method;
	bool created;
	char group[MATCH_VALUE_MAX];
	char text[CHOOSE_TEXT_MAX]; /* why the type */
	char error[CHOOSE_TEXT_MAX];
	rp_cfg decided_at;
};

/* What holds a container in its balloon, the strongest first. */
enum tie { TIE_GROUP, TIE_POD, TIE_SPACE, TIE_OWN, TIE_NONE };

/* Leaves the sentence in c->error and returns code. */
int32_t choose_fail(struct choice *c, int32_t code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether the policy leaves the container alone entirely. */
bool choose_untouched(struct rp_instance *inst, const struct rp_ctr_info *info);
/* 0, or -RP_EINVAL, as all of these with c->error. */
int32_t choose_type(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* 0, or -RP_ENOSPC. May create a balloon. */
int32_t choose_balloon(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
/* Puts the container in a balloon, that is made large enough. */
int32_t choose_join(struct rp_instance *inst, const struct rp_ctr_info *info, struct choice *c);
struct member *choose_member(struct rp_instance *inst, const struct rp_ctr_info *info,
			     const struct type *t);
/* With how many others of its balloon a member has its group, namespace or pod in common. */
struct company {
	uint32_t in_group, in_space, in_pod;
};
struct company choose_company(const struct member *m);
enum tie choose_tie(const struct member *m);
/* For one that has left a balloon of c->type: one that it has a stronger tie to than `than`.
 * c->balloon is NULL when there is none. */
void choose_stronger(struct rp_instance *inst, const struct rp_ctr_info *info, enum tie than,
		     struct choice *c);
/* The balloon with most room that is not `but`, without resizing any; or NULL. */
struct balloon *choose_roomier(struct rp_instance *inst, const struct rp_ctr_info *info,
			       const struct balloon *but);

/* ---- room in one NUMA node (place_relief.c) -------------------------------------------------- */

/* A container has just joined a balloon: moves others if that is spread over nodes and the
 * configuration asks for relief at admission. 0 or an error. */
int32_t relief_at_admission(struct rp_instance *inst, rp_txn txn, const struct member *m);
/* Helps balloons that wait for room in one node, with at most `budget` balloons moved (0: any
 * number). Returns how many were moved, or an error. */
int32_t relief_help_waiting(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Does the memory of all members fit near the CPUs of their balloon, and may it be there? */
bool better_memory_fits(const struct state *s, const struct balloon *b);

/* ---- devices of containers (place_devices.c) ------------------------------------------------- */

#define POD_RESOURCE "podresourceapi:"
#define DEVICES_TEXT_MAX 2900u /* RESOURCE=NODES lines, as they are kept with a container */

/* What counts of a container's devices for a balloon of the type that is made for it. NULL:
 * nothing. 0 or -RP_ENOMEM. */
int32_t devices_near(struct rp_instance *inst, rp_ctr ctr, const struct type *t, bool quiet,
		     struct near **ret);
struct near *near_free(struct near *near); /* returns NULL */
/* The balloon is about to be resized, or compared: s->near. */
void devices_look(struct state *s, const struct balloon *b);
struct rp_ids devices_cpus(const struct state *s, uint32_t device); /* of s->near */
/* A member has come or gone: what counts because of it does so as long as it is there. */
void devices_moved(const struct member *m, bool joined);
/* Do devices of this member count for its balloon? And, after a restart, that they do so again: 0
 * or -RP_ENOMEM. */
bool devices_owns(const struct member *m);
int32_t devices_restore(struct rp_instance *inst, const struct member *m);
/* The lines of a container; "": it has none. */
void devices_text(struct rp_instance *inst, rp_ctr ctr, char *text, size_t size);

/* ---- better places (place_better.c, place_compact.c) ----------------------------------------- */

/* Moves containers that would be placed better now, at most `budget` (0: any number). */
int32_t rebalance_all(struct rp_instance *inst, rp_txn txn, uint64_t budget);
/* Moves one that lacks something, if that is better for it. */
int32_t rebalance_one(struct rp_instance *inst, rp_txn txn, rp_ctr ctr, uint64_t lacks);
/* Better CPUs for a balloon, as many as it has. 1: *ret_why says why they are better; 0: there are
 * none; or -RP_ENOMEM. */
int32_t compact(struct state *s, struct balloon *b, const char **ret_why);
/* Units of a level that a set of CPUs is in. */
uint32_t compact_count(const struct plan_machine *m, enum tree_level level, struct rp_ids cpus);

#endif
