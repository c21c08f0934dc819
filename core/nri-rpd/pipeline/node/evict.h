/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evictions that modules ask for (nri-rp.host.evict/1): one after the other the agent is asked, and
 * asked again later where the cluster has refused. They live as long as the daemon, the pod and the
 * module that asked; a granted one is over when the pod is gone.
 */
#ifndef PIPELINE_EVICT_H
#define PIPELINE_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include <nri-rp/module.h>

struct instance;
struct pipeline;
struct pod;
struct evictions;

#define EVICT_AGAIN_MS 10000u
#define EVICT_AGAIN_MAX_MS 300000u

/* The way to the cluster. ask() returns 0: pipeline_evict_told() is called later, once, never from
 * inside. */
struct evict_source {
	int (*ask)(void *arg, const struct pod *pod, int64_t grace_s);
	void *arg;
};

enum evict_answer { EVICT_GRANTED, EVICT_REFUSED, EVICT_GONE, EVICT_DENIED, EVICT_UNANSWERED };

struct eviction {
	rp_pod pod;
	const struct instance *owner;
	int64_t grace_s;
	uint32_t state; /* RP_EVICTION_… */
	char *reason;
	char *why; /* what the cluster said; NULL: nothing */
	uint32_t asked; /* how often */
	uint64_t due_ms; /* to be asked for (again); monotonic; 0: not at all */
	struct eviction *prev, *next;
};

/* 0 or -ENOMEM. */
int evict_init(struct pipeline *p);
void evict_fini(struct pipeline *p);
/* NULL: there is nobody any more; what was asked and not answered is asked again then. */
void pipeline_evict_source(struct pipeline *p, const struct evict_source *source);
void pipeline_evict_told(struct pipeline *p, rp_pod pod, enum evict_answer answer,
			 const char *text);
/* For people: those of pods that are there. */
const struct eviction *pipeline_evictions(struct pipeline *p);
const char *eviction_state_name(uint32_t state); /* "refused" */

#endif
