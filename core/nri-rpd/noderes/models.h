/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of past usage, one per pod, class of pods and the system. A model has a name and two
 * histograms, of CPU and of memory. Models outlive the process as a text:
 *
 *   nri-rp predictions 1
 *   model NAME BORN                             seconds since 1970
 *   cpu REFERENCE TOTAL BUCKET:WEIGHT ...
 *   memory REFERENCE TOTAL BUCKET:WEIGHT ...
 *
 * Weights are whole numbers; the largest of a histogram is 10000.
 */
#pragma once

#include "core/nri-rpd/noderes/predict.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/err.h"
#include "core/lib/util/hash.h"

#define MODELS_MAX 4096u
#define MODEL_NAME_MAX 128u
#define MODELS_TEXT_MAX (16u << 20)

struct model {
	char name[MODEL_NAME_MAX];
	struct histogram of[RP_NR_AMOUNTS];
	int64_t born_s, seen_s; /* times of the first and the last sample */
	UT_hash_handle hh;
};

/* All models; all zeros: none. */
struct models {
	struct model *list;
};

void models_fini(struct models *m);
/* Returns a model; NULL: none of that name. */
const struct model *models_find(const struct models *m, const char *name);
/* Adds a sample to a model, which is created on first use. -ENOMEM, -E2BIG (more than MODELS_MAX,
 * or the name is longer than MODEL_NAME_MAX): nothing has changed. */
int models_train(struct models *m, const char *name, const int64_t sample[RP_NR_AMOUNTS],
		 int64_t now_s);
/* Removes the models without a sample since `since_s`. */
void models_forget(struct models *m, int64_t since_s);
/* Returns the usage that the model predicts not to be exceeded. */
void model_peak(const struct model *m, int64_t ret[RP_NR_AMOUNTS]);

int models_write(const struct models *m, struct buf *out);
/* Reads models from a text. Their last sample is dated now, so that models without further samples
 * are forgotten in time. -EINVAL with the line: the models before that line were added. */
int models_read(struct models *m, const char *text, int64_t now_s, struct err *err);
