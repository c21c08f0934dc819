/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime asks, what it is answered, and what it is told without being asked. */
#ifndef PIPELINE_REQUEST_REQUEST_H
#define PIPELINE_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/cache/txn.h"
#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

struct pipeline;

/* ---- replies --------------------------------------------------------------------------------- */

/* What a container is to be told. */
struct update {
	/* to be sent; what is answered later finds it by its handle, or not any more */
	struct ctr *ctr;
	rp_ctr handle;
	uint32_t fields; /* DIFF_…: which of the values */
	bool loses; /* CPUs that it has */
	struct values values; /* as decided when the update was made */
};

struct reply {
	struct ctr *created; /* whose adjustment this is; NULL: none */
	uint32_t created_fields; /* DIFF_… of its decision */
	const struct extras *extras; /* its creation-only values; NULL: none */
	/* RP_TAKES_…: classes that controllers give it, and the runtime is not told of */
	uint32_t taken;
	bool data_dir; /* it gets the data directory mounted: source in data_path */
	char data_path[CACHE_PATH_MAX];
	/* Other containers (and for an UpdateContainer the container itself): those that lose CPUs
	 * first. */
	const struct update *updates;
	uint32_t n_updates;
};

/* ---- what the runtime asks (request.c, sync.c) ----------------------------------------------- */

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
const char *request_name(enum request r); /* "CreateContainer" */

/* What a request is about, as far as that decides whether it has to wait. */
struct request_about {
	enum request kind;
	uint64_t received_ns; /* clock_ns() */
	const struct pod_desc *pod; /* of REQ_RUN_POD and REQ_CREATE */
	const struct ctr_desc *ctr; /* of REQ_CREATE */
	bool begins, ends; /* a REQ_SYNCHRONIZE: its first part, its last one */
	bool goes_on; /* a REQ_RUN_POD that request_run_pod() has not done with */
};

/*
 * Each begins with request_begin and ends with reply_sent (reply_dropped when the reply could not
 * be delivered: its changes go to the unsolicited queue). An error comes with the sentence that the
 * runtime passes on to people; nothing has changed then. Pods and containers that are not known are
 * adopted from the request.
 */
void request_begin(struct pipeline *p, enum request r);
/* 1: it goes on, without an answer: request_pause(), request_hold(), request_begin(), and then
 * request_pod_granted(). */
int request_run_pod(struct pipeline *p, const struct pod_desc *pod, struct err *err);
int request_pod_granted(struct pipeline *p, const struct pod_desc *pod, struct err *err);
void request_pause(struct pipeline *p);
/* A pod's own resources were resized: its containers' resizes follow. */
void request_update_pod(struct pipeline *p, const struct pod_desc *desc,
			const struct res_desc *res);
void request_stop_pod(struct pipeline *p, const struct pod_desc *pod);
void request_remove_pod(struct pipeline *p, const struct pod_desc *pod);
int request_create(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   struct reply *ret, struct err *err);
void request_start(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* PostStart, PostCreate, PostUpdate: what they tell of the container's state. */
void request_note(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
int request_update(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		   const struct res_desc *res, struct reply *ret, struct err *err);
void request_stop(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr,
		  struct reply *ret);
void request_remove(struct pipeline *p, const struct pod_desc *pod, const struct ctr_desc *ctr);
/* `failed`: the request was answered with an error. */
void reply_sent(struct pipeline *p, struct reply *reply, bool failed);
void reply_dropped(struct pipeline *p, struct reply *reply);

/* For how long the runtime waits for an answer. */
uint64_t request_allowed_ms(const struct pipeline *p);

/* ---- unsolicited updates (updates.c) --------------------------------------------------------- */

#define UPDATE_BATCH_MAX 2048u

/* ---- the runtime's connection, as the front end tells it ------------------------------------- */

struct runtime_state {
	bool connected, synchronized;
	struct runtime_facts facts;
	char nri_version[64];
	uint64_t connected_ns, synchronized_ns, request_timeout_ms;
	uint64_t connects, disconnects;
	char last_error[ERR_TEXT_MAX]; /* why it is not connected */
	const char *socket; /* where it is looked for; NULL: where rp.conf says */
	const char *fallback; /* where else; "", NULL: nowhere */
	bool on_fallback; /* that is where it is … */
	char fallback_why[ERR_TEXT_MAX]; /* … and why */
};

struct pod;

/* A pod that a request is about and nobody has told of before. */
int request_adopt_pod(struct pipeline *p, const struct pod_desc *desc, struct pod **ret,
		      struct err *err);
/* Removes everything that the daemon has saved about a removed container, or about a pod and its
 * containers. */
void request_forget_ctr(struct pipeline *p, struct ctr *ctr);
void request_forget_pod(struct pipeline *p, struct pod *pod);

#endif
