/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pods are not expected to need, by what was measured of them: each minute the models of the
 * node, of its system, of the classes of pods and of each pod get what most of the last minute was
 * spent below. Models are written to a file every ten minutes and at the end, so that a restart
 * does not begin to learn anew.
 *
 * Models go by a clock of their own, that of the wall at the start and of the monotonic one since:
 * when somebody sets the wall clock, nothing is weighed anew.
 */
#ifndef PIPELINE_FORECAST_H
#define PIPELINE_FORECAST_H

#include "core/nri-rpd/noderes/models.h"
#include "core/nri-rpd/pipeline/node/measure.h"

#define FORECAST_FILE "predictions" /* in the state directory */

struct pipeline;

struct forecast_limits {
	int64_t margin_percent, cold_start_s;
};

/* All zeros: off. */
struct forecast {
	bool on;
	bool reading, writing; /* a job of the disk's worker is under way */
	bool known; /* the file was read, or there is none */
	struct models models;
	int64_t start_s; /* the wall's, at start_ms */
	uint64_t start_ms, trained_ms, written_ms; /* monotonic */
};

/* A pod, or the class of it, as far as models go. */
struct forecast_pod {
	const struct pod *pod;
	uint32_t prio; /* RP_PRIO_… */
	int64_t request[RP_NR_AMOUNTS];
};

void forecast_switch(struct pipeline *p, struct forecast *f, bool on);
/* Whether prediction is on, there is something to learn from, and a minute has passed since the
 * last lesson. */
bool forecast_due(const struct forecast *f, const struct measure *m, uint64_t now_ms);
void forecast_train(struct pipeline *p, struct forecast *f, const struct measure *m,
		    const struct forecast_pod *pods, uint32_t n, uint64_t now_ms);
/* prod_reclaimable and prod_peak: 0, or -ENOMEM; RP_NOT_SET while it is off. */
int forecast_reclaimable(const struct forecast *f, const struct forecast_limits *limits,
			 const struct forecast_pod *pods, uint32_t n,
			 const int64_t allocatable[RP_NR_AMOUNTS], uint64_t now_ms,
			 struct rp_nr_measured *ret);
/* Writes what was learned, unless the disk hangs; the loop and the disk's worker have ended. */
void forecast_stop(struct pipeline *p, struct forecast *f);

#endif
