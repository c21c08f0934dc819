/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes packed NRI messages (pods, containers, resources) into the descriptions that the pipeline
 * takes.
 */
#pragma once

#include "core/nri-rpd/nri/internal.h"

/* Decodes packed messages into descriptions whose text and lists are in the arena; -EBADMSG,
 * -ENOMEM. */
int decode_pod(struct arena *a, struct span s, enum decode_depth depth, struct pod_desc *ret);

/* Decodes a container. rest: arena for attributes that only a creation uses; may be the same. */
int decode_ctr(struct arena *a, struct arena *rest, struct span s, enum decode_depth depth,
	       struct ctr_desc *ret);
int decode_resources(struct arena *a, struct span s, struct res_desc *ret);
uint32_t decode_state(uint64_t state); /* Returns the state as RP_STATE_…. */
