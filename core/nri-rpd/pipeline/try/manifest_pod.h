/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_TRY_MANIFEST_POD_H
#define PIPELINE_TRY_MANIFEST_POD_H

#include "core/nri-rpd/pipeline/try/manifest.h"

/* ret->pod and ret->ctrs; `number` makes ids of pods differ. */
int manifest_read_pod(const struct manifest_source *source, uint32_t number,
		      struct manifest_pod *ret, struct err *err);

#endif
