/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sits between a plugin's connection and the trunk that serves it, passes all bytes on, and has
 * what the plugin sends checked. So the judge of the frames shares no code with those who made
 * them.
 */
#ifndef SIM_TAP_H
#define SIM_TAP_H

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

struct tap;

/* Takes the plugin's fd, also when this fails; the other end for the trunk goes to ret_fd. */
int tap_new(struct loop *loop, int fd, void (*bad)(const char *what, void *arg), void *arg,
	    struct tap **ret, int *ret_fd, struct err *err);
/* No more than so many bytes reach the plugin; then the line ends. */
void tap_cut(struct tap *tap, uint64_t after);
struct tap *tap_free(struct tap *tap);

#endif
