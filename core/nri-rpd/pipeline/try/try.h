/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_TRY_H
#define PIPELINE_TRY_H

#include "core/nri-rpd/pipeline/pipeline.h"

/* In a forked child, whose state is of no use afterwards: creates the pods of the manifest in
 * `text`, until one is refused, and packs a Trial__Report of where their containers are and who
 * moved for them. An error is why the manifest is none, or a pod would be refused. `name` is for
 * messages. */
int try_pods(struct pipeline *p, const char *name, const char *text, struct buf *out,
	     struct err *err);

#endif
