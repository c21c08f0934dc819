/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when the store is written, and saves the modules' state in it. */
#pragma once

#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"

#define PERSIST_DELAY_MS 100u

struct pipeline;

/* ---- persist.c ------------------------------------------------------------------------------- */
/* Passes the transaction's changes to the store. Writes them at once, before the reply, if live
 * containers are among them, else later. */
void persist_txn(struct pipeline *p);
/* Saves the modules' state and writes all pending changes. Tries again later after an error. */
void persist_now(struct pipeline *p);
/* Schedules a write. */
void persist_later(struct pipeline *p);
/* Writes pending changes and tidies the store. Timer function. */
void persist_timer(void *arg);
/* Returns freed memory to the system after busy times. Timer function. */
void persist_quiet(void *arg);
/* Passes a module its saved state. */
void persist_load(struct pipeline *p, struct instance *i);
