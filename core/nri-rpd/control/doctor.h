/* SPDX-License-Identifier: Apache-2.0 */
/* The command that checks for common faults. */
#ifndef CONTROL_DOCTOR_H
#define CONTROL_DOCTOR_H

#include "core/nri-rpd/control/internal.h"

enum call_result run_doctor(struct call *call);

#endif
