/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's pod-resources API (v1.PodResourcesLister). Pods are asked for one by one, with Get,
 * where the kubelet has that method; else all are listed, and the list answers for those that are
 * asked about next, as a node's pods often come together.
 *
 * A list may name a pod that is about to be replaced by another of the same name. So what is known
 * of a pod is forgotten when the daemon says that it has ended, and what lists say of it after that
 * does not count until it has been asked for by itself.
 */
#ifndef NRI_RP_AGENT_PODRES_H
#define NRI_RP_AGENT_PODRES_H

#include "core/nri-rp-agent/kubelet.h"
#include "proto/agent.pb-c.h"

#define PODRES_WAITING_MAX 256u /* who wait for a list */
#define PODRES_KNOWN_MAX 16384u /* pods that something is remembered of */

struct podres;

/* error: as struct grpc_result has it, text a sentence about the kubelet. Valid during the
 * callback. */
struct podres_pod {
	int error;
	const char *text;
	const Agent__PodDevices *pod;
};
struct podres_list {
	int error;
	const char *text;
	Agent__ListResponse list; /* pods with devices */
};

int podres_new(struct loop *loop, const char *socket, struct podres **ret, struct err *err);
/* Who waits gets -ECANCELED. NULL is fine; returns NULL. Not from inside a callback. */
struct podres *podres_free(struct podres *p);
/* done is called exactly once, perhaps from inside. A pod without devices is one without
 * containers. */
void podres_get(struct podres *p, const char *ns, const char *name,
		void (*done)(const struct podres_pod *result, void *arg), void *arg);
void podres_list(struct podres *p, void (*done)(const struct podres_list *result, void *arg),
		 void *arg);
/* The pod has ended. */
void podres_forget(struct podres *p, const char *ns, const char *name);

#endif
