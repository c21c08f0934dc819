/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/noderes/models.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "nri-rp predictions 1"
#define WEIGHT_WRITTEN_MAX 10000.0 /* weight of the largest bucket in the text */
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define GIB (1024.0 * 1024 * 1024)

/* Parameters of the histograms. CPU in cores, memory in bytes. */
static const struct amount {
	const char *name;
	double max, first, half_life_s, percentile, units; /* units per unit of the histogram */
} amounts[RP_NR_AMOUNTS] = {
	[RP_NR_CPU] = {"cpu", 1024, 0.025, 12 * 3600, 0.95, 1000},
	[RP_NR_MEMORY] = {"memory", 2048 * GIB, 5.0 * 1024 * 1024, 24 * 3600, 0.98, 1},
};

#define BUCKET_RATIO 1.05

static void model_free(struct model *m)
{
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		histogram_fini(&m->of[k]);
	free(m);
}

static struct model *model_new(const char *name, int64_t now_s)
{
	struct model *m = calloc(1, sizeof *m);
	struct buckets b;
	int r = m ? 0 : -ENOMEM;
	for (uint32_t k = 0; !r && k < RP_NR_AMOUNTS; k++) {
		r = buckets_init(&b, amounts[k].max, amounts[k].first, BUCKET_RATIO);
		if (!r)
			r = histogram_init(&m->of[k], &b, amounts[k].half_life_s);
	}
	if (r && m) {
		model_free(m);
		return NULL;
	}
	if (m) {
		(void)snprintf(m->name, sizeof m->name, "%s", name);
		m->born_s = m->seen_s = now_s;
	}
	return m;
}

static void models_do_forget(struct models *m, struct model *one)
{
	HASH_DEL(m->list, one);
	model_free(one);
}

void models_fini(struct models *m)
{
	struct model *one, *next;
	HASH_ITER (hh, m->list, one, next)
		models_do_forget(m, one);
}

const struct model *models_find(const struct models *m, const char *name)
{
	struct model *one;
	HASH_FIND_STR(m->list, name, one);
	return one;
}

static int models_add(struct models *m, const char *name, int64_t now_s, struct model **ret)
{
	size_t len = strlen(name);
	if (!len || len >= MODEL_NAME_MAX || HASH_COUNT(m->list) >= MODELS_MAX)
		return -E2BIG;
	if (strspn(name, NAME_BYTES) != len)
		return -EINVAL;
	*ret = model_new(name, now_s);
	if (!*ret)
		return -ENOMEM;
	HASH_ADD_STR(m->list, name, *ret);
	if ((*ret)->hh.tbl)
		return 0;
	model_free(*ret);
	return -ENOMEM;
}

int models_train(struct models *m, const char *name, const int64_t sample[RP_NR_AMOUNTS],
		 int64_t now_s)
{
	struct model *one;
	HASH_FIND_STR(m->list, name, one);
	int r = one ? 0 : models_add(m, name, now_s, &one);
	if (r)
		return r;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		histogram_add(&one->of[k], (double)sample[k] / amounts[k].units, 1, (double)now_s);
	one->seen_s = now_s;
	return 0;
}

void models_forget(struct models *m, int64_t since_s)
{
	struct model *one, *next;
	HASH_ITER (hh, m->list, one, next)
		if (one->seen_s < since_s)
			models_do_forget(m, one);
}

void model_peak(const struct model *m, int64_t ret[RP_NR_AMOUNTS])
{
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		ret[k] = (int64_t)(histogram_percentile(&m->of[k], amounts[k].percentile) *
				   amounts[k].units);
}

/* ---- writing --------------------------------------------------------------------------------- */

static double models_largest(const struct histogram *h)
{
	double most = 0;
	for (uint32_t i = 0; i < h->buckets.n; i++)
		most = fmax(most, h->weights[i]);
	return most;
}

static int write_histogram(const char *name, const struct histogram *h, struct buf *out)
{
	double most = models_largest(h);
	int r = buf_printf(out, "%s %.0f %.17g", name, h->reference_s, h->total);
	for (uint32_t i = 0; !r && most > 0 && i < h->buckets.n; i++) {
		long weight = lround(h->weights[i] / most * WEIGHT_WRITTEN_MAX);
		if (weight > 0)
			r = buf_printf(out, " %u:%ld", i, weight);
	}
	return r ? r : buf_add_str(out, "\n");
}

int models_write(const struct models *m, struct buf *out)
{
	int r = buf_add_str(out, HEAD "\n");
	for (const struct model *one = m->list; !r && one; one = one->hh.next) {
		r = buf_printf(out, "model %s %lld\n", one->name, (long long)one->born_s);
		for (uint32_t k = 0; !r && k < RP_NR_AMOUNTS; k++)
			r = write_histogram(amounts[k].name, &one->of[k], out);
	}
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	const char *at; /* position in the text */
	unsigned line;
};

/* Skips the word and the blank behind it; false: another word is next. */
static bool skip_word(struct reading *r, const char *word)
{
	size_t len = strlen(word);
	if (strncmp(r->at, word, len) != 0 || r->at[len] != ' ')
		return false;
	r->at += len + 1;
	return true;
}

static bool end_line(struct reading *r)
{
	if (*r->at != '\n')
		return false;
	r->at++;
	r->line++;
	return true;
}

static bool read_number(struct reading *r, double max, double *ret)
{
	char *end;
	if (*r->at < '0' || *r->at > '9')
		return false;
	*ret = strtod(r->at, &end);
	r->at = end;
	return *ret >= 0 && *ret <= max;
}

static bool read_weight(struct reading *r, struct histogram *h)
{
	double bucket, weight;
	r->at++; /* skip the blank */
	if (!read_number(r, h->buckets.n - 1, &bucket) || *r->at++ != ':' ||
	    !read_number(r, WEIGHT_WRITTEN_MAX, &weight) || bucket != floor(bucket))
		return false;
	h->weights[(uint32_t)bucket] = weight;
	return true;
}

/* Reads a histogram. Its reference time is limited to `now_s`: if the clock was ahead when it was
 * written, its weights must not exceed those of later samples. */
static bool read_histogram(struct reading *r, const char *name, int64_t now_s, struct histogram *h)
{
	double reference, total, sum = 0;
	if (!skip_word(r, name) || !read_number(r, 1e18, &reference) || *r->at++ != ' ' ||
	    !read_number(r, 1e300, &total))
		return false;
	while (*r->at == ' ')
		if (!read_weight(r, h))
			return false;
	for (uint32_t i = 0; i < h->buckets.n; i++)
		sum += h->weights[i];
	h->reference_s = fmin(reference, (double)now_s);
	h->total = sum > 0 ? total : 0;
	for (uint32_t i = 0; sum > 0 && i < h->buckets.n; i++)
		h->weights[i] *= total / sum;
	return end_line(r);
}

static bool read_model(struct models *m, struct reading *r, int64_t now_s)
{
	char name[MODEL_NAME_MAX];
	struct model *one;
	double born;
	size_t len;
	if (!skip_word(r, "model"))
		return false;
	len = strcspn(r->at, " \n");
	if (len >= sizeof name || r->at[len] != ' ')
		return false;
	memcpy(name, r->at, len);
	name[len] = '\0';
	r->at += len + 1;
	if (!read_number(r, 1e18, &born) || !end_line(r) || models_find(m, name) ||
	    models_add(m, name, now_s, &one))
		return false;
	one->born_s = born < (double)now_s ? (int64_t)born : now_s;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		if (!read_histogram(r, amounts[k].name, now_s, &one->of[k])) {
			models_do_forget(m, one);
			return false;
		}
	return true;
}

int models_read(struct models *m, const char *text, int64_t now_s, struct err *err)
{
	struct reading r = {.at = text, .line = 1};
	bool good = strncmp(r.at, HEAD "\n", strlen(HEAD "\n")) == 0;
	if (!good)
		return err_set(err, -EINVAL, "line 1: it does not begin with \"" HEAD "\"");
	r.at += strlen(HEAD);
	good = end_line(&r);
	while (good && *r.at)
		good = read_model(m, &r, now_s);
	return good ? 0 : err_set(err, -EINVAL, "line %u: invalid", r.line);
}
