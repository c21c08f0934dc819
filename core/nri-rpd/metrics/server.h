/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server for metrics, health and the map: address, routes and time limits. */
#pragma once

#include "core/nri-rpd/metrics/metrics.h"

/*
 * Creates the server. It listens at "host:port" (numeric, or localhost; "[::1]:8891"; ":8891": all
 * addresses), at "unix:PATH" (mode 0660), or not at all (""). -EINVAL: not an address; else the
 * error of the system. The pipeline has to outlive it.
 */
int metrics_new(struct loop *loop, struct pipeline *pipeline, const char *listen,
		struct metrics **ret, struct err *err);

/* Changes the address at once. An error leaves the old one in use. An equal address has no
 * effect. */
int metrics_set_listen(struct metrics *m, const char *listen, struct err *err);
struct metrics *metrics_free(struct metrics *m); /* accepts NULL; returns NULL */

/* Returns the TCP port, for tests that pass port 0; 0: none. */
unsigned metrics_port(const struct metrics *m);

/*
 * Passes requests of any method for `path` and paths below it to fn, which answers them at once or
 * later. Their bodies have at most body_max bytes. There is one such path; NULL: removes it.
 */
void metrics_route(struct metrics *m, const char *path, size_t body_max, metrics_route_fn fn,
		   void *arg);

/*
 * Defers the answer to a request: the connection is closed limit_ms from now, instead of after
 * METRICS_ANSWER_MS, unless the answer was sent completely. When the connection is closed,
 * closed(arg) is called and the request is invalid.
 */
void metrics_hold(struct metrics *m, struct evhttp_request *req, uint64_t limit_ms,
		  void (*closed)(void *arg), void *arg);

/* Returns the address as configured; "": does not listen. Valid until the next change. */
const char *metrics_listens(const struct metrics *m);

/* Renders the whole of /metrics. 0 or -ENOMEM. */
int metrics_render(struct pipeline *p, struct buf *out);
