/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of the node agent's latest reports about the cluster and the Node. */
#include "core/nri-rpd/pipeline/node/cluster.h"

#include <stdlib.h>

#include "core/nri-rpd/pipeline/reload/pushed.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/lib/util/clock.h"

int pipeline_cluster_told(struct pipeline *p, const struct cluster_state *state)
{
	if (!state) {
		free(p->node.cluster);
		p->node.cluster = NULL;
		return 0;
	}
	if (!p->node.cluster)
		p->node.cluster = malloc(sizeof *p->node.cluster);
	if (!p->node.cluster)
		return -ENOMEM;
	*p->node.cluster = *state;
	return 0;
}

void pipeline_cluster_published(struct pipeline *p)
{
	p->node.published_ns = clock_wall_ns();
}

void pipeline_node_take(struct pipeline *p, struct arena *arena, const struct node_object *node)
{
	arena_free(p->node.arena);
	p->node.arena = arena;
	p->env.node = node;
	noderes_node_changed(p);
}

DEFINE_GETTER(pipeline_node, const struct node_object *, p->env.node)
DEFINE_GETTER(pipeline_wishes, const struct node_wish *, p->env.wishes)

void pipeline_cluster_status(const struct pipeline *p, struct cluster_status *ret)
{
	*ret = (struct cluster_status){
		.on = conf_core(p->conf)->agent.cluster,
		.state = p->node.cluster,
		.source = pushed_source(p),
		.published_ns = p->node.published_ns,
	};
}
