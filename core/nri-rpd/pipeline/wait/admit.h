/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods before their containers. A policy that admits pods is asked when a pod's sandbox is about
 * to be made; the request waits before that, with the loop going on, until the cluster has told
 * what the pod asks for, or the time for it is over.
 */
#ifndef PIPELINE_REQUEST_ADMIT_H
#define PIPELINE_REQUEST_ADMIT_H

#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"

struct pipeline;

/*
 * Where the cluster is asked first and the runtime is believed in the end, longer than this is not
 * waited.
 */
#define ADMIT_AUTO_WAIT_MS 500u

struct admit_counts {
	uint64_t by_feed, by_runtime; /* pods that came, by who has said what they ask for */
	uint64_t waited; /* requests that had to wait for it */
	uint64_t late; /* those of them that went on without it */
};

/*
 * Until when the pod's RunPodSandbox has to wait, by clock_ms(); 0: it need not. `first`: it has
 * not waited yet.
 */
uint64_t admit_wait(struct pipeline *p, const struct pod_desc *desc, uint64_t received_ns,
		    bool first);
const struct admit_counts *pipeline_admit_counts(const struct pipeline *p);

/* What a pod's admission may take, from when it came. */
uint64_t admit_limit_ms(const struct pipeline *p);
/* 0: the pod may come. What that changes for others is told later. An error refuses it. */
int admit_pod(struct pipeline *p, struct pod *pod, struct err *err);
/* Somebody else than the policy refuses it after all: what it was granted is free. err has why, and
 * then the sentence for people. */
int admit_refused(struct pipeline *p, struct pod *pod, struct err *err);
/* The pod is gone, or will run nothing any more: what it was granted is free. */
void admit_end(struct pipeline *p, struct pod *pod);
/* The cluster may have told that pods have ended. Outside of requests. */
void admit_settle(struct pipeline *p);

#endif
