/* SPDX-License-Identifier: Apache-2.0 */
/* Devices for claims (nri-rp.devices/1) of policies with exclusive CPUs: one for each NUMA node
 * with CPUs, "cpu-node-0", with capacities "cpu" and "memory". */
#ifndef NRI_RP_LIB_NODE_DEVICES_H
#define NRI_RP_LIB_NODE_DEVICES_H

#include <nri-rp/lib/ctr.h>
#include <nri-rp/policy.h>

/* Reports the devices. assignable: CPUs that can become exclusive. */
int32_t node_devices_report(const struct modhost *h, struct ctr_list *list,
			    struct rp_ids assignable, const struct rp_devices_sink *sink);
/* Stores the CPUs of a device, for an allocation to this claim. Fails with a message: -RP_ENOENT:
 * there is no such device; -RP_ENOSPC: its memory is allocated. */
int32_t node_devices_open(const struct modhost *h, struct ctr_list *list, struct rp_ids assignable,
			  const struct rp_ctr_info *claim, const char *device,
			  struct rp_idset *ret_cpus);

#endif
