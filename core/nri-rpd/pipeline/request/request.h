/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the runtime and their replies: one function a request, called by the front end
 * between request_begin() and reply_sent(). Also describes the runtime's connection, which the
 * front end fills in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

struct pipeline;

/* ---- replies --------------------------------------------------------------------------------- */

/* Update of a container. */
struct update {
	/* the container to update; `handle` shows later whether it still exists */
	struct ctr *ctr;
	rp_ctr handle;
	uint32_t fields; /* DIFF_…: which of the values */
	bool loses; /* the container loses CPUs that it has */
	struct values values; /* values at the time when the update was made */
};

struct reply {
	struct ctr *created; /* container that the reply adjusts; NULL: none */
	uint32_t created_fields; /* DIFF_…: adjusted values of its decision */
	const struct extras *extras; /* values that can be set at creation only; NULL: none */
	/* RP_TAKES_…: classes that controllers apply themselves and that are not sent to the
	 * runtime */
	uint32_t taken;
	bool data_dir; /* the data directory is mounted; its source is data_path */
	/* Updates of other containers (an UpdateContainer: also of the container itself),
	 * containers that lose CPUs first. */
	const struct update *updates;
	uint32_t n_updates;
	char data_path[CACHE_PATH_MAX]; /* last, so that clearing a reply can leave it out */
};

/* Clears a reply, all but the long path, which is valid with data_dir only. */
static inline void reply_clear(struct reply *reply)
{
	memset(reply, 0, offsetof(struct reply, data_path));
}

/* ---- requests (request.c, sync.c) ------------------------------------------------------------ */

enum request {
	REQ_CONFIGURE,
	REQ_SYNCHRONIZE,
	REQ_RUN_POD,
	REQ_UPDATE_POD,
	REQ_STOP_POD,
	REQ_REMOVE_POD,
	REQ_CREATE,
	REQ_POST_CREATE,
	REQ_START,
	REQ_POST_START,
	REQ_UPDATE,
	REQ_POST_UPDATE,
	REQ_STOP,
	REQ_REMOVE,
	REQ_OTHER,
	N_REQUESTS
};
const char *request_name(enum request r); /* for example "CreateContainer" */

/* Properties of a request that decide whether it has to wait. */
struct request_about {
	enum request kind;
	uint64_t received_ns; /* arrival of the request, by clock_ns() */
	const struct pod_desc *pod; /* the pod of REQ_RUN_POD and REQ_CREATE; else NULL */
	const struct ctr_desc *ctr; /* the container of REQ_CREATE; else NULL */
	bool begins, ends; /* first and last part of a REQ_SYNCHRONIZE */
	bool goes_on; /* the request is a REQ_RUN_POD for which request_run_pod() returned 1 */
};

/*
 * Begins and ends a request. It begins with request_begin() and ends with reply_sent(), or with
 * reply_dropped() if the reply could not be delivered: its updates are queued then. After an error
 * nothing has changed, and err holds a sentence that the runtime reports to users. Unknown pods and
 * containers are adopted from the request.
 */
void request_begin(struct pipeline *p, enum request r);
/* Admits a pod. Returns 1 if resource plugins have to be queried first: call request_pause(),
 * request_hold(), request_begin() and then request_pod_granted(). */
int request_run_pod(struct pipeline *p, const struct pod_desc *pod, struct err *err);
int request_pod_granted(struct pipeline *p, const struct pod_desc *pod, struct err *err);
void request_pause(struct pipeline *p);
/* Resizes the resources that the pod itself has. Resizes of its containers are separate requests,
 * before or after. A refused resize changes nothing. Updates go into the queue. */
int request_update_pod(struct pipeline *p, const struct pod_desc *desc, const struct res_desc *res,
		       struct err *err);
void request_stop_pod(struct pipeline *p, const struct pod_desc *pod);
void request_remove_pod(struct pipeline *p, const struct pod_desc *pod);
int request_create(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   struct reply *ret, struct err *err);
void request_start(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* Updates a container's facts from PostStart, PostCreate or PostUpdate. */
void request_note(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
int request_update(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   const struct res_desc *res, struct reply *ret, struct err *err);
void request_stop(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		  struct reply *ret);
void request_remove(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* Ends a request. failed: the answer was an error. */
void reply_sent(struct pipeline *p, struct reply *reply, bool failed);
void reply_dropped(struct pipeline *p, struct reply *reply);

/* Returns the runtime's timeout for a request. */
uint64_t request_allowed_ms(const struct pipeline *p);

/* ---- unsolicited updates (updates.c) --------------------------------------------------------- */

#define UPDATE_BATCH_MAX 2048u

/* ---- the runtime's connection, filled in by the front end ------------------------------------ */

struct runtime_state {
	bool connected, synchronized;
	struct runtime_facts facts;
	char nri_version[64];
	uint64_t connected_ns, synchronized_ns, request_timeout_ms;
	uint64_t connects, disconnects;
	char last_error[ERR_TEXT_MAX]; /* reason why there is no connection */
	const char *socket; /* the runtime's socket; NULL: as in rp.conf */
	const char *fallback; /* second socket; "" or NULL: none */
	bool on_fallback; /* the daemon is connected to the second socket */
	char fallback_why[ERR_TEXT_MAX]; /* reason for using the second socket */
};

struct pod;

/* Adopts a pod that is mentioned in a request and unknown to the cache. */
int request_adopt_pod(struct pipeline *p, const struct pod_desc *desc, struct pod **ret,
		      struct err *err);
/* Removes everything that the daemon has saved about a removed container, or about a pod and its
 * containers. */
void request_forget_ctr(struct pipeline *p, struct ctr *ctr);
void request_forget_pod(struct pipeline *p, struct pod *pod);
