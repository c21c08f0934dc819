/* SPDX-License-Identifier: Apache-2.0 */
/* The command that checks for common faults. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_doctor(struct call *call);
