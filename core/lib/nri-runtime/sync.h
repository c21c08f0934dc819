/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronize: all pods and containers, in parts when there is too much for one message. */
#ifndef NRI_RUNTIME_SYNC_H
#define NRI_RUNTIME_SYNC_H

#include "core/lib/nri-runtime/runtime.h"

#define NRI_PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"

struct nri_sync;

struct nri_sync_config {
	struct rpc *rpc;
	struct nri_existing all;
	bool whole; /* in one message, however large: the release knows no parts */
	uint64_t timeout_ms; /* of each part */
	/* NULL: it failed, and why. */
	void (*done)(const Nri__SynchronizeResponse *m, const char *why, void *arg);
	void *arg;
};

/* The lists live as long as it does. NULL: out of memory. */
struct nri_sync *nri_sync_new(const struct nri_sync_config *config);
/* Allowed in done. NULL is fine; returns NULL. */
struct nri_sync *nri_sync_free(struct nri_sync *s);
/* After 0 done is called once. */
int nri_sync_begin(struct nri_sync *s);

#endif
