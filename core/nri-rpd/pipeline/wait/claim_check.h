/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that were added to a claim after it was prepared. The kubelet prepares a claim once for all
 * its pods on the node, so the claim does not name such a pod. When its container is created, the
 * agent reads the claim again.
 */
#pragma once

#include "core/nri-rpd/cache/claim.h"
#include "core/nri-rpd/pipeline/request/request.h"

/* Longest wait of a CreateContainer for the agent, from its arrival. */
#define CLAIM_CHECK_WAIT_MS 500u
#define CLAIM_QUERIES_MAX 2u /* largest number of queries for one container */
/* A claim that did not name a pod is not queried again for this pod meanwhile. */
#define CLAIM_QUERY_KEEP_MS 10000u
#define CLAIM_QUERIES_KEPT 32u /* number of latest queries that are remembered */

/* Connection to the agent. ask() returns 0: pipeline_claim_checked() is called later, once, never
 * from inside. */
struct claim_source {
	int (*ask)(void *arg, const struct ctr *claim);
	void *arg;
};

struct claim_check {
	struct claim_source source; /* ask NULL: no agent can be asked */
	uint64_t asked, answered; /* numbers of queries and of their answers */
	uint64_t needed; /* number of the deferred request's last query; 0: it has none */
	struct claim_query {
		uint64_t claim; /* ctr->seq */
		uint64_t number, until_ms;
		unsigned pod; /* hash of the pod's UID */
	} latest[CLAIM_QUERIES_KEPT];
};

/* Sets the connection; NULL: there is none. */
void pipeline_claim_source(struct pipeline *p, const struct claim_source *source);
/* Continues the deferred request. The agent has sent the pods of the claim by PrepareClaim before,
 * or could not read them. */
void pipeline_claim_checked(struct pipeline *p);
/* Returns the time (clock_ms) until which a CreateContainer has to wait; 0: it need not wait. Asks
 * the agent at the request's arrival (first), if a claim of the container does not name its pod. */
uint64_t claim_check_wait(struct pipeline *p, const struct request_about *a, bool first);
