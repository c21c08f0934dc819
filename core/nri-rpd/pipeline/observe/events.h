/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, for people: a bounded list, and a log of it for those after a restart. */
#ifndef PIPELINE_LOOK_EVENTS_H
#define PIPELINE_LOOK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

/* ---- events (events.c) ----------------------------------------------------------------------- */

#define EVENTS_MAX 512u
#define EVENT_TEXT_MAX 224u

enum event_kind {
	EV_RUNTIME, /* connected, lost, synchronised */
	EV_CONFIG, /* reloads */
	EV_CREATED, /* a container was placed */
	EV_REFUSED, /* … or refused */
	EV_MOVED, /* its CPUs or memory nodes changed */
	EV_RESIZED, /* it asked for other amounts, and has got them */
	EV_RELEASED,
	EV_DEGRADED,
	EV_UPDATE_FAILED,
	EV_MODULE, /* errors and deaths of modules */
	EV_MACHINE, /* CPUs came or went */
	EV_PRESSURE, /* a container lacks something, or no longer */
	EV_EVICTION, /* a module asks for one, or the cluster has answered */
	N_EVENT_KINDS
};
const char *event_kind_name(enum event_kind k);

struct event {
	uint64_t seq; /* from 1; goes on after a restart */
	uint64_t wall_ns;
	enum event_kind kind;
	char text[EVENT_TEXT_MAX];
	char *subject; /* the container that it is about, namespace/pod/name; NULL: none */
	/* of the subject's pod, where the cluster may be told of it; NULL: not known, or of an
	 * earlier process */
	char *uid;
	char *detail; /* more of it, lines: why a container was refused; NULL: nothing */
};
void pipeline_event(struct pipeline *p, enum event_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* About a container; its text has to name it. `detail`: copied, may be NULL. */
void pipeline_event_of(struct pipeline *p, enum event_kind kind, const struct ctr *ctr,
		       const char *detail, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* The first event after seq that is still there; NULL: none yet. */
const struct event *pipeline_event_after(const struct pipeline *p, uint64_t seq);
uint64_t pipeline_last_event(const struct pipeline *p);
/* Calls fn (once) when an event comes; for those who follow. */
void pipeline_on_event(struct pipeline *p, void (*fn)(void *arg), void *arg);

/* ---- for the pipeline ------------------------------------------------------------------------ */

/* Takes over what the last process has left in the log of the state directory; that there is none
 * is no failure. */
void events_open(struct pipeline *p);
/* Makes the log of events usable after the state directory has become so. Events of earlier
 * processes, older than those that this one has, are not read. */
void events_open_late(struct pipeline *p);
/* Writes what is not in the log yet. */
void events_log(struct pipeline *p);
void events_close(struct pipeline *p);
/* Tells of containers that the decision has degraded. */
void events_degraded(struct pipeline *p);

#endif
