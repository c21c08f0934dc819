/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page with a live map of the machine, /map on the HTTP server of the metrics: map.c serves it,
 * page/ is what a browser gets, with neither a build step nor anything from elsewhere.
 *
 *   GET  /map, /map/FILE         the page
 *   GET  /map/topology           the documents of nri-rpctl --json, without
 *   GET  /map/containers         what annotations say, processes and cgroups
 *   GET  /map/explain?name=NAME
 *   GET  /map/events?after=N     Server-sent events: each message is a document of events. Without
 *                                anything new, an empty one now and then. Last-Event-ID wins
 *                                over after.
 *   POST /map/try                a manifest; nothing comes of it
 *
 * Only a browser that was told a numeric address or localhost is answered, and only a page from
 * here may ask: else a page from anywhere could read it, by a name that points here. All is within
 * bounds, beside those of the server.
 */
#ifndef MAP_MAP_H
#define MAP_MAP_H

#include <stdbool.h>

#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/pipeline.h"

#define MAP_REQUESTS_MAX 16u /* under way at a time, of them … */
#define MAP_STREAMS_MAX 8u /* … following what happens */
#define MAP_TRIES_MAX 1u /* … trying a pod, which takes a process */
#define MAP_TRY_MS 60000u /* for its answer to come and to be taken */
#define MAP_QUIET_MS 15000u /* after which a stream says that it is still there */
#define MAP_STALLED_MS 30000u /* after which one whose reader takes nothing is ended */
#define MAP_BACKLOG_MAX                                                                            \
	(256u << 10) /* bytes that wait for a stream's reader before it is told no more */

struct map;

/* Serves nothing yet. NULL: out of memory. All three have to outlive what it serves: metrics_free()
 * ends that, map_free() is next. */
struct map *map_new(struct metrics *metrics, struct ctl *ctl, struct pipeline *pipeline);
/* On, as long as the metrics are served to this machine alone, or off; to be called again when the
 * metrics listen elsewhere. */
void map_serve(struct map *map, bool on);
struct map *map_free(struct map *map); /* NULL is fine; returns NULL */

#endif
