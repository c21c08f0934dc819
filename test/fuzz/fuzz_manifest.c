/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a pod's manifest: refused with a reason, or containers as a runtime would describe
 * them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/try/manifest.h"
#include "core/lib/util/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY (UINT64_C(64) << 30)
#define ARENA_BLOCK 4096u

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void look_at_pod(const struct manifest_pod *pod)
{
	must(pod->n > 0 && pod->n <= 2 * MANIFEST_CTRS_MAX);
	must(pod->replica >= 1 && pod->replica <= pod->n_replicas);
	must(pod->pod.id && pod->pod.name && *pod->pod.name && pod->pod.ns && pod->owner);
	for (uint32_t i = 0; i < pod->n; i++) {
		const struct ctr_desc *d = &pod->ctrs[i].desc;
		must(d->id && d->name && *d->name);
		must(d->res.shares == RP_NOT_SET || d->res.shares > 0);
		must(d->res.quota == RP_NOT_SET || d->res.quota > 0);
		must(d->oom_score_adj >= -1000 && d->oom_score_adj <= 1000);
		for (uint32_t k = 0; k < i; k++)
			must(strcmp(pod->ctrs[k].desc.id, d->id) != 0);
	}
}

static void look_at(const struct manifest *m)
{
	must(m->n > 0 && m->n <= MANIFEST_PODS_MAX && m->n_ctrs <= MANIFEST_ALL_CTRS_MAX);
	must(m->n_notes <= MANIFEST_NOTES_MAX);
	for (uint32_t i = 0; i < m->n; i++) {
		look_at_pod(&m->pods[i]);
		must(i == 0 || strcmp(m->pods[i].pod.id, m->pods[i - 1].pod.id) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct manifest m = {0};
	_arena_ struct arena *a = arena_new(ARENA_BLOCK, MANIFEST_ARENA_MAX);
	_free_ char *text = malloc(size + 1);
	if (!a || !text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (manifest_read(a, "pod.yaml", text, MEMORY, &m, &err))
		must(err.code && *err.text);
	else
		look_at(&m);
	return 0;
}
