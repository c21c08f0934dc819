/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the reload room changes: the active configuration and the trials of others. */
#ifndef PIPELINE_RELOAD_ROOM_H
#define PIPELINE_RELOAD_ROOM_H

#include "core/nri-rpd/pipeline/reload/attempt.h"
#include "core/nri-rpd/pipeline/reload/proposal.h"
#include "core/nri-rpd/pipeline/reload/recover.h"
#include "core/nri-rpd/pipeline/reload/undo.h"

struct first; /* startup.c */
struct reload; /* reload.c */

struct reloads {
	char dir[CACHE_PATH_MAX],
		run_dir[CACHE_PATH_MAX]; /* of the saved configuration (last_good.h) */
	uint64_t generation; /* counts activations */
	char error[ERR_TEXT_MAX]; /* of the last reload or start; "": it was accepted */
	char *problems; /* all problems of a refused configuration, lines; NULL without an error */
	/* time at which the active configuration was first active; 0: it is that of the files */
	uint64_t saved_ns;
	uint32_t saved_sum; /* identity of the saved configuration */
	char save_error[ERR_TEXT_MAX]; /* why the active configuration is not saved; "": it is */
	struct first *startup; /* during a start only */
	bool lenient; /* during a start: required controllers may be missing */
	bool without_policy; /* during a start: not even the policy none can be loaded */
	char configured_policy[RP_NAME_MAX];
	char safe_mode_reason[ERR_TEXT_MAX]; /* "": not in safe mode */
	struct attempt *attempts; /* running trials */
	struct reload *running; /* the trial whose configuration is to become active; NULL: none */
	struct reload_waiter *waiting; /* callers that came while a reload was running */
	struct undo undo;
	struct recovery recovery;
	struct conf_files pushed; /* configuration pushed by the agent (pushed.h) */
	bool stopping; /* no further trial is started */
};

#endif
