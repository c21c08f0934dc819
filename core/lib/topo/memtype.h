/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOPO_MEMTYPE_H
#define TOPO_MEMTYPE_H

#include "core/lib/topo/impl.h"

/* Fills the nodes' types, when all else is known about them. */
int reader_memory_types(struct reader *r);

#endif
