/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the pods of the kubelet over its pods API (gRPC v1alpha1.Pods: Kubernetes 1.36 with the
 * feature gate PodsAPI, on by default since 1.37), with the events of watch.h:
 *
 *     RESTING ── the delay has passed ──▶ SYNCING ── all pods were sent ──▶ WATCHING
 *        ▲            no socket, no such method, an error,     │               │
 *        └──────────────── or no answer within SYNC_MS ────────┴───────────────┘
 *
 * WATCH_DENIED reports each failure with its cause. A stream is ended and opened again after
 * PODWATCH_STREAM_S, which detects a kubelet that hangs.
 */
#pragma once

#include "core/lib/util/loop.h"
#include "core/nri-rp-agent/watch.h"

#define PODWATCH_DEFAULT_SOCKET "/var/lib/kubelet/pods-api/pods-api.sock"
#define PODWATCH_STREAM_S 300u
#define PODWATCH_SYNC_MS 5000u

struct podwatch;

/* Creates a watch, which starts when the loop runs next. NULL: no memory. */
struct podwatch *podwatch_new(struct loop *loop, const char *socket, watch_fn fn, void *arg);
struct podwatch *podwatch_free(struct podwatch *w); /* accepts NULL; returns NULL */
/* Converts a pod of core/v1 to its JSON form, reduced to the fields that kube_pod() reads. NULL: it
 * is malformed, or there is no memory. */
json_t *podwatch_json(const uint8_t *data, size_t n);
