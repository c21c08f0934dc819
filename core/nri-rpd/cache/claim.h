/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims: CPUs and memory of ResourceClaims (Dynamic Resource Allocation) that were allocated to
 * this node's pods. A claim is a struct ctr without a process, in a pod of its own, so that
 * decisions, invariants, the store and policies treat it as the owner of its CPUs. No runtime knows
 * it: its state is RP_STATE_CREATING until it is released. A claim of several devices has one such
 * object for each of them, its parts, in the same pod. The first one stands for the claim.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"

#define CLAIM_UID_MAX 128u
/* largest size of the pods' UIDs of a claim, in bytes, with a blank after each */
#define CLAIM_USERS_MAX 65536u
#define CLAIM_NAME "claim" /* name of the container object that represents a claim */
/* Kind of the CDI devices of claims; the device's name is the claim's UID. */
#define CLAIM_CDI CLAIM_DRIVER "/claim="
#define CLAIM_DRIVER "nri-rp.nri.io" /* driver of the claims' devices */

#define CLAIM_PARTS_MAX 16u /* AGENT_CLAIM_PARTS_MAX */

struct claim_part {
	const char *device;
	int64_t cpus; /* number of whole CPUs; 0: the device belongs to a controller */
	int64_t memory; /* memory in bytes; 0: none */
	struct huge huge; /* huge pages */
};

struct claim_desc {
	const char *uid, *ns, *name;
	const char *users; /* UIDs of the pods that may use the claim, separated by blanks */
	const struct claim_part *parts;
	uint32_t n_parts; /* 1 to CLAIM_PARTS_MAX */
};

/* Returns the claim with this UID; NULL: none. */
struct ctr *claim_by_uid(struct cache *c, const char *uid);
/* Returns the claim with the name of a CDI device; NULL: none, or another kind of device. */
struct ctr *claim_by_cdi(struct cache *c, const char *name);
/* Returns the claim with the id of its container; NULL: none. */
struct ctr *claim_of_id(struct cache *c, const char *id);
const char *claim_uid(const struct ctr *claim);
/* Returns the first part of the claim to which a part belongs. */
struct ctr *claim_first(struct ctr *part);
/* Returns true if the object is a part of a claim whose device belongs to a controller. */
bool claim_is_controlled(const struct ctr *ctr);
/* Returns the RDT class that a claim gives its containers; NULL: none. */
struct blob *claim_class(const struct ctr *claim);
/* Returns true if the claim has exactly these parts, in this order. */
bool claim_has_parts(const struct ctr *claim, const struct claim_part *parts, uint32_t n);
/* Inserts a claim without a decision. -EINVAL, -ENOSPC and -ENOMEM as cache_put_ctr(). */
int claim_put(struct cache *c, const struct claim_desc *desc, struct ctr **ret, struct err *err);
/* Makes a container a part of a claim. -ENOMEM. */
int claim_mark(struct ctr *ctr, const char *device, const char *users);
/* Replaces the pods that may use the claim. -ENOMEM. */
int claim_set_users(struct ctr *claim, const char *users);
/* Returns true if the pod with this UID may use the claim. */
bool claim_is_for(const struct ctr *claim, const char *uid);
/* Returns true if the object is a claim and the text is its NAMESPACE/NAME or NAME. */
bool claim_is_named(const struct ctr *ctr, const char *text);
/* Makes a container use a claim; NULL: none. */
void claim_attach(struct ctr *ctr, struct ctr *claim);
/* Removes a claim from the containers that use it. Their CPUs are not exclusive any more. */
void claim_detach(struct cache *c, struct ctr *claim);
