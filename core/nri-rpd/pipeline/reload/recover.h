/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of safe mode. While the daemon is in it, the configuration that could not be used at
 * the start is tried again in a child, later and later: a module may have been cleared or
 * installed, CPUs may be online again, the machine may have time again. The first trial that passes
 * is applied, and safe mode is over. Files that were edited since wait for a reload.
 */
#ifndef PIPELINE_RELOAD_RECOVER_H
#define PIPELINE_RELOAD_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/conf/conf.h"

struct loop_timer;
struct pipeline;

#define RECOVER_FIRST_MS 500u /* doubled after each try … */
#define RECOVER_LAST_MS 60000u /* … up to this */

struct recovery {
	struct loop_timer *timer;
	uint64_t delay_ms;
	uint32_t files_sum; /* sum of the files at the start; 0: the files could not be read */
	bool tries_last_good; /* instead of the files, at the next try */
};

int recover_init(struct pipeline *p);
void recover_fini(struct pipeline *p);
/* At the end of a start. `files` were read for it; NULL: they could not be. */
void recover_begin(struct pipeline *p, const struct conf_files *files);
/* The cause may be gone: tries soon. Does nothing outside of safe mode. */
void recover_soon(struct pipeline *p);
/* A try has failed: arms the next one. */
void recover_later(struct pipeline *p);

#endif
