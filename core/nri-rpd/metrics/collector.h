/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector reads on a timer, on a separate thread, how much containers really use. It stores
 * the last two readings with each container (cache/usage.h), and notifies the pipeline of
 * containers that begin to lack a resource. If it is disabled there is no timer and no thread.
 *
 *   figures.c     [worker] files of a cgroup
 *   reader.c      [worker] files of many cgroups, round by round
 *   collector.c   rounds: which containers are read, their results, their shortages
 *   containers.c  the exposition
 *
 * A round costs a few files per container and, on the loop, a copy of each container's path and
 * result. The cost grows with the number of containers, and is counted (nri_rp_collect_*). At most
 * one round runs at a time; if reading takes longer than the interval, the next round is skipped.
 */
#pragma once

#include "core/nri-rpd/cache/usage.h"
#include "core/nri-rpd/pipeline/pipeline.h"

/* Number of readings in a row beyond the limit that report a pressure, and of readings below half
 * of the limit that end it. */
#define COLLECTOR_STREAK 3u

struct collector;

/* Creates the collector. The pipeline has to outlive it. */
struct collector *collector_new(struct loop *loop, struct pipeline *pipeline, struct err *err);
/* Applies interval and limits of the configuration. */
void collector_configure(struct collector *c, const struct conf_core *core);
/* Begins a round now; false: a round is running, or there are no containers to read. */
bool collector_round(struct collector *c);
struct collector *collector_free(struct collector *c); /* accepts NULL; returns NULL */

/* Returns the resources that a container lacks by its last readings and by the previous result;
 * counts the streaks. limits: percent, by bit. */
uint32_t collector_judge(struct usage *u, const uint32_t limits[4]);
