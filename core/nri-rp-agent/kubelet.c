/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/kubelet.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/grpc/conn.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/sock.h"

#define LOG_SOURCE "kubelet"

struct kubelet {
	struct loop *loop;
	char *socket;
	struct grpc_conn *conn; /* connection to the kubelet; NULL: not connected */
	unsigned connection;
};

static void on_ended(struct grpc_conn *conn, const struct err *err, void *arg)
{
	struct kubelet *k = arg;
	if (err->code != -ECONNRESET)
		log_warning("%s: %s", k->socket, err->text);
	if (k->conn == conn)
		k->conn = NULL;
	grpc_conn_free(conn);
}

static int connect_now(struct kubelet *k, struct err *err)
{
	const struct grpc_conn_config config = {
		.loop = k->loop, .peer = k->socket, .ended = on_ended, .arg = k};
	int r = wire_check_folder(k->socket, err);
	if (r)
		return r;
	int fd = wire_connect_unix(k->socket, err);
	if (fd < 0)
		return fd;
	r = grpc_conn_new(fd, &config, &k->conn, err);
	if (r)
		return r;
	k->connection++;
	log_debug("connected to %s", k->socket);
	return 0;
}

/* Drops a connection that accepts no more calls. Fails while calls are pending on it, which have to
 * end before the next connection. */
static int drop_unusable(struct kubelet *k, struct err *err)
{
	struct h2 *h = k->conn ? grpc_conn_h2(k->conn) : NULL;
	if (!h || h2_usable(h))
		return 0;
	if (h2_is_closed(h))
		k->conn = NULL; /* on_ended will be called */
	else if (h2_n_streams(h))
		return err_set(err, -EAGAIN, "%s: the kubelet is closing the connection",
			       k->socket);
	else
		k->conn = grpc_conn_free(k->conn);
	return 0;
}

int kubelet_watch(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		  uint32_t timeout_ms, const struct kubelet_stream *stream, grpc_done done,
		  void *arg, struct err *err)
{
	int r = drop_unusable(k, err);
	if (!r && !k->conn)
		r = connect_now(k, err);
	if (r)
		return r;
	r = grpc_call(&(struct grpc_call_config){.h2 = grpc_conn_h2(k->conn),
						 .loop = k->loop,
						 .path = path,
						 .timeout_ms = timeout_ms,
						 .message_max = KUBELET_MESSAGE_MAX,
						 .metadata = stream->metadata,
						 .message = stream->message,
						 .done = done,
						 .arg = arg},
		      msg, stream->call);
	return r ? err_errno(err, r, "%s: request to the kubelet", k->socket) : 0;
}

int kubelet_call(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		 uint32_t timeout_ms, grpc_done done, void *arg, struct err *err)
{
	const struct kubelet_stream none = {0};
	return kubelet_watch(k, path, msg, timeout_ms, &none, done, arg, err);
}

unsigned kubelet_connection(const struct kubelet *k)
{
	return k->connection;
}

int kubelet_new(struct loop *loop, const char *socket, struct kubelet **ret, struct err *err)
{
	struct kubelet *k = calloc(1, sizeof *k);
	if (!k)
		return err_errno(err, -ENOMEM, "kubelet");
	k->loop = loop;
	k->socket = strdup(socket);
	if (!k->socket) {
		kubelet_free(k);
		return err_errno(err, -ENOMEM, "kubelet");
	}
	*ret = k;
	return 0;
}

struct kubelet *kubelet_free(struct kubelet *k)
{
	if (!k)
		return NULL;
	grpc_conn_free(TAKE(k->conn));
	free(k->socket);
	free(k);
	return NULL;
}
