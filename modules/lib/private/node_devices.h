/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for claims (nri-rp.devices/1) of policies with exclusive CPUs: one for each NUMA node
 * with CPUs, "cpu-node-0", optionally also for each L3 cache, "cpu-l3-0", and each socket,
 * "cpu-socket-0", with capacities "cpu", "memory" and huge pages. */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/ctr.h>
#include <nri-rp/policy.h>

#include "modules/lib/private/isolation.h"

struct node_devices {
	const struct modhost *h;
	struct ctr_list *list;
	struct rp_ids assignable; /* CPUs that can become exclusive */
	const struct isolation_keys *isolation; /* keys of the policy; siblings: own applies */
	uint32_t levels; /* further levels, a bit mask of 1 << RP_LEVEL_L3 and RP_LEVEL_PACKAGE */
	/* Returns true if a unit of a further level is a device; needed with `levels`. */
	bool (*offers)(const void *arg, struct rp_ids cpus);
	const void *arg; /* argument for `offers` */
};

/* Reports the devices. */
int32_t node_devices_report(const struct node_devices *of, const struct rp_devices_sink *sink);
/* Stores the CPUs of a device, for an allocation to this claim. Fails with a message: -RP_ENOENT:
 * there is no such device; -RP_ENOSPC: its memory is allocated. */
int32_t node_devices_open(const struct node_devices *of, const struct rp_ctr_info *claim,
			  const char *device, struct rp_idset *ret_cpus);
/* Returns true if a device with this name is a NUMA node. */
bool node_devices_is_node(const char *device);
