/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of this folder. */
#pragma once

#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/fallback.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/fields.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/nri_protocol.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define NRI_VERSION "v0.12.2"
#define NRI_REQUEST_ARENA (256u << 20) /* largest memory for one decoded request, in bytes */
#define NRI_SYNC_OBJECTS_MAX                                                                       \
	131072u /* largest number of pods and containers of one Synchronize, all parts together */
/* largest size of all pods and containers of one Synchronize, in bytes */
#define NRI_SYNC_BYTES_MAX (512u << 20)
#define NRI_WAITING_BYTES_MAX (256u << 20) /* largest size of all waiting requests, in bytes */
#define ARENA_BLOCK (64u << 10)

/* Events that every release of NRI since 0.2 supports: RunPodSandbox, StopPodSandbox,
 * RemovePodSandbox, CreateContainer, StartContainer, UpdateContainer, StopContainer,
 * RemoveContainer. */
#define NRI_EVENTS 0x6af
/* UpdatePodSandbox: a runtime without this event refuses a plugin that subscribes to it. */
#define NRI_EVENT_UPDATE_POD (1u << (NRI__EVENT__UPDATE_POD_SANDBOX - 1))

/* Parts of an incomplete Synchronize. */
struct sync_parts {
	struct buf bytes; /* received parts of the list */
	uint32_t objects;
	struct arena *kept;
};

struct nri_event; /* row of the table of events in handlers.c */

/* The current request, decoded. */
struct call {
	struct nri *nri;
	struct pipeline *pipeline;
	struct rpc_request *req;
	enum request kind;
	/* entry in the table of events; NULL: the event is not in the table */
	const struct nri_event *event;
	/* RunPodSandbox that the policy has admitted and external plugins have to agree to */
	bool goes_on;
	struct pod_desc pod;
	struct ctr_desc ctr;
	struct res_desc res;
};

struct nri {
	struct nri_config cfg;
	char *socket, *name;
	struct trunk *trunk;
	struct rpc *rpc; /* calls to the runtime and calls of the runtime */
	struct fallback fallback;
	struct loop_timer *reconnect;
	struct loop_timer *renew_timer;
	bool renew; /* socket, name or index has changed: reconnect when no work is pending */
	struct backoff backoff;
	uint32_t jitter;
	struct backoff late; /* delays after late answers to Synchronize */
	/* UpdatePodSandbox was subscribed to, and the runtime has not synchronized since */
	bool extended;
	/* the next connection subscribes only to events that every release has, because the last
	 * one ended after Configure */
	bool only_old;
	const char *close_why; /* reason to reconnect after the present answer; NULL: none */
	uint64_t connected_ms;
	struct arena *arena; /* memory of the current request */
	struct sync_parts sync;
	struct call call; /* request that is being handled or deferred */
	bool held; /* the call is deferred (wait.c) */
	/* requests that arrived after the deferred call, in order of arrival */
	struct waiting *waiting;
	size_t waiting_bytes;
	bool hurries; /* the connection is about to end: requests are no longer deferred */
};

/* Amount of a pod or container that is decoded. */
enum decode_depth {
	/* ids, names, state, pid and time of creation; all other fields are treated as absent */
	DECODE_NAME,
	/* decode also the attributes that are stored: labels, annotations, resources */
	DECODE_FACTS,
	DECODE_ALL, /* decode also what only a creation uses: environment, mounts, devices */
};
