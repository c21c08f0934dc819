/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations from the cluster: accepted files that the node agent has pushed. They are read
 * after the daemon's own files, and saved beside the last good configuration (last_good.h), so that
 * a start has them before the agent connects. They apply while agent.cluster in the files allows
 * it.
 */
#pragma once

#include "core/lib/conf/conf.h"

#define PUSHED_FILE "configuration.pushed"
#define PUSHED_ADJUSTMENTS "Adjustments " /* prefix of the names of pushed adjustments */

struct pipeline;

/* Loads the saved files at a start. Unreadable files are logged and skipped; the agent pushes them
 * again. */
void pushed_load(struct pipeline *p);
/* Returns true if the sources equal the active ones of their kind. */
bool pushed_is(const struct pipeline *p, const struct conf_source *sources, unsigned n,
	       bool adjustments);
/* Copies all pushed files into ret, with those of one kind replaced by `sources`; adjustments last.
 * 0 or -ENOMEM. */
int pushed_replace(const struct pipeline *p, const struct conf_source *sources, unsigned n,
		   bool adjustments, struct conf_files *ret);
/* Returns the name of the object that the configuration from the cluster comes from; NULL: none. */
const char *pushed_source(const struct pipeline *p);
/* Takes ownership of files that have become active, and saves them for later starts. */
void pushed_take(struct pipeline *p, struct conf_files *files);
void pushed_fini(struct pipeline *p);
