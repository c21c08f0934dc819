/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that systemd has opened for the daemon and that are not served: closes their connections,
 * so that clients do not wait in vain. */
#pragma once

#include "core/lib/util/loop.h"

#define HELD_MAX 8u /* further sockets are ignored */

struct held {
	struct held_socket {
		int fd; /* descriptor, owned by systemd */
		/* the socket on the loop; NULL: served by the daemon, or not a listening socket */
		struct loop_io *io;
	} sockets[HELD_MAX];
};

/* Serves only socket `served` (-1: none); closes connections of all others. */
void held_serve(struct held *h, struct loop *loop, int served);
void held_fini(struct held *h);
