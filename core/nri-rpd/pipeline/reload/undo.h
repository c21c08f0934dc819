/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way back to the configuration before.
 *
 *   FORMER_FILE  in the directory of the kept one: what was kept before it
 *   UNDONE_FILE  the sum of the files that a start is not to use, although they are good: they were
 *                undone, or are not confirmed yet
 *
 * What awaits confirmation is in force, but not kept: without a word the kept one comes back, in
 * this process or the next.
 */
#ifndef PIPELINE_UNDO_H
#define PIPELINE_UNDO_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/reload/reload.h"

#define FORMER_FILE "configuration.former"
#define UNDONE_FILE "configuration.undone"

struct undo {
	struct conf_files unconfirmed; /* in force, until it is confirmed or undone */
	uint64_t due_ms; /* clock_ms; 0: nothing awaits confirmation */
	struct loop_timer *timer;
	bool undone; /* what is in force is not what the files say */
};

int undo_init(struct pipeline *p);
void undo_fini(struct pipeline *p);
/* A start: were these files undone, or never confirmed? */
bool undo_rejects(const struct pipeline *p, const struct conf_files *files);
/* Another configuration is in force, from the files: nothing is undone, nothing awaits anything. */
void undo_forget(struct pipeline *p);
/* The configuration of `files` is in force for `seconds`, then it is undone unless it was
 * confirmed. Takes *files over. */
void undo_await(struct pipeline *p, struct conf_files *files, uint32_t seconds);
/* The former one is in force, instead of the files with that sum. */
void undo_done(struct pipeline *p, uint32_t sum);

struct err;

/* What is in force stays. -ENOENT: nothing awaits that. */
int pipeline_confirm(struct pipeline *p, struct err *err);
unsigned pipeline_unconfirmed_s(const struct pipeline *p); /* that are left; 0: nothing awaits it */

/* As a reload, with the configuration that was in force before; a second one leads back again.
 * res->code is -EAGAIN when there is none. */
int pipeline_undo(struct pipeline *p, reload_done done, void *arg, struct err *err);

#endif
