/* SPDX-License-Identifier: Apache-2.0 */
/* One thing that the plugin is asked or told, when its turn comes. */
#ifndef NRI_RP_BRIDGE_ASK_H
#define NRI_RP_BRIDGE_ASK_H

#include "core/nri-rp-bridge/model.h"
#include "core/lib/nri-runtime/runtime.h"

#define QUESTION_MS 1500u /* the plugin has for an answer, at most */
#define REGISTRATION_MS 5000u
#define PLAYED_NRI "0.11" /* what every plugin that can be met understands */
#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX                                                                                  \
	(64u << 20) /* for one call: a message, what it is unpacked to, and what is made of it */

struct police;

/* Its memory is its owner's. */
struct question {
	struct nri_runtime *nri;
	struct police *police; /* whose it is, with the source cri */
	Nri__Event event;
	struct pod *pod;
	struct ctr *ctr; /* NULL: an event of the pod */
	Nri__LinuxResources *resources, *overhead; /* of an update; the latter of a pod's only */
	uint64_t deadline_ms; /* of whoever waits for it, UINT64_MAX: nobody */
	/* The answer, an error if the question could not be asked, or NULL: nobody listens to that.
	 * Under the lock, which is then to be given back. */
	void (*then)(struct question *q, const struct rpc_result *result);
	struct nri_turn turn;
	struct arena *arena; /* of the messages, until they are answered */
};

void question_ask(struct question *q);
void question_forget(struct question *q);

#endif
