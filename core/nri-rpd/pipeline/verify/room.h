/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the verify room changes: containers whose effective values are checked. */
#pragma once

#include "core/nri-rpd/pipeline/verify/drift.h"

struct verifier {
	rp_ctr *queue;
	uint32_t n, cap;
	uint64_t delay_ms, due_ms;
	bool running; /* a job of the worker is running */
	struct loop_timer *timer;
	struct drift drift;
};
