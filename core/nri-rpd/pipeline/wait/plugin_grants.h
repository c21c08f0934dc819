/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants of resource plugins in decisions and replies: checks that they fit the node, and stages
 * them.
 */
#pragma once

#include "core/nri-rpd/pipeline/wait/plugins.h"

/* Stages the grants of plugins for a new container. `comes`: the container is being created, so a
 * grant that does not fit refuses it; false: it is adopted. */
int granted_stage(struct pipeline *p, struct ctr *ctr, bool comes, struct err *err);

/* Stages the CPUs, memory nodes and limits that plugins have granted to all containers, where the
 * policy has not decided them. */
int granted_stage_all(struct pipeline *p, void *arg, struct err *err);

struct pod;

/*
 * Returns -EINVAL, with a reason that names the plugin, if the grant has CPUs that are not online
 * or are exclusive CPUs of another container, or memory nodes without memory. `ctr`: the container
 * that gets the grant; NULL: all containers of the pod that the grant is for.
 */
int grant_check_fit(const struct pipeline *p, const struct pod *pod, const struct ctr *ctr,
		    const Grants__Grant *g, struct err *err);
