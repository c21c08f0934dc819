/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that pass from the kubelet to the runtime and back as bytes: headers, messages, trailers,
 * resets, in both directions. Neither side's messages are decoded, kept or waited for: what one
 * side has not taken, the other cannot send more of.
 *
 * Calls that the police wants are the exception: each is one message, which is kept until the
 * police forwards it, edited, or refuses it. Their answers pass as all others do, and the police
 * reads along. And calls for events share one stream of the runtime.
 */
#ifndef NRI_RP_BRIDGE_PROXY_H
#define NRI_RP_BRIDGE_PROXY_H

#include "core/nri-rp-bridge/events.h"
#include "core/nri-rp-bridge/intercept.h"
#include "core/nri-rp-bridge/trace.h"
#include "core/nri-rp-bridge/upstream.h"

struct proxy;

struct proxy_config {
	struct loop *loop;
	const char *listen; /* socket of ours */
	int inherited; /* > 0: it listens already */
	struct upstream *runtime, *image; /* image: of the image service; may be the same */
	struct police *police;
	struct events *events; /* of the runtime */
	const struct trace_rules *trace; /* lives as long as the proxy */
};

int proxy_new(const struct proxy_config *config, struct proxy **ret, struct err *err);
/* Calls end on both sides. Before the upstreams. Not from inside a callback. NULL is fine; returns
 * NULL. */
struct proxy *proxy_free(struct proxy *p);

#endif
