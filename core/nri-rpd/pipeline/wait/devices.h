/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of pods: device nodes that the kubelet assigned to containers, for topology hints. A
 * source (the node agent) asks the kubelet. This room records which pods were asked for, the
 * answers, and how long a request may wait. All is lost at a restart.
 *
 *   (none) ──RunPodSandbox, first CreateContainer──▶ asked ──answer──▶ known
 *                                                    │   ▲
 *                                     error, no agent│   │later CreateContainer
 *                                                    ▼   │
 *                                                    failed
 *
 * The end of a pod removes its record in every state.
 */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"

/* Longest wait of a CreateContainer for the devices of its pod, from its arrival. */
#define DEVICES_CREATE_WAIT_MS 500u
/* Longest wait of a Synchronize for the devices of all pods; at most half of the runtime's
 * timeout. */
#define DEVICES_SYNC_WAIT_MS 2000u
/* Delay after a failure before a further container of the pod makes another query. */
#define DEVICES_RETRY_MS 10000u

/* Devices of one resource of the kubelet, or a device of a claim. */
struct device_desc {
	const char *ctr;
	const char *resource; /* "vendor.example/gpu"; of a claim "claim:DRIVER/DEVICE" */
	const uint32_t *nodes;
	uint32_t n_nodes; /* 0 for a device of a claim whose node was not published */
	const char *claim; /* claim that has the device; NULL: the device belongs to no claim */
	const char *pci; /* PCI address or root of a device without nodes; "": unknown */
	const char *unknown; /* cause if nodes and pci are unknown */
};

struct pod_devices_desc {
	const char *ns, *name;
	const struct device_desc *list;
	uint32_t n;
};

/* Connection to the node agent. A function returns 0 if its answer follows through the functions
 * below, never from inside the call; an error means that there will be no answer. */
struct device_source {
	int (*ask_pod)(void *arg, rp_pod pod, const char *ns, const char *name);
	int (*ask_all)(void *arg);
	void (*pod_ended)(void *arg, const char *ns, const char *name);
	void *arg;
	bool claims; /* answers have the devices of claims */
};

/* ---- for the source -------------------------------------------------------------------------- */

/* Enables hints from devices as soon as the source is reachable. -ENOMEM. */
int pipeline_devices_on(struct pipeline *p, const struct device_source *source);
/* Disables hints from devices, and drops all records. */
void pipeline_devices_off(struct pipeline *p);
/* Sets whether the source can be queried; `why_not`: the reason if not. Outstanding queries then
 * fail. */
void pipeline_devices_reachable(struct pipeline *p, bool yes, const char *why_not);
/* Answers the query about a pod with its devices, or with the reason of a failure. */
void pipeline_devices_tell(struct pipeline *p, rp_pod pod, const struct device_desc *list,
			   uint32_t n);
void pipeline_devices_fail(struct pipeline *p, rp_pod pod, const char *why);
/* Answers the query about all pods with a list (which is sorted in place), or with the reason of a
 * failure. Pods that are not listed have no devices. Takes ownership of the arena, which holds the
 * list. */
void pipeline_devices_listed(struct pipeline *p, struct arena *arena, struct pod_devices_desc *pods,
			     uint32_t n);
void pipeline_devices_not_listed(struct pipeline *p, const char *why);

/* ---- for the front end ----------------------------------------------------------------------- */

/*
 * Returns the time (clock_ms) until which a CreateContainer of container `ctr` that arrived at
 * received_ns should wait; 0: it need not wait. A container whose annotations disable such hints
 * never waits. Makes a query if there is none, and adopts an unknown pod.
 */
uint64_t devices_wait(struct pipeline *p, const struct pod_desc *pod, const char *ctr,
		      uint64_t received_ns);
/* Returns the same for a Synchronize. Queries all pods once for each `begin`. */
uint64_t devices_wait_all(struct pipeline *p, bool begin, uint64_t received_ns);
bool pipeline_devices_are_on(const struct pipeline *p);

/* ---- for status ------------------------------------------------------------------------------ */

struct devices_status {
	bool on, reachable;
	char why_not[ERR_TEXT_MAX]; /* why the kubelet's list is not available; "": it is */
	unsigned n_asked, n_known, n_failed; /* numbers of present pods, by state */
	/* late: requests that continued without an answer */
	uint64_t asked, answered, failed, late;
	char last_error[ERR_TEXT_MAX];
	bool claims; /* devices of claims are requested */
	/* present claims, a claim of several pods counted for each; their devices by container */
	unsigned n_claims, n_located, n_unlocated;
	char unlocated[ERR_TEXT_MAX]; /* why a device has no known place; "": all have one */
	char unclaimed[ERR_TEXT_MAX]; /* last container with CDI devices but no claim; "": none */
};
void pipeline_devices_status(const struct pipeline *p, struct devices_status *ret);

/* ---- within the pipeline --------------------------------------------------------------------- */

/* Makes the query of a pod whose sandbox is being created, if its annotations want hints. */
void devices_pod_came(struct pipeline *p, const struct pod *pod);
/* Removes the query of a pod that has ended. */
void devices_pod_ended(struct pipeline *p, const struct pod *pod);
/* Applies the list of all pods, after the pods of a Synchronize are in the cache. */
void devices_synchronizing(struct pipeline *p);
/* Returns the next claim of nri-rp that the kubelet reports for the container, and advances the
 * index *at, which is 0 at first. NULL: there are no more. */
struct ctr *devices_claim(struct pipeline *p, const struct ctr *ctr, uint32_t *at);
/* Notes the container's devices, as far as they are known, in its trail. Called in the transaction
 * that places it. */
void devices_explain(struct pipeline *p, struct ctr *ctr);
