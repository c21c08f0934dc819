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

/* ---- what others serve here ------------------------------------------------------------------ */

typedef void (*metrics_route_fn)(struct evhttp_request *req, void *arg);

#endif
