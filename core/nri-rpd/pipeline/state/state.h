/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STATE_STATE_H
#define PIPELINE_STATE_STATE_H

#include "core/nri-rpd/pipeline/state/persist.h"

/* Opens the store and fills the cache with what it has. Without a directory that can be used there
 * is none. */
int state_open(struct pipeline *p, struct err *err);

/* Where it could not be opened at the start, for a reason that may have passed. */
void state_open_late(struct pipeline *p);

/* What the last process has set of the machine; its directory is there. */
int state_open_settings(struct pipeline *p, struct err *err);

/* The state, as far as a check needs it: what is in dir stays as it is and nothing is ever written;
 * what is not used is told in report. */
void state_look(struct pipeline *p, const char *dir, struct buf *report);

#endif
