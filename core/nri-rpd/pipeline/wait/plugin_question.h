/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to resource plugins for one deferred request: hints and allocation for a pod,
 * allocation and pre-start call for a container. Answers arrive from the agent through the
 * pipeline_plugins_… functions.
 */
#pragma once

#include "core/nri-rpd/pipeline/wait/plugins.h"

/* Returns the arena for the answer to the question with that serial number; NULL: the question is
 * not outstanding. */
struct arena *pipeline_plugins_arena(struct pipeline *p, uint32_t serial);
/* Receives the agent's answers to that question; an outdated serial is ignored. Hints and grants
 * are in its arena, and are checked. `late`: the time was over. */
void pipeline_plugins_hinted(struct pipeline *p, uint32_t serial, struct plugin_hints *list,
			     uint32_t n);
void pipeline_plugins_allocated(struct pipeline *p, uint32_t serial, const Grants__Grants *grants);
void pipeline_plugins_ready(struct pipeline *p, uint32_t serial);
void pipeline_plugins_failed(struct pipeline *p, uint32_t serial, bool late, const char *why);

/* Drops the present question, because another request begins. */
void inquiry_reset(struct pipeline *p);

/* Returns the time (clock_ms) until which the request has to wait for plugins; 0: it need not wait.
 * Ask the plugins if necessary. */
uint64_t inquiry_wait_pod(struct pipeline *p, const struct request_about *about);
uint64_t inquiry_wait_ctr(struct pipeline *p, const struct request_about *about);

/* Requests plugins to allocate for a pod that the policy has admitted. 0: nothing to allocate. 1:
 * requests were sent, and inquiry_granted() returns the outcome later. An error refuses the pod.
 * `known`: the pod was known before the request. */
int inquiry_admitted(struct pipeline *p, struct pod *pod, bool known, struct err *err);
/* Stores the allocations after the wait. An error refuses the pod. *ret_known: as passed to
 * inquiry_admitted(). */
int inquiry_granted(struct pipeline *p, struct pod *pod, bool *ret_known, struct err *err);

/* Returns an error if a plugin's failure prevents the creation of the container. */
int inquiry_allows(struct pipeline *p, struct ctr *ctr, struct err *err);
struct inquiry *inquiry_new(void);
struct inquiry *inquiry_free(struct inquiry *q);
