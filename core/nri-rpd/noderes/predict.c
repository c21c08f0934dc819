/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WEIGHT_MIN 1e-4 /* smaller weights are treated as 0 */
#define HALF_LIVES_GONE 4096 /* number of half-lives after which every weight is 0 */
/* number of half-lives since the reference time after which the reference time is moved */
#define HALF_LIVES_MAX 100

/* ---- buckets --------------------------------------------------------------------------------- */

static bool is_linear(const struct buckets *b)
{
	return b->ratio <= 1;
}

int buckets_init(struct buckets *b, double max, double first, double ratio)
{
	if (!(max > 0) || !(first > 0) || !(ratio >= 1))
		return -EINVAL;
	double n = ratio > 1 ? ceil(log(max * (ratio - 1) / first + 1) / log(ratio))
			     : ceil(max / first);
	if (!(n + 1 <= HISTOGRAM_BUCKETS_MAX))
		return -EINVAL;
	*b = (struct buckets){first, ratio, (uint32_t)n + 1};
	return 0;
}

double bucket_start(const struct buckets *b, uint32_t i)
{
	return is_linear(b) ? b->first * i : b->first * (pow(b->ratio, i) - 1) / (b->ratio - 1);
}

uint32_t bucket_of(const struct buckets *b, double value)
{
	if (!(value >= b->first))
		return 0;
	if (value >= bucket_start(b, b->n - 1))
		return b->n - 1;
	double at = is_linear(b) ? value / b->first
				 : log(value * (b->ratio - 1) / b->first + 1) / log(b->ratio);
	uint32_t i = (uint32_t)at;
	/* Logarithms are not exact at the borders, so correct the index. */
	while (i + 1 < b->n && value >= bucket_start(b, i + 1))
		i++;
	while (i && value < bucket_start(b, i))
		i--;
	return i;
}

/* ---- histograms ------------------------------------------------------------------------------ */

int histogram_init(struct histogram *h, const struct buckets *b, double half_life_s)
{
	*h = (struct histogram){.buckets = *b,
				.half_life_s = half_life_s,
				.weights = calloc(b->n, sizeof *h->weights)};
	return h->weights ? 0 : -ENOMEM;
}

void histogram_fini(struct histogram *h)
{
	free(h->weights);
	h->weights = NULL;
}

/* Moves the reference time of the weights, so that they stay finite. */
static void predict_shift(struct histogram *h, double at_s)
{
	double halves = fmin(round((at_s - h->reference_s) / h->half_life_s), HALF_LIVES_GONE);
	h->total = 0;
	for (uint32_t i = 0; i < h->buckets.n; i++) {
		h->weights[i] = ldexp(h->weights[i], -(int)halves);
		h->total += h->weights[i];
	}
	h->reference_s = h->total > 0 ? h->reference_s + halves * h->half_life_s : at_s;
}

void histogram_add(struct histogram *h, double value, double weight, double at_s)
{
	if (h->half_life_s > 0) {
		if (h->total <= 0)
			h->reference_s = at_s;
		if ((at_s - h->reference_s) / h->half_life_s > HALF_LIVES_MAX)
			predict_shift(h, at_s);
		weight *= exp2((at_s - h->reference_s) / h->half_life_s);
	}
	h->weights[bucket_of(&h->buckets, value)] += weight;
	h->total += weight;
}

double histogram_percentile(const struct histogram *h, double p)
{
	double sum = 0;
	uint32_t first = 0, last = h->buckets.n, i;
	while (first < h->buckets.n && h->weights[first] < WEIGHT_MIN)
		first++;
	if (first == h->buckets.n)
		return 0;
	while (h->weights[last - 1] < WEIGHT_MIN)
		last--;
	for (i = first; i + 1 < last; i++) {
		sum += h->weights[i];
		if (sum >= p * h->total)
			break;
	}
	return bucket_start(&h->buckets, i + 1 < h->buckets.n ? i + 1 : h->buckets.n - 1);
}

/* ---- reclaimable resources ------------------------------------------------------------------- */

static int64_t with_margin(int64_t peak, int64_t percent)
{
	return (int64_t)((__int128)peak * (100 + percent) / 100);
}

static int64_t at_least_0(int64_t v)
{
	return v > 0 ? v : 0;
}

static int64_t predict_smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void reclaim(const struct reclaim_input *in, struct reclaimable *ret)
{
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++) {
		int64_t spare = 0, peaks = 0, requests = 0, cold = 0;
		for (uint32_t i = 0; i < in->n_pods; i++) {
			const struct predicted_pod *p = &in->pods[i];
			if (p->leaves)
				continue;
			requests += p->request[k];
			if (!p->has_peak || p->age_s <= in->cold_start_s) {
				cold += p->request[k];
				continue;
			}
			int64_t peak = with_margin(p->peak[k], in->margin_percent);
			spare += at_least_0(p->request[k] - peak);
			peaks += peak;
		}
		int64_t all = with_margin(in->classes[k], in->margin_percent);
		int64_t free = in->allocatable[k];
		ret->by_pod[k] = at_least_0(predict_smaller(spare, free - peaks));
		ret->by_class[k] = at_least_0(predict_smaller(requests - all, free - all));
		ret->both[k] = predict_smaller(ret->by_pod[k], ret->by_class[k]);
		ret->peak[k] = peaks + cold > all ? peaks + cold : all;
	}
}
