/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what modules report about the node, for the control socket and the cluster. */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/pb.h"
#include "proto/agent.pb-c.h"

/* Adds the zones of the policy and of calculators to a message. Modules may report the attributes
 * of a zone in any order; the message groups them. Errors: those of pipeline_zones(). */
int zones_collect(struct pipeline *p, struct arena *a, Agent__PublishedRequest *ret,
		  struct err *err);
/* Adds the extended resources, and the patterns of the names that the policy owns. */
int zones_collect_extended(struct pipeline *p, struct arena *a, Agent__PublishedRequest *ret,
			   struct err *err);
