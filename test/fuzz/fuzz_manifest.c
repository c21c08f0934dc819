/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a pod's manifest: refused with a reason, or containers as a runtime would describe them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/pipeline/manifest.h"
#include "core/util/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY (UINT64_C(64) << 30)
#define ARENA_BLOCK 4096u
#define ARENA_MAX (4u << 20)

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void look_at(const struct manifest *m)
{
	must(m->n > 0 && m->n <= MANIFEST_CTRS_MAX);
	must(m->pod.id && m->pod.name && *m->pod.name && m->pod.ns && *m->pod.ns);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct ctr_desc *d = &m->ctrs[i].desc;
		must(d->id && d->name && *d->name);
		must(d->res.shares == RP_NOT_SET || d->res.shares > 0);
		must(d->res.quota == RP_NOT_SET || d->res.quota > 0);
		must(d->oom_score_adj >= -1000 && d->oom_score_adj <= 1000);
		for (uint32_t k = 0; k < i; k++)
			must(strcmp(m->ctrs[k].desc.id, d->id) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct manifest m = {0};
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, ARENA_MAX);
	_free_ char *text = malloc(size + 1);
	if (!a || !text || size > MANIFEST_TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (manifest_read(a, text, MEMORY, &m, &err))
		must(err.code && *err.text);
	else
		look_at(&m);
	return 0;
}
