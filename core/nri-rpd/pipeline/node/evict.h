/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evictions that modules request (nri-rp.host.evict/1). The agent is asked for one at a time, and
 * again later after a refusal of the cluster. An eviction ends with the daemon, the pod or the
 * requesting module; a granted one ends when the pod is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/module.h>

struct instance;
struct pipeline;
struct pod;
struct evictions;

/* Delay after the first refusal, doubled after each further one, and the largest delay. */
#define EVICT_AGAIN_MS 10000u
#define EVICT_AGAIN_MAX_MS 300000u

/* Connection to the cluster. ask() returns 0: pipeline_evict_told() is called later, once, never
 * from inside. */
struct evict_source {
	int (*ask)(void *arg, const struct pod *pod, int64_t grace_s);
	void *arg;
};

enum evict_answer { EVICT_GRANTED, EVICT_REFUSED, EVICT_GONE, EVICT_DENIED, EVICT_UNANSWERED };

struct eviction {
	rp_pod pod;
	const struct instance *owner;
	int64_t grace_s;
	uint32_t state; /* state of the request, RP_EVICTION_… */
	char *reason;
	char *why; /* the cluster's reason; NULL: none */
	uint32_t asked; /* number of requests to the agent */
	uint64_t due_ms; /* time of the next request, monotonic; 0: none follows */
	struct eviction *prev, *next;
};

/* Creates an empty list and provides the service to modules. 0 or -ENOMEM. */
int evict_init(struct pipeline *p);
void evict_fini(struct pipeline *p);
/* Sets the connection; NULL: the agent has disconnected. An unanswered request is repeated over the
 * next connection. */
void pipeline_evict_source(struct pipeline *p, const struct evict_source *source);
/* Receives the agent's answer about a pod. */
void pipeline_evict_told(struct pipeline *p, rp_pod pod, enum evict_answer answer,
			 const char *text);
/* Returns the list for status, without pods that were removed. */
const struct eviction *pipeline_evictions(struct pipeline *p);
const char *eviction_state_name(uint32_t state); /* for example "refused" */
