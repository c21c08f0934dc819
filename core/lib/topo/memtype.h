/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the kind of memory of each node (DRAM, HBM, CXL, PMEM). */
#pragma once

#include "core/lib/topo/impl.h"

/*
 * Hides the memory of nodes that a device driver owns, such as that of GPUs: these nodes are listed
 * as nodes without memory. By default they are the nodes without CPUs that the firmware describes
 * as initiators of a device (has_generic_initiator), unless a dax driver made them into memory; the
 * setting of topo_set_device_nodes() replaces that.
 */
void reader_hide_device_memory(struct reader *r);
/* Fills the nodes' types after all other attributes. */
int reader_memory_types(struct reader *r);
