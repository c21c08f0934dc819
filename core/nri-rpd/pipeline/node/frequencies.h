/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_NODE_FREQUENCIES_H
#define PIPELINE_NODE_FREQUENCIES_H

#include "core/nri-rpd/pipeline/node/speedselect.h"

/* In a child: what is known of the snapshot's frequencies; nothing, where memory does not suffice.
 * It is not freed. */
void frequencies_told(const struct topo *t, Trial__Report *report);

/* What a trial has read of the same snapshot need not be read again. What makes no sense is read,
 * all the same, and logged. */
void frequencies_took(struct topo *t, const Trial__Report *report);

#endif
