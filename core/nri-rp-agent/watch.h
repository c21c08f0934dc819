/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the API server, kept in view: listed, page by page, then watched from there on. One of
 * these sees what a field selector picks, so that it costs nothing how large the cluster is.
 *
 *        ┌──────────── 410 Gone ────────────┐
 *        ▼                                  │
 *     LISTING ──── all pages are there ──▶ WATCHING ◀──┐ the stream ended: once more from
 *      ▲   │                                │   └──────┘ where it stopped
 *      │   └── failed ──▶ RESTING ◀─ failed ┘
 *      └─────────────────── ┘   back-off; longer where we may not, or there is no such kind
 */
#ifndef NRI_RP_AGENT_WATCH_H
#define NRI_RP_AGENT_WATCH_H

#include "core/nri-rp-agent/kube.h"

#define WATCH_OBJECT_MAX (4u << 20) /* bytes of an event */
#define WATCH_PAGE 100u /* objects asked for at a time; fewer where they are large */
#define WATCH_SERVER_S                                                                             \
	300u /* the server ends the stream after that; up to a quarter less, by chance */
#define WATCH_GRACE_S 30u /* and when it does not, it hangs */

enum watch_event {
	WATCH_BEGIN, /* a list begins: what is not in it is gone */
	WATCH_OBJECT, /* one that is there */
	WATCH_GONE, /* one that is not any more, as it was last */
	WATCH_LISTED, /* the list is complete */
	WATCH_DENIED, /* it cannot be had: we may not, or there seems to be no such kind */
	WATCH_NO_KIND, /* there is none: it is still missing after DENIED_MS */
};

struct watch;
/* object: of WATCH_OBJECT and WATCH_GONE, borrowed; text: of WATCH_DENIED and WATCH_NO_KIND. Must
 * not free the watch. */
typedef void (*watch_fn)(enum watch_event event, json_t *object, const char *text, void *arg);

/*
 * path: "/api/v1/nodes", without a query; field_selector: "metadata.name=n1", NULL: all there are.
 * Starts at once. NULL: no memory.
 */
struct watch *watch_new(struct kube *k, const char *path, const char *field_selector, watch_fn fn,
			void *arg);
/* That it cannot be had is nothing to tell people of. */
void watch_set_optional(struct watch *w);
struct watch *watch_free(struct watch *w); /* NULL is fine; returns NULL */

/* What a server sends, for tests as well: events, one a line, however they are cut into pieces.
 * -EMSGSIZE: one is too long. */
struct watch_lines {
	struct buf *partial;
	int (*line)(const char *text, size_t n, void *arg);
	void *arg;
};
int watch_feed(const struct watch_lines *l, const void *data, size_t n);

/* One event of a stream. */
struct watch_message {
	/* WATCH_OBJECT, WATCH_GONE; WATCH_LISTED: a bookmark; WATCH_DENIED: an error */
	enum watch_event event;
	json_t *object; /* owned */
	const char *version; /* its resourceVersion, in object; NULL: none */
	int error; /* of WATCH_DENIED: -ESTALE, -EAGAIN */
};
/* 0, or -EBADMSG: it is none. */
int watch_parse(const char *text, size_t n, struct watch_message *ret);

#endif
