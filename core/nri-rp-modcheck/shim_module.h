/* SPDX-License-Identifier: Apache-2.0 */
/* Covers of the module's functions. */
#pragma once

#include "core/nri-rp-modcheck/shim.h"

/* Returns the module's own pointer for the one that the host has. */
struct rp_instance *shim_real(struct rp_instance *inst);
/* Creates an instance whose services are covered. */
int32_t shim_create(struct shim *s, const struct rp_host *host, struct rp_instance **ret);
void shim_destroy(struct rp_instance *inst);
const void *shim_service(struct rp_instance *inst, const char *id);
