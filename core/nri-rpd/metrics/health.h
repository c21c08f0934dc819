/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness of the daemon: evaluates all readiness checkers. */
#pragma once

#include "core/nri-rpd/metrics/metrics.h"

/* Writes one line per failing checker to out ("name: reason"). Returns true if none fails. */
bool health_check(struct pipeline *p, struct buf *out);
