/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfer of CPU frequencies from an attempt's child to the daemon, which saves reading the files
 * twice.
 */
#pragma once

#include "core/nri-rpd/pipeline/node/speedselect.h"

/* Writes the snapshot's frequencies, as far as they are known, into a report. Runs in the child,
 * where nothing is freed. Writes none if memory is short. */
void frequencies_told(const struct topo *t, Trial__Report *report);

/* Takes the frequencies that an attempt has read of the same snapshot. Rejects invalid values with
 * a log message; they are read from the files when needed. */
void frequencies_took(struct topo *t, const Trial__Report *report);
