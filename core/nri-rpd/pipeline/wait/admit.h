/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of pods before their containers. A policy that admits pods is asked before a pod's
 * sandbox is created. The request is deferred, while the event loop runs, until the cluster has
 * reported the pod's requested resources or the time limit is reached.
 */
#pragma once

#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

/* Longest wait where the cluster is preferred and the runtime's sums are acceptable. */
#define ADMIT_AUTO_WAIT_MS 500u

struct admit_counts {
	uint64_t by_feed, by_runtime; /* pods by the source of their requested resources */
	uint64_t waited; /* number of deferred requests */
	uint64_t late; /* deferred requests that continued without the cluster's report */
};

/*
 * Returns the time (clock_ms) until which the pod's RunPodSandbox has to wait; 0: it need not wait.
 * `first`: the request has not waited yet.
 */
uint64_t admit_wait(struct pipeline *p, const struct pod_desc *desc, uint64_t received_ns,
		    bool first);
const struct admit_counts *pipeline_admit_counts(const struct pipeline *p);

/* Returns true if the requests of pods are at present those of the cluster, not of the runtime. */
bool admit_by_feed(const struct pipeline *p);
/* Returns the longest time for a pod's admission, from the arrival of its request. */
uint64_t admit_limit_ms(const struct pipeline *p);
/* Admits a pod; an error refuses it. Updates of other containers are queued. */
int admit_pod(struct pipeline *p, struct pod *pod, struct err *err);
/* Refuses a pod for another reason than the policy's, and releases what it was granted. On entry
 * err holds the reason, afterwards the sentence for users. */
int admit_refused(struct pipeline *p, struct pod *pod, struct err *err);
/* Releases what was granted to a pod that has been removed or will run nothing more. */
void admit_end(struct pipeline *p, struct pod *pod);
/* Releases what was granted to a pod, or to all pods (uid NULL), that the cluster reports as ended.
 * Called outside of requests. */
void admit_settle(struct pipeline *p, const char *uid);
