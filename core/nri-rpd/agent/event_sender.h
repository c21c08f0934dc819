/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the daemon that are shown in the cluster, at the pod or the node: refusals, degraded
 * states, configurations, evictions. At most one event per kind, pod and minute is sent, and in
 * total at most TELLER_BURST at a time and one every TELLER_REFILL_MS, because the kubelet retries
 * a refused pod without end. Events that are left out are counted, and the count is sent with the
 * next of their kind.
 */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/wire/rpc.h"

#define TELLER_QUIET_MS 200u /* time within which events are collected into one message */
#define TELLER_AGAIN_MS 60000u /* shortest time between two events of one kind about one pod */
#define TELLER_BURST 20u
#define TELLER_REFILL_MS 6000u

struct teller;

struct teller *teller_new(struct loop *loop, struct pipeline *p); /* NULL: no memory */
struct teller *teller_free(struct teller *t); /* accepts NULL; returns NULL */
/* Sets the connection to the agent; NULL: none. Remembered events of the time without agent are
 * sent then. */
void teller_set_agent(struct teller *t, struct rpc *rpc);
/* Checks for new events. */
void teller_changed(struct teller *t);
