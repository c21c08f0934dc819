/* SPDX-License-Identifier: Apache-2.0 */
/* A file of what was learned: whatever is read can be trained, asked and written again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/noderes/models.h"

static void use(struct models *m)
{
	const int64_t sample[RP_NR_AMOUNTS] = {100, 1 << 20};
	int64_t peak[RP_NR_AMOUNTS];
	struct model *one, *next;
	HASH_ITER (hh, m->list, one, next) {
		(void)models_train(m, one->name, sample, 1000000);
		model_peak(one, peak);
		assert(peak[RP_NR_CPU] >= 0 && peak[RP_NR_MEMORY] >= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct models m = {0}, again = {0};
	struct buf out = {0};
	char *text = malloc(size + 1);
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	(void)models_read(&m, text, 1000000, NULL);
	use(&m);
	assert(models_write(&m, &out) == 0);
	assert(models_read(&again, buf_text(&out), 1000000, NULL) == 0);
	assert(HASH_COUNT(m.list) == HASH_COUNT(again.list));
	buf_fini(&out);
	models_fini(&m);
	models_fini(&again);
	free(text);
	return 0;
}
