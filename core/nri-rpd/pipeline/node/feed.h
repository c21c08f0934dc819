/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod feed: takes the agent's messages about the pods of this node into the cache (cache/feed.h),
 * and lets admission, empty pods and deferred requests follow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fed_pod;
struct pipeline;

struct feed_counts {
	bool current; /* the connected agent has reported all pods */
	uint64_t left_out; /* reported pods that were rejected */
	char origin[16]; /* "kubelet", "API server"; "": not known */
	char problem[256]; /* why the kubelet does not serve its pods; "": none */
};

struct feed_status {
	bool on; /* the feed is enabled: agent.cluster is set, or agent.podSource is the kubelet */
	const char *source; /* source of the requests of new pods: "feed" or "runtime" */
	unsigned n_pods;
	struct feed_counts counts;
};

/* Message of the agent; borrowed. */
struct fed_message {
	bool begin, complete; /* the message begins, or completes, a list of all pods */
	const struct fed_pod *pods;
	const char *const *gone; /* UIDs of removed pods */
	uint32_t n_pods, n_gone;
	uint32_t n_left_out; /* pods that could not be decoded */
	const char *source, *problem; /* as of feed_counts */
};
/* Applies a message. */
void pipeline_feed_take(struct pipeline *p, const struct fed_message *m);
/* Records that the agent has disconnected. Reported pods remain until another agent reports. */
void pipeline_feed_lost(struct pipeline *p);
void pipeline_feed_status(const struct pipeline *p, struct feed_status *ret);

/* Applies a new configuration to the feed. */
void feed_configured(struct pipeline *p);
