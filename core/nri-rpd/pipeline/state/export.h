/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_STATE_EXPORT_H
#define PIPELINE_STATE_EXPORT_H

#include "core/nri-rpd/pipeline/request/decide.h"

/* Makes the data directory of a new container part of the reply. */
void export_created(struct pipeline *p, const struct ctr *ctr, struct reply *reply);

/* Writes the files of those whose data the transaction changed. */
void export_touched(struct pipeline *p, const struct ctr *skip);
void export_removed(struct pipeline *p, const struct ctr *ctr);

/* Removes what is left of containers that are gone, and writes what the others have. */
void export_clean(struct pipeline *p);

#endif
