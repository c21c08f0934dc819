/* SPDX-License-Identifier: Apache-2.0 */
/* What the store is told and when, and what it tells at a start. */
#ifndef PIPELINE_REQUEST_PERSIST_H
#define PIPELINE_REQUEST_PERSIST_H

#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define PERSIST_DELAY_MS 100u

struct pipeline;

/* ---- persist.c ---- */
/* Notes what the transaction changed; before a reply when live containers are among it, later
 * otherwise. */
void persist_txn(struct pipeline *p);
void persist_now(struct pipeline *p);
void persist_later(struct pipeline *p);
void persist_timer(void *arg);
void persist_quiet(void *arg);
/* The module's saved state is given back to it. */
void persist_load(struct pipeline *p, struct instance *i);

/* ---- state.c ---- */
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
