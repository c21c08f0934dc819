/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the node room changes: the Node of the cluster. */
#pragma once

#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/feed.h"

struct noderes; /* noderes.c */
struct evictions; /* evict.c */
struct machine_change; /* speedselect.c */

struct node_room {
	struct noderes *noderes;
	struct evictions *evictions;
	struct feed_counts feed;
	/* the agent's last report about the cluster; NULL: the agent has not reported */
	struct cluster_state *cluster;
	struct arena *arena; /* owns env.node */
	uint64_t published_ns;
	/* topology change whose Speed Select data is being read; NULL: none */
	struct machine_change *machine_change;
};
