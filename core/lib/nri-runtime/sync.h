/* SPDX-License-Identifier: Apache-2.0 */
/* Sends Synchronize: all pods and containers, in parts if they exceed one message. */
#pragma once

#include "core/lib/nri-runtime/runtime.h"

struct nri_sync;

struct nri_sync_config {
	struct rpc *rpc;
	struct nri_existing all;
	bool whole; /* send a single message of any size, for releases without parts */
	uint64_t timeout_ms; /* time limit of one part */
	/* Called at the end; m NULL: it failed, for the reason `why`. */
	void (*done)(const Nri__SynchronizeResponse *m, const char *why, void *arg);
	void *arg;
};

/* Creates a synchronization. The lists have to live as long as it. NULL: out of memory. */
struct nri_sync *nri_sync_new(const struct nri_sync_config *config);
/* Frees the synchronization, also from within done(). Accepts NULL; returns NULL. */
struct nri_sync *nri_sync_free(struct nri_sync *s);
/* Sends the first part. After 0 done is called once. */
int nri_sync_begin(struct nri_sync *s);
