/* SPDX-License-Identifier: Apache-2.0 */
/* A unix socket on the loop that others connect to. Its file goes when it does, unless somebody
 * else has put another one there. */
#ifndef WIRE_LISTENER_H
#define WIRE_LISTENER_H

#include <sys/types.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct listener;

struct listener_config {
	const char *what; /* for messages: "control socket" */
	const char *path; /* its folder is made if it is not there */
	mode_t mode;
	/* > 0: a socket that listens already, and stays when this goes: no file is made or
	 * removed */
	int inherited;
	/* A connection, which is the callee's to close; or an error: descriptors or memory are
	 * short, and it has to wait a second. */
	void (*accepted)(int fd, void *arg);
	void *arg;
};

int listener_new(struct loop *loop, const struct listener_config *config, struct listener **ret,
		 struct err *err);
/* Connections live on. Allowed in accepted(), as the last thing there. NULL is fine; returns
 * NULL. */
struct listener *listener_free(struct listener *l);

#endif
