/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the kind of memory of each node (DRAM, HBM, CXL, PMEM). */
#ifndef TOPO_MEMTYPE_H
#define TOPO_MEMTYPE_H

#include "core/lib/topo/impl.h"

/* Fills the nodes' types after all other attributes. */
int reader_memory_types(struct reader *r);

#endif
