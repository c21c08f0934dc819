/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_TRY_H
#define PIPELINE_TRY_H

#include "core/pipeline/pipeline.h"

/* In a forked child, whose state is of no use afterwards: creates the containers of the manifest at path and packs a Trial__Report of where they are
 * and who moved for them. An error is why the pod would be refused. */
int try_pod(struct pipeline *p, const char *path, struct buf *out, struct err *err);

#endif
