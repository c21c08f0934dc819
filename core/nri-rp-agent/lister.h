/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the kubelet's pod-resources API (gRPC service v1.PodResourcesLister) with what nri-rpd has
 * allocated, for programs that read CPUs and memory there, as with a kubelet's static CPU manager.
 * Each call asks the daemon and, if configured, the kubelet for devices. If either fails, so does
 * the call.
 */
#pragma once

#include "core/nri-rp-agent/link.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define LISTER_CALLS_MAX 16u /* limit of calls under way; more are refused */

struct lister;

struct lister_config {
	struct loop *loop;
	struct link *link; /* must have ended its calls before lister_free() */
	const char *socket; /* path of the socket to listen at */
	/* socket of the kubelet's pod-resources API; NULL: do not list devices */
	const char *kubelet_socket;
};

int lister_new(const struct lister_config *config, struct lister **ret, struct err *err);
struct lister *lister_free(struct lister *l); /* accepts NULL; returns NULL */
