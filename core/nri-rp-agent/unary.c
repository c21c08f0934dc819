/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/unary.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/buf.h"

struct unary {
	const struct unary_service *service;
	struct grpc_served *served; /* call to answer; NULL: the caller has disconnected */
	char *path;
	struct buf request;
	bool asked; /* the request has arrived completely */
	bool handled; /* the request was passed to handle() */
};

static void unary_free(struct unary *u)
{
	buf_fini(&u->request);
	free(u->path);
	free(u);
}

static void unary_end(struct unary *u, enum grpc_status status, const char *text)
{
	if (u->served)
		grpc_served_end(u->served, status, text, NULL);
	unary_free(u);
}

void unary_fail(struct unary *u, enum grpc_status status, const char *text)
{
	unary_end(u, status, text);
}

void unary_answer(struct unary *u, const ProtobufCMessage *msg)
{
	struct buf packed = BUF_INIT;
	int r = u->served ? grpc_pack(&packed, msg) : 0;
	if (!r && u->served)
		r = grpc_served_send(u->served, buf_bytes(&packed) + GRPC_PREFIX_SIZE,
				     buf_len(&packed) - GRPC_PREFIX_SIZE);
	buf_fini(&packed);
	unary_end(u, r ? GRPC_RESOURCE_EXHAUSTED : GRPC_OK, r ? "out of memory" : NULL);
}

static void on_message(struct grpc_served *c, const struct grpc_message *m, void *arg)
{
	struct unary *u = arg;
	if (u->asked || m->compressed)
		unary_end(u, GRPC_UNIMPLEMENTED, "expected one uncompressed message");
	else if (m->n && buf_add(&u->request, m->data, m->n))
		unary_end(u, GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		u->asked = true;
}

static void on_finished(struct grpc_served *c, void *arg)
{
	struct unary *u = arg;
	if (!u->asked) {
		unary_end(u, GRPC_INTERNAL, "a call without a message");
		return;
	}
	u->handled = true;
	u->service->handle(u, u->path, buf_bytes(&u->request), buf_len(&u->request),
			   u->service->arg);
}

static void on_gone(struct grpc_served *c, void *arg)
{
	struct unary *u = arg;
	u->served = NULL;
	if (!u->handled)
		unary_free(u);
}

static void unary_accept(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	const struct unary_service *service = arg;
	const struct h2_field *path = h2_field_find(fields, ":path");
	struct unary *u = calloc(1, sizeof *u);
	const struct grpc_served_config config = {.loop = service->loop,
						  .message_max = service->message_max,
						  .message = on_message,
						  .finished = on_finished,
						  .gone = on_gone,
						  .arg = u};
	if (u)
		u->path = strdup(path ? path->value : "");
	if (!u || !u->path) {
		free(u);
		grpc_refuse(s, GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	u->service = service;
	if (grpc_serve(s, fields, last, &config, &u->served))
		unary_free(u);
}

int unary_listen(const struct unary_service *service, const char *path, mode_t mode,
		 struct grpc_server **ret, struct err *err)
{
	const struct grpc_server_config config = {.loop = service->loop,
						  .path = path,
						  .mode = mode,
						  .accept = unary_accept,
						  .arg = (void *)(uintptr_t)service};
	return grpc_server_new(&config, ret, err);
}
