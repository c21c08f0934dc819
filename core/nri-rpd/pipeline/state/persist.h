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

#endif
