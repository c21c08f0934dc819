/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and health over HTTP.
 *
 *   expo.c      the text format of Prometheus (0.0.4): families, labels, numbers, checks of
 *               samples of modules
 *   host.c      nri_rp_* and process_*: the daemon itself
 *   system.c    nri_policy_mem_node_*, nri_policy_cpu_*: the machine as containers use it
 *   collector.c, figures.c, reader.c, containers.c
 *               nri_rp_container_*: usage of containers, measured on a timer (collector.h)
 *   modules.c   nri_policy_<policy>_* and the like: metrics of modules
 *   health.c    readiness: checkers and their verdicts
 *   server.c    HTTP: routes, and limits on connections
 *   address.c   listening sockets
 *   held.c      sockets of systemd that are not served
 *
 * Metrics add no work to the runtime's requests beyond the pipeline's counters. Everything except
 * usage of containers is computed from the cache during a scrape.
 */
#pragma once

#include <stdbool.h>

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

/* Connections at a time that wait, send a request or receive an answer, of all clients and of one
 * address. Further connections replace the oldest ones; health and readiness are answered beyond
 * that. */
#define METRICS_CONNECTIONS_MAX 32u
#define METRICS_ADDRESS_MAX 16u
/* Age in milliseconds below which a connection is never closed in favour of another one, and the
 * largest number of connections that this applies to. */
#define METRICS_YOUNG_MS 100u
#define METRICS_ACCEPTED_MAX 256u
#define METRICS_HEADER_MAX 8192u /* largest size of a request, in bytes */
#define METRICS_REQUEST_MS 2000u /* time limit for a request to arrive completely */
#define METRICS_STALLED_MS 2000u /* time limit for sending an answer without progress */
#define METRICS_ANSWER_MS 10000u /* time limit for sending the whole answer */
#define METRICS_SAMPLES_MAX 50000u /* samples of modules in one scrape; more are left out */

struct metrics;
struct evhttp_request;

/* ---- pages of other components --------------------------------------------------------------- */

typedef void (*metrics_route_fn)(struct evhttp_request *req, void *arg);
