/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H

#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/fallback.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/fields.h"
#include "core/lib/wire/mux.h"
#include "core/lib/wire/rpc.h"
#include "core/lib/wire/trunk.h"
#include "proto/nri.pb-c.h"

#define NRI_PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define NRI_RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"
#define NRI_VERSION "v0.12.2"
#define NRI_REQUEST_ARENA (256u << 20) /* what one decoded request may take */
#define NRI_SYNC_OBJECTS_MAX                                                                       \
	131072u /* pods and containers of one Synchronize, all parts together … */
#define NRI_SYNC_BYTES_MAX (512u << 20) /* … and their bytes */
#define NRI_WAITING_BYTES_MAX (256u << 20) /* of requests that wait */
#define ARENA_BLOCK (64u << 10)

/* RunPodSandbox, StopPodSandbox, RemovePodSandbox, CreateContainer, StartContainer,
 * UpdateContainer, StopContainer, RemoveContainer: every release since 0.2 knows them. */
#define NRI_EVENTS 0x6af
/* UpdatePodSandbox: runtimes that do not have the event refuse a plugin that subscribes to it */
#define NRI_EVENT_UPDATE_POD (1u << (NRI__EVENT__UPDATE_POD_SANDBOX - 1))

/* A Synchronize under way. */
struct sync_parts {
	struct buf bytes; /* its parts so far */
	uint32_t objects;
	struct arena *kept;
};

struct nri_event; /* handlers.c: a row of its table */

/* The request at hand, decoded. */
struct call {
	struct nri *nri;
	struct pipeline *pipeline;
	struct rpc_request *req;
	enum request kind;
	const struct nri_event *event; /* NULL: it is none of the table's */
	bool goes_on; /* a RunPodSandbox that the policy has admitted, and others are asked about */
	struct pod_desc pod;
	struct ctr_desc ctr;
	struct res_desc res;
};

struct nri {
	struct nri_config cfg;
	char *socket, *name;
	struct trunk *trunk;
	struct rpc *rpc; /* the end that we call and the one that we serve */
	struct fallback fallback;
	struct loop_timer *reconnect;
	struct loop_timer *renew_timer;
	bool renew; /* another socket, name or index: to connect anew when nothing is under way */
	struct backoff backoff;
	uint32_t jitter;
	struct backoff late; /* delays after answers to Synchronize that came too late */
	bool configured;
	bool close_soon; /* such an answer has just been sent */
	uint64_t connected_ms;
	struct arena *arena; /* of the request being handled */
	struct sync_parts sync;
	struct call call; /* the one that is being handled, or held */
	bool held; /* wait.c: the call waits, and so do … */
	struct waiting *waiting; /* … those that have come since, in their order */
	size_t waiting_bytes;
	bool hurries; /* nothing is held any more, as the connection is about to end */
};

/* How much of a pod or container is decoded. */
enum decode_depth {
	/* ids, names, state, pid and time of creation; all else is as if it were not there */
	DECODE_NAME,
	DECODE_FACTS, /* that, and what stays with the object: labels, annotations, resources … */
	DECODE_ALL, /* that, and what only a creation looks at: environment, mounts, devices */
};

#endif
