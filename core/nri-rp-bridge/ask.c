/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/ask.h"
#include "core/lib/util/clock.h"

#include <string.h>

static void on_answer(const struct rpc_result *result, void *arg)
{
	struct question *q = arg;
	q->arena = arena_free(q->arena);
	q->then(q, result);
}

static int ask_now(struct question *q)
{
	struct arena *a = q->arena;
	uint64_t now = clock_ms(), left = 0;
	if (q->deadline_ms != UINT64_MAX)
		left = q->deadline_ms > now ? q->deadline_ms - now : 1;
	Nri__PodSandbox *pod = a ? pod_message(a, q->pod) : NULL;
	Nri__Container *ctr = a && q->ctr ? ctr_message(a, q->ctr) : NULL;
	if (!pod || (q->ctr && !ctr))
		return -ENOMEM;
	if (ctr && q->police && q->event == NRI__EVENT__CREATE_CONTAINER) {
		/* A container that exists already may have been started or stopped while the
		 * request waited for its turn. */
		ctr->state = NRI__CONTAINER_STATE__CONTAINER_UNKNOWN;
		ctr->pid = 0;
	}
	return nri_runtime_event(q->nri,
				 &(struct nri_about){q->event, pod, ctr, q->resources, q->overhead},
				 left, on_answer, q);
}

static void on_turn(void *arg)
{
	struct question *q = arg;
	q->arena = arena_new(ARENA_BLOCK, ARENA_MAX);
	int r = ask_now(q);
	if (!r)
		return;
	q->arena = arena_free(q->arena);
	q->then(q, r < 0 ? &(struct rpc_result){.error = r, .text = strerror(-r)} : NULL);
}

void question_ask(struct question *q)
{
	q->turn = (struct nri_turn){.fn = on_turn, .arg = q};
	nri_runtime_lock(q->nri, &q->turn);
}

void question_forget(struct question *q)
{
	nri_runtime_forget(q->nri, &q->turn);
}
