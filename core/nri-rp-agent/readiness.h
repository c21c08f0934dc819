/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the condition NRIResourcePolicyReady of the Node, and the taint nri-rp.io/not-ready if the
 * daemon's configuration requests it: whether nri-rpd places the containers of this node.
 *
 * The daemon reports its state with what it publishes. The report holds while the daemon is
 * connected and answers; a short absence, such as a restart, changes nothing. The taint is also
 * removed if another program set it, such as a kubelet with --register-with-taints.
 */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

#define READINESS_CONDITION "NRIResourcePolicyReady"
#define READINESS_TAINT "nri-rp.io/not-ready"
#define READINESS_GRACE_MS 3000u /* time for which an absence of the daemon is not reported */
/* Message while containers are placed; the second part follows unless both numbers are 0. nri-rpctl
 * reads the numbers. */
#define READINESS_PLACING "nri-rpd places the containers of this node"
#define READINESS_COUNTS "; degraded: %u, refused: %u"
#define READINESS_COUNT_MS 30000u /* interval of writes for which only the counts differ */
#define READINESS_ASK_MS 3000u /* interval of requests by which a hung daemon is detected */

struct readiness;

struct readiness *readiness_new(struct kube *k, struct link *l,
				const char *node); /* NULL: no memory */
struct readiness *readiness_free(struct readiness *r); /* accepts NULL; returns NULL */
/* Handles a report of the daemon, and the loss of the connection to the daemon. */
void readiness_take(struct readiness *r, const Agent__PublishedRequest *m);
void readiness_lost(struct readiness *r);
/* Call with each version of the Node, borrowed. */
void readiness_seen(struct readiness *r, json_t *node);
/* Reports that the agent stops. Calls done when this is written or cannot be. */
void readiness_retire(struct readiness *r, void (*done)(void *arg), void *arg);
