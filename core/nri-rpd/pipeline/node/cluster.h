/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the node agent about the cluster: its state for status, and the Node object. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct node_object;
struct node_wish;
struct pipeline;

#define CLUSTER_TEXT_MAX 256u /* largest name in bytes */
#define CLUSTER_PROBLEM_MAX 512u
#define CLUSTER_PROBLEMS_MAX 16u
#define CLUSTER_WRITTEN_MAX 8u
#define CLUSTER_WHAT_MAX 64u

struct cluster_state {
	char server[CLUSTER_TEXT_MAX], node[CLUSTER_TEXT_MAX];
	char ns[CLUSTER_TEXT_MAX]; /* namespace of the configurations */
	/* reason why the API server does not answer; "": it answers */
	char unreachable[CLUSTER_PROBLEM_MAX];
	/* functions that are not available, with the reason */
	char problems[CLUSTER_PROBLEMS_MAX][CLUSTER_PROBLEM_MAX];
	unsigned n_problems;
	struct {
		char what[CLUSTER_WHAT_MAX];
		/* time at which the API server last accepted the object, by the wall clock in
		 * seconds */
		int64_t time_s;
	} written[CLUSTER_WRITTEN_MAX];
	unsigned n_written;
	uint32_t events_waiting; /* events not yet accepted by the API server */
	uint64_t events_lost; /* lost events since the start of the agent */
};

struct cluster_status {
	bool on; /* agent.cluster is set */
	/* the agent's last report about the cluster; NULL: none */
	const struct cluster_state *state;
	const char *source; /* object that the cluster's configuration comes from; NULL: none */
	uint64_t published_ns; /* wall clock; 0: not since the start */
};

/* Stores a copy of the agent's report; NULL: there is no agent. 0 or -ENOMEM. */
int pipeline_cluster_told(struct pipeline *p, const struct cluster_state *state);
/* Records the time of a publication. */
void pipeline_cluster_published(struct pipeline *p);
/* Replaces the Node object. Takes ownership of the arena that holds it; NULL, NULL: the Node is not
 * known. */
void pipeline_node_take(struct pipeline *p, struct arena *arena, const struct node_object *node);
/* Returns the Node object of the latest report, valid until the next one; NULL: none. The agent may
 * have disconnected since. */
const struct node_object *pipeline_node(const struct pipeline *p);
/* Returns the changes of the Node that modules want (host/node.h); NULL: none. */
const struct node_wish *pipeline_wishes(const struct pipeline *p);
void pipeline_cluster_status(const struct pipeline *p, struct cluster_status *ret);
