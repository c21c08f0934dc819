/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METRICS_SERVER_H
#define METRICS_SERVER_H

#include "core/nri-rpd/metrics/metrics.h"

/*
 * Listens at "host:port" (numeric, or localhost; "[::1]:8891"; ":8891": all addresses), at
 * "unix:PATH" (mode 0660), or nowhere (""). -EINVAL: not an address; else what the system said. The
 * pipeline has to outlive it.
 */
int metrics_new(struct loop *loop, struct pipeline *pipeline, const char *listen,
		struct metrics **ret, struct err *err);

/* Another address, at once; when it cannot be had the old one stays. The same one: nothing
 * happens. */
int metrics_set_listen(struct metrics *m, const char *listen, struct err *err);
struct metrics *metrics_free(struct metrics *m); /* NULL is fine; returns NULL */

/* The TCP port it listens on, for tests that ask for port 0; 0: none. */
unsigned metrics_port(const struct metrics *m);

/*
 * Requests of any method for `path` and what is below it go to fn, which answers them, now or
 * later; their bodies have at most body_max bytes. One path; NULL: none any more.
 */
void metrics_route(struct metrics *m, const char *path, size_t body_max, metrics_route_fn fn,
		   void *arg);

/*
 * Lets a request wait for its answer, or its answer be taken, for limit_ms from now on, instead of
 * METRICS_ANSWER_MS. When the connection is closed, closed(arg) is called and the request is gone.
 */
void metrics_hold(struct metrics *m, struct evhttp_request *req, uint64_t limit_ms,
		  void (*closed)(void *arg), void *arg);

/* Where it listens, as it was asked for; "": nowhere. Valid until the next change. */
const char *metrics_listens(const struct metrics *m);

/* The whole of /metrics. 0 or -ENOMEM. */
int metrics_render(struct pipeline *p, struct buf *out);

#endif
