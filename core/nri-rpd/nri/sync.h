/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the parts of a Synchronize request and feeds their pods and containers to the pipeline, one
 * object at a time.
 */
#pragma once

#include "core/nri-rpd/nri/internal.h"

/* Reports whether more parts follow a packed SynchronizeRequest, and the number of its pods and
 * containers. 0, or -EBADMSG. */
int sync_look(const uint8_t *data, size_t len, bool *ret_more, uint32_t *ret_objects);
/* Begins the pipeline's synchronization and adds every pod, then every container, of concatenated
 * packed requests. Data that is needed until its end is allocated in `kept`. -EBADMSG: an object
 * does not unpack (or memory ran out), and the synchronization has to be abandoned. */
int sync_feed(struct pipeline *p, struct arena *scratch, struct arena *kept, const uint8_t *data,
	      size_t len);
