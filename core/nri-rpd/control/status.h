/* SPDX-License-Identifier: Apache-2.0 */
/* The command that shows the daemon's status. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_status(struct call *call);
