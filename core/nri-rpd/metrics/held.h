/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that systemd listens on for the daemon where nothing is served: whoever connects there is
 * not left waiting. */
#ifndef METRICS_HELD_H
#define METRICS_HELD_H

#include "core/lib/util/loop.h"

#define HELD_MAX 8u /* further ones are left alone */

struct held {
	struct held_socket {
		int fd; /* systemd's */
		struct loop_io *io; /* NULL: it is served, or none that can be */
	} sockets[HELD_MAX];
};

/* From now on that one is served, or none (-1): connections to all others are closed. */
void held_serve(struct held *h, struct loop *loop, int served);
void held_fini(struct held *h);

#endif
