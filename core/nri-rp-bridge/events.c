/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/events.h"

#include <stdlib.h>

#include <utlist.h>

struct events {
	struct loop *loop;
	struct upstream *runtime;
	struct grpc_call *call; /* NULL: no listener has registered since the last stream ended */
	struct events_listener *listeners;
};

static void on_message(const uint8_t *payload, size_t n, void *arg)
{
	struct events *e = arg;
	struct events_listener *l, *next;
	DL_FOREACH_SAFE(e->listeners, l, next)
	l->event(payload, n, l->arg);
}

static void on_done(const struct grpc_result *result, void *arg)
{
	struct events *e = arg;
	struct events_listener *l;
	e->call = NULL;
	while ((l = e->listeners)) {
		events_leave(e, l);
		l->ended(result, l->arg);
	}
}

static int open_call(struct events *e, struct err *err)
{
	struct h2 *h2;
	int r = upstream_connection(e->runtime, &h2, err);
	if (r)
		return r;
	r = grpc_call_packed(&(struct grpc_call_config){.h2 = h2,
							.loop = e->loop,
							.path = EVENTS_PATH,
							.message = on_message,
							.done = on_done,
							.arg = e},
			     NULL, 0, &e->call);
	return r ? err_errno(err, r, "a call to the runtime") : 0;
}

int events_listen(struct events *e, struct events_listener *l, struct err *err)
{
	int r = e->call ? 0 : open_call(e, err);
	if (r)
		return r;
	l->listens = true;
	DL_APPEND(e->listeners, l);
	return 0;
}

void events_leave(struct events *e, struct events_listener *l)
{
	if (!l->listens)
		return;
	l->listens = false;
	DL_DELETE(e->listeners, l);
}

struct events *events_new(struct loop *loop, struct upstream *runtime)
{
	struct events *e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	e->loop = loop;
	e->runtime = runtime;
	return e;
}

struct events *events_free(struct events *e)
{
	if (!e)
		return NULL;
	grpc_call_cancel(e->call);
	free(e);
	return NULL;
}
