/* SPDX-License-Identifier: Apache-2.0 */
/* What the node agent says of the cluster: how it stands with it, for people, and the Node. */
#ifndef PIPELINE_CLUSTER_H
#define PIPELINE_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct node_object;
struct node_wish;
struct pipeline;

#define CLUSTER_TEXT_MAX 256u /* bytes of a name */
#define CLUSTER_PROBLEM_MAX 512u
#define CLUSTER_PROBLEMS_MAX 16u
#define CLUSTER_WRITTEN_MAX 8u
#define CLUSTER_WHAT_MAX 64u

struct cluster_state {
	char server[CLUSTER_TEXT_MAX], node[CLUSTER_TEXT_MAX];
	char ns[CLUSTER_TEXT_MAX]; /* where configurations are looked for */
	char unreachable[CLUSTER_PROBLEM_MAX]; /* why the API server does not answer; "": it does */
	char problems[CLUSTER_PROBLEMS_MAX][CLUSTER_PROBLEM_MAX]; /* what is off, and why */
	unsigned n_problems;
	struct {
		char what[CLUSTER_WHAT_MAX];
		int64_t time_s; /* when the API server took it last */
	} written[CLUSTER_WRITTEN_MAX];
	unsigned n_written;
	uint32_t events_waiting; /* that the API server has not taken yet */
	uint64_t events_lost; /* since the agent's start */
};

struct cluster_status {
	bool on; /* agent.cluster */
	const struct cluster_state *state; /* NULL: no agent has told */
	const char *source; /* of the configuration that the cluster has given; NULL: none */
	uint64_t published_ns; /* wall clock; 0: not since the start */
};

/* Copied; NULL: nobody is there who knows. 0 or -ENOMEM. */
int pipeline_cluster_told(struct pipeline *p, const struct cluster_state *state);
void pipeline_cluster_published(struct pipeline *p);
/* The Node has changed. Takes the arena over, which the Node is in; NULL, NULL: nothing is known
 * any more. */
void pipeline_node_take(struct pipeline *p, struct arena *arena, const struct node_object *node);
/* The Node as it was told last, by an agent that may be gone since; valid until the next one. NULL:
 * none was. */
const struct node_object *pipeline_node(const struct pipeline *p);
/* What modules want the Node to have (host/node.h); NULL: nothing. */
const struct node_wish *pipeline_wishes(const struct pipeline *p);
void pipeline_cluster_status(const struct pipeline *p, struct cluster_status *ret);

#endif
