/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sits between a plugin's connection and its trunk (core/lib/wire), passes all bytes on, and has
 * what the plugin sends checked. The checks share no code with the sender of the frames.
 */
#pragma once

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct tap;

/* Inserts a check. Takes ownership of the plugin's fd, even on failure; *ret_fd is the end for the
 * trunk. */
int tap_new(struct loop *loop, int fd, void (*bad)(const char *what, void *arg), void *arg,
	    struct tap **ret, int *ret_fd, struct err *err);
/* Ends the connection after so many further bytes to the plugin. */
void tap_cut(struct tap *tap, uint64_t after);
struct tap *tap_free(struct tap *tap);
