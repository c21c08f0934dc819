/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of devices that claims allocate (Dynamic Resource Allocation), from the ResourceSlices of
 * this node: its NUMA node, else its PCI address or PCIe root, which the daemon looks up in sysfs.
 * Only these are stored; the watch selects the slices of this node.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define PLACES_SLICES_MAX 256u /* largest number of slices of one node */
/* largest number of devices of one slice, as the API server permits */
#define PLACES_DEVICES_MAX 128u
#define PLACES_FIRST_MS 300u /* longest wait for the first list */

struct places;

/* Starts the watch; returns NULL without memory. kube NULL: there is no cluster, and no place is
 * known. `settled` is called later, once, when the first list is complete or not available. */
struct places *places_new(struct kube *k, const char *node, void (*settled)(void *arg), void *arg);
struct places *places_free(struct places *s); /* accepts NULL; returns NULL */
bool places_settled(const struct places *s);
/* Fills in the places of the devices of claims, or why they are unknown. The texts and lists belong
 * to the slices: they are valid until control returns to the loop. */
void places_locate(struct places *s, const Agent__PodDevices *pod);

/* For tests: records a slice, or removes it. */
void places_take(struct places *s, const json_t *object, bool gone);
