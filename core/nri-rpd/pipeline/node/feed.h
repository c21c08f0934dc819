/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod feed (cache/feed.h): what the agent tells of the pods of this node, and what becomes
 * of that.
 */
#ifndef PIPELINE_FEED_H
#define PIPELINE_FEED_H

#include <stdbool.h>
#include <stdint.h>

struct fed_pod;
struct pipeline;

struct feed_counts {
	bool current; /* the agent that is connected has told all pods */
	uint64_t left_out; /* pods that were told and not taken */
};

struct feed_status {
	bool on; /* agent.cluster */
	const char *source; /* who says what a pod asks for that comes now: "feed", "runtime" */
	unsigned n_pods;
	struct feed_counts counts;
};

/* What an agent tells at a time; borrowed. */
struct fed_message {
	bool begin, complete; /* a list of all pods begins, or is complete */
	const struct fed_pod *pods;
	const char *const *gone; /* UIDs */
	uint32_t n_pods, n_gone;
	uint32_t n_left_out; /* pods that made no sense */
};
void pipeline_feed_take(struct pipeline *p, const struct fed_message *m);
/* Nobody tells any more. What was told stays until somebody else tells. */
void pipeline_feed_lost(struct pipeline *p);
void pipeline_feed_status(const struct pipeline *p, struct feed_status *ret);

void feed_configured(struct pipeline *p);

#endif
