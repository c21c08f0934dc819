/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SYNC_H
#define RUNTIME_SYNC_H

#include "core/nri-rpd/nri/internal.h"

/* What a packed SynchronizeRequest is: whether more parts follow, and how many pods and containers
 * it has. 0, or -EBADMSG. */
int sync_look(const uint8_t *data, size_t len, bool *ret_more, uint32_t *ret_objects);
/* Begins the pipeline's synchronisation and tells it every pod, then every container, of packed
 * requests put behind one another. What has to stay until its end is put into kept. -EBADMSG:
 * something does not unpack (or memory ran out); the synchronisation has to be abandoned. */
int sync_feed(struct pipeline *p, struct arena *scratch, struct arena *kept, const uint8_t *data,
	      size_t len);

#endif
