/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector: reads on a timer what containers really use, on a thread of its own, keeps the
 * last two readings with each container (cache/usage.h), and tells the pipeline who has begun
 * to lack something. Switched off there is no timer and no thread.
 *
 *   figures.c     [worker] files of a cgroup
 *   reader.c      [worker] those of many, round by round
 *   collector.c   rounds: whom to ask, what came of it, who lacks what
 *   containers.c  the exposition
 *
 * A round costs some files a container and, on the loop, a copy of each container's path and
 * result: all of it follows the number of containers, and is counted (nri_rp_collect_*). One round
 * is under way at most; where reading takes longer than the interval, the next is left out.
 */
#ifndef METRICS_COLLECTOR_H
#define METRICS_COLLECTOR_H

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/pipeline/pipeline.h"

/* A pressure is told when so many readings in a row are beyond its limit, and taken back when so
 * many are below half of it. */
#define COLLECTOR_STREAK 3u

struct collector;

/* The pipeline has to outlive it. */
struct collector *collector_new(struct loop *loop, struct pipeline *pipeline, struct err *err);
/* As the configuration says: interval and limits. */
void collector_configure(struct collector *c, const struct conf_core *core);
/* Begins a round now; false: one is under way, or there is nobody to ask. */
bool collector_round(struct collector *c);
struct collector *collector_free(struct collector *c); /* NULL is fine; returns NULL */

/* What a container lacks by its last readings, given what it was said to lack; counts the streaks.
 * limits: percent, by bit. */
uint32_t collector_judge(struct usage *u, const uint32_t limits[4]);

#endif
