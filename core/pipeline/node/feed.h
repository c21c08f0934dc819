/* SPDX-License-Identifier: Apache-2.0 */
/* The pod feed (core/cache/feed.h): what the agent tells of the pods of this node, and what becomes of that. */
#ifndef PIPELINE_FEED_H
#define PIPELINE_FEED_H

#include <stdbool.h>
#include <stdint.h>

struct fed_pod;
struct pipeline;
struct pod;

struct feed_counts {
	bool current; /* the agent that is connected has told all pods */
	uint64_t left_out; /* pods that were told and not taken */
	uint64_t by_feed, by_runtime; /* pods that came, by who has said what they ask for */
};

struct feed_status {
	bool on; /* agent.cluster */
	const char *source; /* who says what a pod asks for that comes now: "feed", "runtime" */
	unsigned n_pods;
	struct feed_counts counts;
};

/* A list begins, or is complete; between these, and after them, pods and what is gone. */
void pipeline_feed_begin(struct pipeline *p);
void pipeline_feed_complete(struct pipeline *p);
/* As feed_put(). */
int pipeline_feed_pod(struct pipeline *p, const struct fed_pod *pod);
void pipeline_feed_left_out(struct pipeline *p, uint32_t n);
void pipeline_feed_gone(struct pipeline *p, const char *uid);
/* Nobody tells any more. What was told stays until somebody else tells. */
void pipeline_feed_lost(struct pipeline *p);
void pipeline_feed_status(const struct pipeline *p, struct feed_status *ret);

void feed_configured(struct pipeline *p);
/* A pod has come. */
void feed_count(struct pipeline *p, const struct pod *pod);

#endif
