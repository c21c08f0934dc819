/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live map of the machine, a page at /map on the HTTP server of the metrics. map.c serves it; page/
 * is what a browser loads, without a build step and without files from other servers.
 *
 *   GET  /map, /map/FILE         the page
 *   GET  /map/topology           the documents of nri-rpctl --json, without
 *   GET  /map/containers         texts of annotations, processes and cgroups
 *   GET  /map/explain?name=NAME
 *   GET  /map/events?after=N     Server-sent events: each message is a document of events. An
 *                                empty one is sent now and then if there are no events.
 *                                Last-Event-ID overrides after.
 *   POST /map/try                a manifest, tried without effect
 *
 * Only requests to a numeric address or localhost are answered, and only scripts of this page may
 * send them. Otherwise any web page could read the map through a name that points here. The map's
 * limits apply in addition to those of the server.
 */
#pragma once

#include <stdbool.h>

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/pipeline.h"

/* largest number of concurrent requests, including streams and trials */
#define MAP_REQUESTS_MAX 16u
#define MAP_STREAMS_MAX 8u /* largest number of streams of events */
#define MAP_TRIES_MAX 1u /* largest number of trials of a pod, each of which needs a process */
#define MAP_TRY_MS 60000u /* time limit of a trial, with the sending of its answer */
#define MAP_QUIET_MS 15000u /* interval of empty messages on a stream without events */
#define MAP_STALLED_MS 30000u /* time limit of a stream whose reader takes no data */
#define MAP_BACKLOG_MAX                                                                            \
	(256u << 10) /* unsent bytes of a stream, above which further events are delayed */

struct map;

/* Creates the map, disabled. NULL: out of memory. All three arguments have to outlive the requests:
 * call metrics_free() before map_free(). */
struct map *map_new(struct metrics *metrics, struct ctl *ctl, struct pipeline *pipeline);
/* Enables the map, as long as the metrics are served to this machine alone, or disables it. Call it
 * again after the metrics' address has changed. */
void map_serve(struct map *map, bool on);
struct map *map_free(struct map *map); /* accepts NULL; returns NULL */
