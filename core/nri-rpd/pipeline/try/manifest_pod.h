/* SPDX-License-Identifier: Apache-2.0 */
/* Pod of a manifest: containers, with the values that the kubelet calculates for them. */
#pragma once

#include "core/nri-rpd/pipeline/try/manifest.h"

/* Reads a pod of a manifest into ret->pod, ret->fed and ret->ctrs. `number` makes the ids of the
 * pod and its containers unique. */
int manifest_read_pod(const struct manifest_source *source, uint32_t number,
		      struct manifest_pod *ret, struct err *err);
