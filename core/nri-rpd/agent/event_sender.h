/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the daemon that people should see in the cluster, at the pod or the node: refusals,
 * what is degraded, configurations, evictions. One of a kind a pod and a minute, and not more than
 * TELLER_BURST at a time and one every TELLER_REFILL_MS all in all: a pod that is refused is tried
 * again by its kubelet for ever. What is left out is counted, and told with the next of its kind.
 */
#ifndef AGENT_TELLER_H
#define AGENT_TELLER_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

#define TELLER_QUIET_MS 200u /* what comes together is one message */
#define TELLER_AGAIN_MS 60000u /* of one kind, about one pod */
#define TELLER_BURST 20u
#define TELLER_REFILL_MS 6000u

struct teller;

struct teller *teller_new(struct loop *loop, struct pipeline *p); /* NULL: no memory */
struct teller *teller_free(struct teller *t); /* NULL is fine; returns NULL */
/* The agent that is told from now on; NULL: none. What happened meanwhile is told then, as far as
 * it is remembered. */
void teller_set_agent(struct teller *t, struct rpc *rpc);
/* Call when there may be a new event. */
void teller_changed(struct teller *t);

#endif
