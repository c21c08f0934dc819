/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod-resources API as the kubelet has it (gRPC service v1.PodResourcesLister), of what nri-rpd
 * has given to containers: for programs that look there for CPUs and memory, where a kubelet with a
 * static CPU manager would know them. For each call the daemon is asked, and, if that is wanted,
 * the kubelet for devices; without an answer of both there is none.
 */
#ifndef NRI_RP_AGENT_LISTER_H
#define NRI_RP_AGENT_LISTER_H

#include "core/nri-rp-agent/link.h"
#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"

#define LISTER_CALLS_MAX 16u /* under way; more are refused */

struct lister;

struct lister_config {
	struct loop *loop;
	struct link *link; /* has ended its calls when lister_free() is called */
	const char *socket; /* to listen at */
	const char *kubelet_socket; /* NULL: there are no devices */
};

int lister_new(const struct lister_config *config, struct lister **ret, struct err *err);
struct lister *lister_free(struct lister *l); /* NULL is fine; returns NULL */

#endif
