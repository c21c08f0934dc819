/* SPDX-License-Identifier: Apache-2.0 */
/* The command that shows the Node object and its resources. */
#ifndef CONTROL_NODE_H
#define CONTROL_NODE_H

#include "core/nri-rpd/control/internal.h"

enum call_result run_node(struct call *call);

#endif
