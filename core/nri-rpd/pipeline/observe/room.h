/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the observe room changes: events and conditions. */
#pragma once

#include "core/lib/util/reclog.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/observe/events.h"

/* Refused creations since the last successful one, by different containers. */
struct refusals {
	unsigned n, who[REFUSED_IN_A_ROW]; /* hashes of their names */
	char last[ERR_TEXT_MAX]; /* reason of the last one */
};

struct observer {
	uint64_t started_ns;
	struct refusals refusals;
	char unserved[N_SERVICES][CONDITION_TEXT_MAX]; /* reason, by service; "": it is served */
	struct event events[EVENTS_MAX];
	uint64_t last_event, logged_event; /* logged_event: last event in the log */
	struct reclog event_log;
	bool event_log_ready;
	void (*on_event)(void *arg);
	void *on_event_arg;
};
