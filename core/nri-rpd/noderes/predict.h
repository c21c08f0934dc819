/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts peaks from the past: histograms of usage in which old samples weigh less. Also the
 * resources that prod pods have requested and are predicted not to need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/calculator.h>

/* ---- histograms ---- */

#define HISTOGRAM_BUCKETS_MAX 1024u

/* Widths of buckets. Bucket i has the values from bucket_start(i) up to bucket_start(i + 1), the
 * last one all larger values. */
struct buckets {
	double first; /* width of the first bucket */
	double ratio; /* ratio of a width to the previous one; 1: equal widths */
	uint32_t n;
};

/* Initializes buckets. ratio 1 or more. -EINVAL: more than HISTOGRAM_BUCKETS_MAX, or none. */
int buckets_init(struct buckets *b, double max, double first, double ratio);
double bucket_start(const struct buckets *b, uint32_t i);
uint32_t bucket_of(const struct buckets *b, double value);

struct histogram {
	struct buckets buckets;
	/* time after which a sample has half its weight, in seconds; 0: samples do not age */
	double half_life_s;
	double reference_s; /* time for which the weights are valid */
	double total;
	double *weights; /* a weight per bucket */
};

/* Initializes a histogram. Returns 0, or -ENOMEM with nothing to free. */
int histogram_init(struct histogram *h, const struct buckets *b, double half_life_s);
void histogram_fini(struct histogram *h);
void histogram_add(struct histogram *h, double value, double weight, double at_s);
/* Returns the end of the bucket at which the part `p` of all weight is reached; 0: no weight. */
double histogram_percentile(const struct histogram *h, double p);

/* ---- reclaimable resources ---- ---- */

struct predicted_pod {
	int64_t request[RP_NR_AMOUNTS];
	int64_t peak[RP_NR_AMOUNTS]; /* predicted peak without the margin */
	bool has_peak;
	bool leaves; /* the pod has been stopped */
	int64_t age_s;
};

struct reclaim_input {
	const struct predicted_pod *pods; /* pods of class prod or without a class */
	uint32_t n_pods;
	int64_t classes
		[RP_NR_AMOUNTS]; /* peaks of system, class prod and no class, summed, no margin */
	int64_t allocatable[RP_NR_AMOUNTS];
	int64_t margin_percent, cold_start_s;
};

struct reclaimable {
	int64_t by_pod[RP_NR_AMOUNTS], by_class[RP_NR_AMOUNTS], both[RP_NR_AMOUNTS];
	/* amount that prod pods may need, the larger of both predictions */
	int64_t peak[RP_NR_AMOUNTS];
};

void reclaim(const struct reclaim_input *in, struct reclaimable *ret);
