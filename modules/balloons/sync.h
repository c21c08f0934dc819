/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of all containers at once, from saved or previous state. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"
#include <nri-rp/lib/bytes.h>

struct choice;

/* Creates a new state and places all containers in it. */
int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* Places waiting containers after CPUs have become free. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
/* Removes the container from the list of containers without a balloon. */
void sync_forget(struct rp_instance *inst, rp_ctr ctr);
/* Sets *ret to the CPUs of running containers without a balloon. */
void sync_visited(struct rp_instance *inst, struct rp_idset *ret);
/* sync_roam() adds an unmanaged container to the list of waiting containers and stages the CPUs
 * it may use. sync_follow() stages the CPUs of all unmanaged containers after balloons changed. */
int32_t sync_roam(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t sync_follow(struct rp_instance *inst, rp_txn txn);
/* Serializes the balloons and the reserved CPUs. Returns 0 or -RP_ENOMEM. */
int32_t image_write(const struct state *s, struct bytes *image);
/* Copies the balloons of an image and the current reserved CPUs to a new image, while the
 * balloons are not restored yet. Without a valid image the result is empty. */
int32_t image_renew(const struct rp_plan *p, const struct bytes *before, struct bytes *image);
/* Sets *ret to the CPUs that were reserved when the image was written; empty without an image. */
void image_past(const struct bytes *image, struct reserve_past *ret);
/* Restores the balloons of an image that the plan still has room for, without members. Invalid
 * images are ignored. */
int32_t image_restore(struct state *s, const struct bytes *image);
/* Returns true if the data is a complete image of a supported version. */
bool image_valid(const void *data, uint32_t size);
