/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes calls from the kubelet to the runtime and answers back, as bytes: headers, messages,
 * trailers and resets. The proxy neither decodes nor stores messages. Flow control couples both
 * sides: a side cannot send more than the other has received.
 *
 * Two kinds of calls differ. An intercepted call is one message, stored until the interceptor
 * (intercept.h) forwards it, edited, or refuses it; its answer passes through and is also read
 * here. Calls for container events share one stream of the runtime (events.h).
 */
#pragma once

#include "core/nri-rp-bridge/events.h"
#include "core/nri-rp-bridge/intercept.h"
#include "core/nri-rp-bridge/trace.h"
#include "core/nri-rp-bridge/upstream.h"

struct proxy;

struct proxy_config {
	struct loop *loop;
	const char *listen; /* path of the bridge's socket */
	int inherited; /* > 0: a socket that systemd has opened; it listens already */
	struct upstream *runtime, *image; /* image: of the image service; may equal runtime */
	struct intercept *intercept;
	struct events *events; /* the runtime's event stream */
	const struct trace_rules *trace; /* must outlive the proxy */
};

int proxy_new(const struct proxy_config *config, struct proxy **ret, struct err *err);
/* Ends all calls on both sides. Call before upstream_free, and not from inside a callback. Accepts
 * NULL; returns NULL. */
struct proxy *proxy_free(struct proxy *p);
