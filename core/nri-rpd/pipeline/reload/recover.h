/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery from safe mode. In safe mode the configuration that could not be used at the start is
 * tried again in a child, with growing delays: a module may have been installed or re-enabled, CPUs
 * may be online again, the node may be less busy. The first attempt that passes is applied and ends
 * safe mode. Files that were edited after the start wait for a reload.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/conf/conf.h"

struct loop_timer;
struct pipeline;

#define RECOVER_FIRST_MS 500u /* delay of the first attempt, doubled after each */
#define RECOVER_LAST_MS 60000u /* largest delay between two attempts */

struct recovery {
	struct loop_timer *timer;
	uint64_t delay_ms;
	uint64_t files_sum; /* checksum of the files at the start; 0: the files could not be read */
	/* the next attempt uses the last good configuration instead of the files */
	bool tries_last_good;
};

int recover_init(struct pipeline *p);
void recover_fini(struct pipeline *p);
/* Starts attempts to leave safe mode; called at the end of a start. `files`: the configuration
 * files that the start has read; NULL: they could not be read. */
void recover_begin(struct pipeline *p, const struct conf_files *files);
/* Makes an attempt soon because the cause may have been removed. Does nothing outside of safe
 * mode. */
void recover_soon(struct pipeline *p);
/* Arms the next attempt after a failure. */
void recover_later(struct pipeline *p);
