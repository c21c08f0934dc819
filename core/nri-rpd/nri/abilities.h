/* SPDX-License-Identifier: Apache-2.0 */
/* Determines which optional NRI features a runtime supports. */
#pragma once

#include "core/nri-rpd/nri/internal.h"

/* Returns the abilities, RP_RUNTIME_…, of a runtime by the name and versions that it reports. */
uint32_t runtime_flags(const char *name, const char *version, const char *nri_version);

/* Returns true if the runtime has the event UpdatePodSandbox: NRI 0.10 and later. */
bool runtime_has_pod_updates(const struct runtime_facts *facts, const char *nri_version);
