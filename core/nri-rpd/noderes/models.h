/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the past of each pod, of a class of pods, of the system: a model of that name,
 * which is two histograms, of CPU and of memory. Models outlive the process as a text:
 *
 *	nri-rp predictions 1
 *	model NAME BORN                  seconds since 1970
 *	cpu REFERENCE TOTAL BUCKET:WEIGHT ...
 *	memory REFERENCE TOTAL BUCKET:WEIGHT ...
 *
 * where weights are whole numbers, the largest of a histogram 10000.
 */
#ifndef NODERES_MODELS_H
#define NODERES_MODELS_H

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
	int64_t born_s, seen_s; /* the first sample's time, the last one's */
	UT_hash_handle hh;
};

/* All zeros: none. */
struct models {
	struct model *list;
};

void models_fini(struct models *m);
const struct model *models_find(const struct models *m, const char *name); /* NULL: no such one */
/* Makes the model that there is not yet. -ENOMEM, -E2BIG: more than MODELS_MAX, or its name is
 * longer than MODEL_NAME_MAX; nothing has changed then. */
int models_train(struct models *m, const char *name, const int64_t sample[RP_NR_AMOUNTS],
		 int64_t now_s);
/* Forgets the models that have had no sample since. */
void models_forget(struct models *m, int64_t since_s);
/* What it is not expected to need more than. */
void model_peak(const struct model *m, int64_t ret[RP_NR_AMOUNTS]);

int models_write(const struct models *m, struct buf *out);
/* Each as if its last sample were of now: models that nothing comes of are forgotten in time.
 * -EINVAL with the line: those before it are there. */
int models_read(struct models *m, const char *text, int64_t now_s, struct err *err);

#endif
