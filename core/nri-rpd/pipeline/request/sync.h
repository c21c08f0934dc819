/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronize: replaces the cache's containers by those that the runtime lists. The front end
 * passes the list object by object: all pods, then all containers, then sync_end().
 */
#pragma once

#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* Records that a synchronization which had failed has now succeeded: releases the settings of the
 * previous process. */
void sync_recovered(struct pipeline *p);

/* Process the runtime's list. sync_ctr(): `later` describes a new container's environment, mounts
 * and devices and stays valid until the end; NULL: none. sync_end() decides and fills the reply.
 * sync_abandon() replaces sync_end() after an incomplete list: no container is removed. */
void sync_begin(struct pipeline *p);
void sync_pod(struct pipeline *p, const struct pod_desc *pod);
void sync_ctr(struct pipeline *p, const struct ctr_desc *ctr, const struct ctr_desc *later);
void sync_end(struct pipeline *p, struct reply *ret);
void sync_abandon(struct pipeline *p);
