/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peaks by the past: histograms of what was used, in which old samples weigh less, and what prod
 * pods have asked for but are not predicted to need.
 */
#ifndef NODERES_PREDICT_H
#define NODERES_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/calculator.h>

/* ---- histograms ---- */

#define HISTOGRAM_BUCKETS_MAX 1024u

/* Bucket i holds values from bucket_start(i) up to bucket_start(i + 1); the last one all above. */
struct buckets {
	double first; /* width of the first one */
	double ratio; /* of a width to the one before; 1: all are as wide */
	uint32_t n;
};

/* -EINVAL: more than HISTOGRAM_BUCKETS_MAX, or none at all. ratio 1 or more. */
int buckets_init(struct buckets *b, double max, double first, double ratio);
double bucket_start(const struct buckets *b, uint32_t i);
uint32_t bucket_of(const struct buckets *b, double value);

struct histogram {
	struct buckets buckets;
	double half_life_s; /* 0: samples do not age */
	double reference_s; /* weights are those at this time */
	double total;
	double *weights; /* one a bucket */
};

/* 0 or -ENOMEM: nothing is to be freed then. */
int histogram_init(struct histogram *h, const struct buckets *b, double half_life_s);
void histogram_fini(struct histogram *h);
void histogram_add(struct histogram *h, double value, double weight, double at_s);
/* The end of the bucket that the part `p` of all weight is within; 0 when there is none. */
double histogram_percentile(const struct histogram *h, double p);

/* ---- what can be reclaimed ---- */

struct predicted_pod {
	int64_t request[RP_NR_AMOUNTS];
	int64_t peak[RP_NR_AMOUNTS]; /* without margin */
	bool has_peak;
	bool leaves; /* it is being deleted */
	int64_t age_s;
};

struct reclaim_input {
	const struct predicted_pod *pods; /* of class prod, or none */
	uint32_t n_pods;
	int64_t classes
		[RP_NR_AMOUNTS]; /* sum of the peaks of system, prod and none, without margin */
	int64_t allocatable[RP_NR_AMOUNTS];
	int64_t margin_percent, cold_start_s;
};

struct reclaimable {
	int64_t by_pod[RP_NR_AMOUNTS], by_class[RP_NR_AMOUNTS], both[RP_NR_AMOUNTS];
	int64_t peak[RP_NR_AMOUNTS]; /* of what prod pods may need, by whichever is more */
};

void reclaim(const struct reclaim_input *in, struct reclaimable *ret);

#endif
