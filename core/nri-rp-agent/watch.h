/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps track of objects of the API server: lists them page by page, then watches for changes. Each
 * watch covers the objects of a field selector, so its cost does not depend on the cluster's size.
 *
 *        ┌──────────── 410 Gone ────────────┐
 *        ▼                                  │
 *     LISTING ──── all pages are read ───▶ WATCHING ◀──┐ the stream ended: continue
 *      ▲   │                                │   └──────┘ from the same version
 *      │   └── failed ──▶ RESTING ◀─ failed ┘
 *      └─────────────────── ┘   back-off; longer without the right, or if the kind does not exist
 */
#pragma once

#include "core/nri-rp-agent/kube.h"

#define WATCH_OBJECT_MAX (4u << 20) /* largest event, in bytes */
#define WATCH_PAGE 100u /* objects in a page; fewer if they are large */
#define WATCH_SERVER_S                                                                             \
	300u /* time after which the server ends the stream, reduced randomly by up to a quarter */
#define WATCH_GRACE_S 30u /* additional time after which the stream is treated as hung */

enum watch_event {
	WATCH_BEGIN, /* a list begins; objects that are missing in it were removed */
	WATCH_OBJECT, /* an object exists: one of a list, or a created or changed one */
	WATCH_GONE, /* a removed object, in its last state */
	WATCH_LISTED, /* the list is complete */
	WATCH_DENIED, /* the agent lacks the right, or the kind seems not to exist */
	WATCH_NO_KIND, /* the kind does not exist: still missing after DENIED_MS */
	WATCH_FAILED, /* another failure; the watch tries again */
};

struct watch;
/* Receives an event of a watch. object: set with WATCH_OBJECT and WATCH_GONE, valid during the
 * call. text: the problem, set with WATCH_DENIED, WATCH_NO_KIND and WATCH_FAILED. The callback
 * must not free the watch. */
typedef void (*watch_fn)(enum watch_event event, json_t *object, const char *text, void *arg);

/*
 * Creates and starts a watch; returns NULL without memory. path: such as "/api/v1/nodes", without a
 * query. field_selector: such as "metadata.name=n1"; NULL: all objects.
 */
struct watch *watch_new(struct kube *k, const char *path, const char *field_selector, watch_fn fn,
			void *arg);
/* Creates a watch that also has a label selector, such as "app!=web"; NULL: any labels. */
struct watch *watch_new_labelled(struct kube *k, const char *path, const char *field_selector,
				 const char *label_selector, watch_fn fn, void *arg);
/* Suppresses problem reports about an unavailable resource. */
void watch_set_optional(struct watch *w);
/* Reports the problem of the watch under a key of its own, a constant text, which ends with the
 * watch. Otherwise all watches of one path report one problem. */
void watch_set_key(struct watch *w, const char *key);
struct watch *watch_free(struct watch *w); /* accepts NULL; returns NULL */

/* Splits a stream into lines, one event each, however the data is cut into pieces. Also used by
 * tests. -EMSGSIZE: a line is too long. */
struct watch_lines {
	struct buf *partial;
	int (*line)(const char *text, size_t n, void *arg);
	void *arg;
};
int watch_feed(const struct watch_lines *l, const void *data, size_t n);

/* An event of a stream. */
struct watch_message {
	/* WATCH_OBJECT, WATCH_GONE; WATCH_LISTED: a bookmark; WATCH_DENIED: an error */
	enum watch_event event;
	json_t *object; /* object of the event; owned */
	const char *version; /* resourceVersion of `object`; NULL: none */
	int error; /* error of WATCH_DENIED: -ESTALE, -EAGAIN */
};
/* Parses a line of the stream. Returns 0, or -EBADMSG if the line is not an event. */
int watch_parse(const char *text, size_t n, struct watch_message *ret);
