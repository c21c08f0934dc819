/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undo: the return to the previous configuration.
 *
 *   FORMER_FILE  beside the last good configuration: the one that was saved before it
 *   UNDONE_FILE  checksum of valid files that a start must not use, because they were undone or
 *                are not confirmed yet
 *
 * A configuration that awaits confirmation is active but not saved. Without a confirmation the
 * saved one returns, in this process or at the next start.
 */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/reload/reload.h"

#define FORMER_FILE "configuration.former"
#define UNDONE_FILE "configuration.undone"

struct undo {
	struct conf_files unconfirmed; /* active files that await confirmation */
	/* end of the time for confirmation, by clock_ms(); 0: no confirmation is awaited */
	uint64_t due_ms;
	struct loop_timer *timer;
	bool undone; /* the configuration was rolled back: the active one differs from the files */
};

int undo_init(struct pipeline *p);
void undo_fini(struct pipeline *p);
/* Returns true if these files were undone or never confirmed. Called at a start. */
bool undo_rejects(const struct pipeline *p, const struct conf_files *files);
/* Ends any wait for confirmation and any undone state, because the files are active. */
void undo_forget(struct pipeline *p);
/* Undoes the configuration of `files`, which is active, after `seconds` without a confirmation.
 * Takes ownership of *files. */
void undo_await(struct pipeline *p, struct conf_files *files, uint32_t seconds);
/* Records that the former configuration is active, and that a start must not use the files with
 * checksum `sum`; 0: unknown, a start uses any files. */
void undo_done(struct pipeline *p, uint64_t sum);

struct err;

/* Confirms the active configuration. -ENOENT: it awaits no confirmation. */
int pipeline_confirm(struct pipeline *p, struct err *err);
/* Returns the seconds left for a confirmation; 0: none is awaited. */
unsigned pipeline_unconfirmed_s(const struct pipeline *p);

/* Reloads the previous configuration; a second undo returns to the present one. res->code is
 * -EAGAIN if there is no previous configuration. `plan`: tries it only, and changes nothing. */
int pipeline_undo(struct pipeline *p, bool plan, reload_done done, void *arg, struct err *err);
