/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that show the machine: zones and topology. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_zones(struct call *call);
enum call_result run_topology(struct call *call);
