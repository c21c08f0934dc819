/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of pods: what the kubelet gave their containers, for topology hints. Somebody else asks
 * (the source); here it is known which pod has been asked for, what came of it, and how long a
 * request may wait for that. Nothing of it is kept over a restart.
 *
 *	            RunPodSandbox, or the first CreateContainer
 *	(not asked) ───────────────────────────────────────────▶ asked ──answer──▶ known
 *	     ▲                                                     │                 │
 *	     └──── the pod ends ──── failed ◀──error, no agent─────┘                 │
 *	     └───────────────────────────────────────────────────────────────────────┘
 */
#ifndef PIPELINE_DEVICES_H
#define PIPELINE_DEVICES_H

#include "core/nri-rpd/pipeline/pipeline.h"

/* What a CreateContainer may wait for the devices of its pod, from when it came. */
#define DEVICES_CREATE_WAIT_MS 500u
/* What a Synchronize may wait for those of all pods, and never more than half of what the runtime
 * allows. */
#define DEVICES_SYNC_WAIT_MS 2000u
/* A pod that nothing could be learned of is asked for again by a container that comes so much
 * later. */
#define DEVICES_RETRY_MS 10000u

struct device_desc {
	const char *ctr, *resource;
	const uint32_t *nodes;
	uint32_t n_nodes; /* not 0 */
};

struct pod_devices_desc {
	const char *ns, *name;
	const struct device_desc *list;
	uint32_t n;
};

/* The way to the agent. ask() returns 0: the answer comes later, by the functions below, never from
 * inside; an error: no answer will come. */
struct device_source {
	int (*ask_pod)(void *arg, rp_pod pod, const char *ns, const char *name);
	int (*ask_all)(void *arg);
	void (*pod_ended)(void *arg, const char *ns, const char *name);
	void *arg;
};

/* ---- for the source ---- */

/* Containers get devices from now on (as soon as the source is reachable), or no longer.
 * -ENOMEM. */
int pipeline_devices_on(struct pipeline *p, const struct device_source *source);
void pipeline_devices_off(struct pipeline *p);
/* Whether it makes sense to ask; else why not. Nothing that was asked is answered then. */
void pipeline_devices_reachable(struct pipeline *p, bool yes, const char *why_not);
/* A pod that was asked for: its devices, or why they are not known. */
void pipeline_devices_tell(struct pipeline *p, rp_pod pod, const struct device_desc *list,
			   uint32_t n);
void pipeline_devices_fail(struct pipeline *p, rp_pod pod, const char *why);
/* The list of all pods (its order is changed), or why there is none. Pods that are not in it have
 * no devices. */
void pipeline_devices_listed(struct pipeline *p, struct pod_devices_desc *pods, uint32_t n);
void pipeline_devices_not_listed(struct pipeline *p, const char *why);

/* ---- for the front end ---- */

/*
 * Until when (clock_ms) a CreateContainer of that name in this pod that came at received_ns should
 * wait; 0: it need not, as one whose annotations say that it wants no such hints. Asks when nobody
 * has. A pod that is not known is taken in.
 */
uint64_t devices_wait(struct pipeline *p, const struct pod_desc *pod, const char *ctr,
		      uint64_t received_ns);
/* The same for a Synchronize. Asks for all pods, once for each `begin`. */
uint64_t devices_wait_all(struct pipeline *p, bool begin, uint64_t received_ns);
bool pipeline_devices_are_on(const struct pipeline *p);

/* ---- for status ---- */

struct devices_status {
	bool on, reachable;
	char why_not[ERR_TEXT_MAX]; /* "" */
	unsigned n_asked, n_known, n_failed; /* pods now */
	uint64_t asked, answered, failed, late; /* late: requests that went on without */
	char last_error[ERR_TEXT_MAX];
};
void pipeline_devices_status(const struct pipeline *p, struct devices_status *ret);

/* ---- within the pipeline ---- */

void devices_pod_came(struct pipeline *p, const struct pod *pod);
void devices_pod_ended(struct pipeline *p, const struct pod *pod);
/* All pods of a Synchronize are there. */
void devices_synchronizing(struct pipeline *p);
/* Explains, within the transaction that places it, what is known of a container's devices. */
void devices_explain(struct pipeline *p, struct ctr *ctr);

#endif
