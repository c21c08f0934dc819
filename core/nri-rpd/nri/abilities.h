/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NRI_ABILITIES_H
#define NRI_ABILITIES_H

#include "core/nri-rpd/nri/internal.h"

/* abilities.c: RP_RUNTIME_… of what calls itself so */
uint32_t runtime_flags(const char *name, const char *version, const char *nri_version);

#endif
