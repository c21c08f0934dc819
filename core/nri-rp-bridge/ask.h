/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one request or event to the plugin when its turn in the runtime's queue comes. Used by both
 * sources: intercepted calls and cgroups. */
#ifndef NRI_RP_BRIDGE_ASK_H
#define NRI_RP_BRIDGE_ASK_H

#include "core/nri-rp-bridge/model.h"
#include "core/lib/nri-runtime/runtime.h"

#define QUESTION_MS 1500u /* longest time that the plugin has to answer */
#define REGISTRATION_MS 5000u
/* the NRI release that the bridge emulates */
#define PLAYED_NRI "0.11"
#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX                                                                                  \
	(64u << 20) /* limit for one call: its message, the unpacked form and the answer */

struct police;

/* A request or event for the plugin. The caller owns the memory. */
struct question {
	struct nri_runtime *nri;
	struct police *police; /* owner, with the source cri; NULL with cgroups */
	Nri__Event event;
	struct pod *pod;
	struct ctr *ctr; /* NULL: the event is about the pod */
	/* resources of an update; overhead only for pods */
	Nri__LinuxResources *resources, *overhead;
	uint64_t deadline_ms; /* when the caller stops waiting; UINT64_MAX: never */
	/* Receives the answer, an error if the request could not be sent, or NULL if the plugin
	 * does not subscribe to the event. Called with the lock of `nri` held; the callee releases
	 * it. */
	void (*then)(struct question *q, const struct rpc_result *result);
	struct nri_turn turn;
	struct arena *arena; /* memory of the messages until the answer has been handled */
};

void question_ask(struct question *q);
void question_forget(struct question *q);

#endif
