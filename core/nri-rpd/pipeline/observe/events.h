/* SPDX-License-Identifier: Apache-2.0 */
/* Events for users: a bounded list in memory, and a log file that keeps it over a restart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

/* ---- events (events.c) ----------------------------------------------------------------------- */

#define EVENTS_MAX 512u
#define EVENT_TEXT_MAX 224u

enum event_kind {
	EV_RUNTIME, /* the runtime was connected, lost or synchronized */
	EV_CONFIG, /* reloads */
	EV_CREATED, /* a container was placed */
	EV_REFUSED, /* a container was refused */
	EV_MOVED, /* CPUs or memory nodes of a container changed */
	EV_RESIZED, /* a container was resized */
	EV_RELEASED,
	EV_DEGRADED,
	EV_UPDATE_FAILED,
	EV_MODULE, /* errors and deaths of modules */
	EV_MACHINE, /* CPUs came online or went offline */
	EV_PRESSURE, /* a container began or ceased to lack resources */
	EV_LATE, /* a container ran unplaced while the daemon was away */
	EV_EVICTION, /* a module requested an eviction, or the cluster answered */
	N_EVENT_KINDS
};
const char *event_kind_name(enum event_kind k);

struct event {
	uint64_t seq; /* number of the event, from 1, continued after a restart */
	uint64_t wall_ns;
	enum event_kind kind;
	char text[EVENT_TEXT_MAX];
	char *subject; /* container, namespace/pod/name; NULL: none */
	/* UID of the container's pod, for events that go to the cluster; NULL: not known, or from a
	 * previous process */
	char *uid;
	char *detail; /* further lines, as the reason of a refusal; NULL: none */
};
/* Records an event. */
void pipeline_event(struct pipeline *p, enum event_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Records an event about a container, whose name the text has to contain. `detail`: copied, may be
 * NULL. */
void pipeline_event_of(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
		       const char *detail, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Records a frequent event about a container, without formatting. */
void pipeline_event_text(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
			 const char *text);
/* Returns the first event after seq that is still in the list; NULL: none. */
const struct event *pipeline_event_after(const struct pipeline *p, uint64_t seq);
/* Returns the number of the latest event. */
uint64_t pipeline_last_event(const struct pipeline *p);
/* Sets the function that is called with each new event. */
void pipeline_on_event(struct pipeline *p, void (*fn)(void *arg), void *arg);

/* ---- within the pipeline --------------------------------------------------------------------- */

/* Reads the log of previous processes. A missing log is no failure. */
void events_open(struct pipeline *p);
/* Opens the log after the state directory has become usable. Does not read events of previous
 * processes. */
void events_open_late(struct pipeline *p);
/* Writes new events to the log. */
void events_log(struct pipeline *p);
void events_close(struct pipeline *p);
/* Records an event for each container that the decision has degraded. */
void events_degraded(struct pipeline *p);
