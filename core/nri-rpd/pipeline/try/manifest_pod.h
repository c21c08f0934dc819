/* SPDX-License-Identifier: Apache-2.0 */
/* Pod of a manifest: containers, with the values that the kubelet calculates for them. */
#ifndef PIPELINE_TRY_MANIFEST_POD_H
#define PIPELINE_TRY_MANIFEST_POD_H

#include "core/nri-rpd/pipeline/try/manifest.h"

/* Fills ret->pod, ret->fed and ret->ctrs. `number` distinguishes the pods' ids. */
int manifest_read_pod(const struct manifest_source *source, uint32_t number,
		      struct manifest_pod *ret, struct err *err);

#endif
