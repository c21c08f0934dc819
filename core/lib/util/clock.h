/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: monotonic and wall-clock time, and the CPU time of a thread. */
#pragma once

#include "core/lib/util/loop.h"

uint64_t clock_ms(void); /* monotonic, in milliseconds */
uint64_t clock_us(void);
uint64_t clock_ns(void);
uint64_t clock_wall_ns(void);
