/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and health over HTTP.
 *
 *   expo.c      the text format of Prometheus (0.0.4): families, labels, numbers, checks of what
 *               modules hand in
 *   host.c      nri_rp_* and process_*: the daemon itself
 *   system.c    nri_policy_mem_node_*, nri_policy_cpu_*: the machine as containers use it
 *   collector.c, figures.c, containers.c
 *               nri_rp_container_*: what containers use, read by the clock (collector.h)
 *   modules.c   nri_policy_<policy>_* and the like: what modules count
 *   health.c    readiness: checkers and their verdicts
 *   server.c    HTTP: routes, and bounds on connections
 *   held.c      sockets of systemd that nothing is served on
 *
 * Nothing is counted for metrics on the runtime's requests beyond what the pipeline counts anyway:
 * everything else but what containers use is computed from the cache when somebody scrapes.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stdbool.h>

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

/* Connections that may wait, ask or take an answer at a time, of all clients and of one address.
 * Further ones take the places of the oldest; health and readiness are answered beyond that. */
#define METRICS_CONNECTIONS_MAX 32u
#define METRICS_ADDRESS_MAX 16u
/* No connection is closed for another one in its first milliseconds, up to so many of them. */
#define METRICS_YOUNG_MS 100u
#define METRICS_ACCEPTED_MAX 256u
#define METRICS_HEADER_MAX 8192u /* bytes of a request */
#define METRICS_REQUEST_MS 2000u /* until a request is complete */
#define METRICS_STALLED_MS 2000u /* without a byte of the answer being taken */
#define METRICS_ANSWER_MS 10000u /* for the whole answer to be taken */
#define METRICS_SAMPLES_MAX 50000u /* of all modules in one scrape; what is more is left out */

struct metrics;
struct evhttp_request;

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

/* ---- what others serve here ------------------------------------------------------------------ */

typedef void (*metrics_route_fn)(struct evhttp_request *req, void *arg);
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

/* ---- without a server ------------------------------------------------------------------------ */

/* The whole of /metrics. 0 or -ENOMEM. */
int metrics_render(struct pipeline *p, struct buf *out);
/* One line a failing checker into out ("name: what is wrong"); true when there is none. */
bool health_check(struct pipeline *p, struct buf *out);

#endif
