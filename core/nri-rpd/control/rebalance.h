/* SPDX-License-Identifier: Apache-2.0 */
/* The command that moves containers to better places. */
#ifndef CONTROL_REBALANCE_H
#define CONTROL_REBALANCE_H

#include "core/nri-rpd/control/internal.h"

enum call_result run_rebalance(struct call *call);

#endif
