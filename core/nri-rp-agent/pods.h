/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the pods that are bound to this node to the daemon: all of them when it connects, later
 * those whose fields for the daemon have changed. The status that a kubelet writes every few
 * seconds is not among these fields.
 *
 * The pods are those of the kubelet (podwatch.h) or of the API server, as the daemon's
 * configuration says (agent.podSource). With `auto` the API server is watched while the kubelet
 * does not serve its pods.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

struct pod_feed;

struct pod_feed_config {
	struct loop *loop;
	struct link *link;
	struct kube *kube; /* source of pods; NULL: there is no API server */
	const char *node; /* name of the Node, required with kube */
	/* socket of the kubelet's list of pods; NULL: only the API server is used */
	const char *kubelet_socket;
	/* send all fields: nri-rp-bridge has no other source for the fields that a runtime knows */
	bool whole;
};

/* Creates a feed, which watches nothing before the daemon has connected. NULL: no memory. */
struct pod_feed *pod_feed_new(const struct pod_feed_config *config);
struct pod_feed *pod_feed_free(struct pod_feed *f); /* accepts NULL; returns NULL */
/* Call when the daemon has connected, or connected again. source: "auto", "kubelet" or "apiserver";
 * "": a peer without this key, for which the API server is watched. */
void pod_feed_daemon_connected(struct pod_feed *f, const char *source);
