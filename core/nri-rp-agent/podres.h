/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of the kubelet's pod-resources API (v1.PodResourcesLister). Uses Get for a single pod if
 * the kubelet has that method. Otherwise lists all pods, and the list also answers the next
 * requests, because pods of a node often start together.
 *
 * A list may contain a pod that is about to be replaced by another of the same name. Therefore a
 * pod that the daemon reports as ended is forgotten, and lists about it are ignored until the pod
 * is requested again.
 */
#pragma once

#include "core/nri-rp-agent/kubelet.h"
#include "proto/agent.pb-c.h"

#define PODRES_WAITING_MAX 256u /* largest number of requests that wait for a list */
#define PODRES_KNOWN_MAX 16384u /* limit of remembered pods */

struct podres;
struct kube;

/* Result about one pod, valid during the callback. error: as in struct grpc_result; text: a
 * sentence about the kubelet. */
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
/* Ends waiting requests with -ECANCELED. Accepts NULL; returns NULL. Not from inside a callback. */
struct podres *podres_free(struct podres *p);
/* Requests a pod or all pods. done is called exactly once, possibly before the function returns. A
 * pod without devices has no containers. */
void podres_get(struct podres *p, const char *ns, const char *name,
		void (*done)(const struct podres_pod *result, void *arg), void *arg);
void podres_list(struct podres *p, void (*done)(const struct podres_list *result, void *arg),
		 void *arg);
/* Switches devices of claims on or off: their places come from the ResourceSlices of the node. k
 * NULL: there is no cluster, and no place is known. Switch them off before kube_free. */
void podres_set_claims(struct podres *p, bool wanted, struct kube *k, const char *node);
/* Call when a pod has ended. */
void podres_forget(struct podres *p, const char *ns, const char *name);
