/* SPDX-License-Identifier: Apache-2.0 */
/* Listening unix socket on the loop. Its file is removed with it, unless another file has replaced
 * it. */
#pragma once

#include <sys/types.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct listener;

struct listener_config {
	const char *what; /* name of the socket in messages, such as "control socket" */
	const char *path; /* the folder is created if it is missing */
	mode_t mode;
	/* > 0: a socket that already listens and stays open afterwards; no file is created or
	 * removed */
	int inherited;
	/* Receives a connection: its descriptor, which the callee has to close. A negative value is
	 * an error: descriptors or memory are short, and accepting pauses for a second. */
	void (*accepted)(int fd, void *arg);
	void *arg;
};

int listener_new(struct loop *loop, const struct listener_config *config, struct listener **ret,
		 struct err *err);
/* Frees the listener; its connections stay open. Allowed in accepted(), as the last call there.
 * accepts NULL; returns NULL. */
struct listener *listener_free(struct listener *l);
