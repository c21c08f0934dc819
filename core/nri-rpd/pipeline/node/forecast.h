/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forecast of resources that pods will not need, from measured usage. Each minute the models of the
 * node, its system, the classes of pods and each pod learn a high percentile of the last minute's
 * usage. Models are saved to a file every ten minutes and at the end, so that a restart continues
 * with them.
 *
 * Models have their own clock: the wall clock at the start, continued by the monotonic clock.
 * Setting the wall clock therefore does not change the weights.
 */
#pragma once

#include "core/nri-rpd/noderes/models.h"
#include "core/nri-rpd/pipeline/node/measure.h"

#define FORECAST_FILE "predictions" /* in the state directory */

struct pipeline;

struct forecast_limits {
	int64_t margin_percent, cold_start_s;
};

/* State of the forecast; all zeros: off. */
struct forecast {
	bool on;
	bool reading, writing; /* a job of the disk worker is running */
	bool known; /* the file was read, or does not exist */
	struct models models;
	int64_t start_s; /* wall clock at start_ms */
	/* monotonic times of the start, the last training and the last write */
	uint64_t start_ms, trained_ms, written_ms;
};

/* Pod with its priority class and requests. */
struct forecast_pod {
	const struct pod *pod;
	uint32_t prio; /* priority of the pod, RP_PRIO_… */
	int64_t request[RP_NR_AMOUNTS];
};

/* Turns the forecast on or off; the first time reads the file. */
void forecast_switch(struct pipeline *p, struct forecast *f, bool on);
/* Returns true if the forecast is on, usage has been measured, and the last lesson was at least a
 * minute ago. */
bool forecast_due(const struct forecast *f, const struct measure *m, uint64_t now_ms);
/* Trains all models with the last minute's usage, and saves them if that is due. */
void forecast_train(struct pipeline *p, struct forecast *f, const struct measure *m,
		    const struct forecast_pod *pods, uint32_t n, uint64_t now_ms);
/* Fills prod_reclaimable and prod_peak; RP_NOT_SET while the forecast is off. 0 or -ENOMEM. */
int forecast_reclaimable(const struct forecast *f, const struct forecast_limits *limits,
			 const struct forecast_pod *pods, uint32_t n,
			 const int64_t allocatable[RP_NR_AMOUNTS], uint64_t now_ms,
			 struct rp_nr_measured *ret);
/* Saves the models, unless the disk hangs. Called after the end of the loop and the disk worker. */
void forecast_stop(struct pipeline *p, struct forecast *f);
