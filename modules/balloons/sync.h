/* SPDX-License-Identifier: Apache-2.0 */
/* Everything at once, out of what was before. */
#ifndef BALLOONS_SYNC_H
#define BALLOONS_SYNC_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/place_state.h"
#include "modules/lib/bytes.h"

struct choice;

int32_t sync_all(struct rp_instance *inst, rp_txn txn);
/* After room was made: places those that wait. */
int32_t sync_retry(struct rp_instance *inst, rp_txn txn);
/* It does not wait any more. */
void sync_forget(struct rp_instance *inst, rp_ctr ctr);
/* CPUs where containers run that are in no balloon. */
void sync_visited(struct rp_instance *inst, struct rp_idset *ret);
/* One that runs without a place: the CPUs it may use, and a note to place it later. After balloons
 * have changed: those of all such ones. */
int32_t sync_roam(struct rp_instance *inst, rp_txn txn, rp_ctr ctr);
int32_t sync_follow(struct rp_instance *inst, rp_txn txn);
int32_t image_write(const struct state *s, struct bytes *image);
/* The balloons of an image, with what is reserved now: for when they are yet to be made. Without
 * one: empty. */
int32_t image_renew(const struct rp_plan *p, const struct bytes *before, struct bytes *image);
/* What was reserved when it was written; without an image: nothing. */
void image_past(const struct bytes *image, struct reserve_past *ret);
/* Makes the balloons of an image that the plan still has room for, without members. Garbage is
 * ignored. */
int32_t image_restore(struct state *s, const struct bytes *image);
bool image_valid(const void *data, uint32_t size);

#endif
