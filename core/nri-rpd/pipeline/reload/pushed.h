/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the node agent has pushed and was accepted: read after the files whenever these are, and
 * kept beside the configuration that was in force last (kept.h), so that a start has it before the
 * agent comes. It counts as long as agent.cluster of the files says so.
 */
#ifndef PIPELINE_PUSHED_H
#define PIPELINE_PUSHED_H

#include "core/lib/conf/conf.h"

#define PUSHED_FILE "configuration.pushed"
#define PUSHED_ADJUSTMENTS "Adjustments " /* what names of their sources begin with */

struct pipeline;

/* Copies, at the end of the files. 0 or -ENOMEM. */
int pushed_append(struct conf_files *files, const struct conf_source *sources, unsigned n);
/* At a start. What cannot be read is told and done without: the agent brings it again. */
void pushed_load(struct pipeline *p);
/* Is it what is in force of its kind? */
bool pushed_is(const struct pipeline *p, const struct conf_source *sources, unsigned n,
	       bool adjustments);
/* Copies of all that is pushed with these in the place of those of their kind, adjustments last. 0
 * or -ENOMEM. */
int pushed_replace(const struct pipeline *p, const struct conf_source *sources, unsigned n,
		   bool adjustments, struct conf_files *ret);
/* Where the configuration from the cluster came from; NULL: there is none. */
const char *pushed_source(const struct pipeline *p);
/* Takes files over that are in force now, and keeps them for later starts. */
void pushed_take(struct pipeline *p, struct conf_files *files);
void pushed_fini(struct pipeline *p);

#endif
