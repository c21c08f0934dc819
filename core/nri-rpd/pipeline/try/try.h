/* SPDX-License-Identifier: Apache-2.0 */
/* Attempt to place the pods of a manifest, in a forked child. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"

/* Creates the pods of the manifest in `text` until one is refused, and packs a Trial__Report of the
 * containers' places and of other containers that moved. Runs in a forked child, whose state is
 * unusable afterwards. Returns an error if the manifest is invalid or a pod would be refused.
 * `name` is for messages. */
int try_pods(struct pipeline *p, const char *name, const char *text, struct buf *out,
	     struct err *err);
