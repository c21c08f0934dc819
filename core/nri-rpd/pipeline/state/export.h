/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data files of containers (cache.exportData): the policy's data about a container's placement,
 * mounted into the container.
 */
#pragma once

#include "core/nri-rpd/pipeline/request/decide.h"

/* Creates the data directory of a new container and adds its mount to the reply. */
void export_created(struct pipeline *p, const struct ctr *ctr, struct reply *reply);

/* Writes the files of containers whose data the transaction changed, except `skip`. */
void export_touched(struct pipeline *p, const struct ctr *skip);
/* Removes the data directory of a removed container. */
void export_removed(struct pipeline *p, const struct ctr *ctr);

/* Removes directories of containers that do not exist, and writes the files of all others. */
void export_clean(struct pipeline *p);
