/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the reload room changes: properties of the active configuration, and running
 * attempts. */
#pragma once

#include "core/nri-rpd/pipeline/reload/attempt.h"
#include "core/nri-rpd/pipeline/reload/proposal.h"
#include "core/nri-rpd/pipeline/reload/recover.h"
#include "core/nri-rpd/pipeline/reload/undo.h"
#include "core/nri-rpd/pipeline/reload/watch_files.h"

struct first; /* startup.c */
struct reload; /* reload.c */

struct reloads {
	/* directories of the saved configuration (last_good.h) */
	char dir[CACHE_PATH_MAX], run_dir[CACHE_PATH_MAX];
	uint64_t generation; /* number of activations so far */
	char error[ERR_TEXT_MAX]; /* error of the last reload or start; "": it was accepted */
	char *problems; /* all problems of a refused configuration, lines; NULL without an error */
	/* activation time of the saved configuration if that is active; 0: read from the files */
	uint64_t saved_ns;
	uint64_t saved_sum; /* checksum of the saved configuration */
	char save_error[ERR_TEXT_MAX]; /* why the active configuration is not saved; "": it is */
	struct first *startup; /* exists during a start (startup.c) */
	bool lenient; /* set during a start: required controllers may be missing */
	bool without_policy; /* set during a start if not even the policy none can be loaded */
	char configured_policy[RP_NAME_MAX];
	char safe_mode_reason[ERR_TEXT_MAX]; /* why the daemon is in safe mode; "": it is not */
	struct attempt *attempts; /* running attempts */
	struct reload *running; /* attempt whose configuration is to be activated; NULL: none */
	struct reload_waiter *waiting; /* callers that arrived while a reload was running */
	struct undo undo;
	struct watch_files watch_files;
	struct recovery recovery;
	struct conf_files pushed; /* configuration pushed by the agent (pushed.h) */
	bool stopping; /* no further attempt is started */
};
