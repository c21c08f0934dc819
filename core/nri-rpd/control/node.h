/* SPDX-License-Identifier: Apache-2.0 */
/* The command that shows the Node object and its resources. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_node(struct call *call);
