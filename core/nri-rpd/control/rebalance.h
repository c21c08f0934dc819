/* SPDX-License-Identifier: Apache-2.0 */
/* The command that moves containers to better places. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_rebalance(struct call *call);
