/* SPDX-License-Identifier: Apache-2.0 */
/* The command that queries events or waits for them. */
#pragma once

#include "core/nri-rpd/control/internal.h"

enum call_result run_events(struct call *call);
void put_event(struct json *j, const struct event *e, uint32_t flags);
int events_init(struct ctl *ctl);
void events_fini(struct ctl *ctl);
