/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations of decisions (nri-rp.host.explain/1) for code of the core. */
#pragma once

#include "core/nri-rpd/host/instance.h"

/* Adds a line to the explanation of what the running transaction decides for a container. */
void host_note(struct cache *c, struct ctr *ctr, const char *text);
