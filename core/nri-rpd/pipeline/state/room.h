/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the state room changes: writes to the store, and unusable directories. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"

struct saved_state {
	struct loop_timer *persist_timer, *quiet_timer;
	uint64_t quiet_records; /* the store's record count at the last release of free memory */
	char store_state[ERR_TEXT_MAX];
	/* reason why the directory cannot be used; "": it can */
	char state_error[ERR_TEXT_MAX], run_error[ERR_TEXT_MAX];
	bool may_come; /* the state directory may become usable later */
	bool exported; /* there may be data directories of containers (export.c) */
};
