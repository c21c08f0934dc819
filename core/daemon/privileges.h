/* SPDX-License-Identifier: Apache-2.0 */
/* What of root's rights the daemon keeps, whoever starts it. */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include "core/util/err.h"

/*
 * Gives up every capability but those that privileges.c lists with the reason of each, for this
 * process and all that it starts, and with them the right to get any back. Before the first thread.
 * Does nothing where there is nothing to give up, as in the shipped unit.
 */
int privileges_drop(struct err *err);

#endif
