/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rpd/agent/state.h"
#include "core/nri-rpd/agent/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "proto/agent.pb-c.h"

#define STATE_ARENA (1u << 20)
#define TIME_MAX_S INT64_C(253402300799) /* last second with a year of four digits */

/* Copies a text for messages: one line, cut to the size. */
static void state_copy(char *to, size_t size, const char *from)
{
	size_t n = utf8_cut(from, size - 1);
	(void)snprintf(to, size, "%.*s", (int)n, from);
	str_one_line(to);
}

static void state_fill(struct cluster_state *s, const Agent__SetStateRequest *m)
{
	s->events_waiting = m->events_waiting;
	s->events_lost = m->events_lost;
	state_copy(s->server, sizeof s->server, m->server);
	state_copy(s->node, sizeof s->node, m->node);
	state_copy(s->ns, sizeof s->ns, m->namespace_);
	state_copy(s->unreachable, sizeof s->unreachable, m->unreachable);
	for (size_t i = 0; i < m->n_problems && s->n_problems < CLUSTER_PROBLEMS_MAX; i++)
		state_copy(s->problems[s->n_problems++], CLUSTER_PROBLEM_MAX, m->problems[i]);
	for (size_t i = 0; i < m->n_written && s->n_written < CLUSTER_WRITTEN_MAX; i++) {
		if (m->written[i]->time_s < 0 || m->written[i]->time_s > TIME_MAX_S)
			continue;
		state_copy(s->written[s->n_written].what, CLUSTER_WHAT_MAX, m->written[i]->what);
		s->written[s->n_written++].time_s = m->written[i]->time_s;
	}
}

void agent_serve_state(struct pipeline *p, struct rpc_request *req)
{
	_arena_ struct arena *a = arena_new(4096, STATE_ARENA);
	_free_ struct cluster_state *s = calloc(1, sizeof *s);
	const Agent__SetStateRequest *m = RPC_MESSAGE(a, agent__set_state_request, req);
	if (!m || !s) {
		(void)rpc_reply_error(req, TTRPC_INVALID_ARGUMENT, "cannot decode the request");
		return;
	}
	state_fill(s, m);
	agent_answer(req, pipeline_cluster_told(p, s), "", NULL);
}
