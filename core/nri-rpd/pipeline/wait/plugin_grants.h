/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_WAIT_PLUGIN_GRANTS_H
#define PIPELINE_WAIT_PLUGIN_GRANTS_H

#include "core/nri-rpd/pipeline/wait/plugins.h"

/* Stages what plugins have given a new container. `comes`: the container is being created, not
 * adopted, and a grant that does not fit refuses it. */
int granted_stage(struct pipeline *p, struct ctr *ctr, bool comes, struct err *err);

/* The sets and limits of all containers, where the policy leaves them alone. */
int granted_stage_all(struct pipeline *p, struct err *err);

struct pod;

/*
 * Returns -EINVAL, with a reason that names the plugin, if the grant has CPUs that are not online
 * or are exclusive CPUs of another container, or memory nodes without memory. `ctr`: the container
 * that is to have it; NULL: all containers of the pod that it is for.
 */
int grant_check_fit(const struct pipeline *p, const struct pod *pod, const struct ctr *ctr,
		    const Grants__Grant *g, struct err *err);

#endif
