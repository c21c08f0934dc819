/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lib/grpc/server.h"

#include <stdlib.h>
#include <unistd.h>

#include <utlist.h>

#include "core/lib/grpc/conn.h"
#include "core/lib/grpc/served.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/listener.h"

#define LOG_SOURCE "grpc"

struct client {
	struct grpc_server *server;
	struct grpc_conn *conn;
	struct client *prev, *next;
};

struct grpc_server {
	struct grpc_server_config config;
	struct listener *listener;
	struct client *clients;
	unsigned n_clients;
	struct log_limit refusals;
};

static struct client *client_free(struct client *c)
{
	DL_DELETE(c->server->clients, c);
	c->server->n_clients--;
	grpc_conn_free(c->conn);
	free(c);
	return NULL;
}

static unsigned count_calls(const struct grpc_server *s)
{
	const struct client *c;
	unsigned n = 0;
	DL_FOREACH (s->clients, c)
		n += h2_n_streams(grpc_conn_h2(c->conn));
	return n;
}

static void on_call(struct h2_stream *stream, const struct h2_fields *fields, bool last, void *arg)
{
	const struct client *c = arg;
	struct grpc_server *s = c->server;
	if (count_calls(s) <= GRPC_CALLS_MAX) {
		s->config.accept(stream, fields, last, s->config.arg);
		return;
	}
	if (log_allowed(&s->refusals, LOG_SOURCE))
		log_warning("%s: a call was refused, %u are under way", s->config.path,
			    GRPC_CALLS_MAX);
	grpc_refuse(stream, GRPC_RESOURCE_EXHAUSTED, "too many calls are under way");
}

static void on_ended(struct grpc_conn *conn, const struct err *err, void *arg)
{
	struct client *c = arg;
	(void)conn;
	log_debug("%s", err->text);
	client_free(c);
}

static int add_client(struct grpc_server *s, int fd, struct err *err)
{
	struct client *c = calloc(1, sizeof *c);
	if (!c) {
		(void)close(fd);
		return err_set(err, -ENOMEM, "no memory for a connection");
	}
	c->server = s;
	int r = grpc_conn_new(fd,
			      &(struct grpc_conn_config){.loop = s->config.loop,
							 .peer = "a client",
							 .server = true,
							 .accept = on_call,
							 .ended = on_ended,
							 .arg = c},
			      &c->conn, err);
	if (r) {
		free(c);
		return r;
	}
	DL_APPEND(s->clients, c);
	s->n_clients++;
	return 0;
}

static void on_connection(int fd, void *arg)
{
	struct grpc_server *s = arg;
	struct err err = ERR_INIT;
	int r = 0;
	if (fd < 0)
		r = err_errno(&err, fd, "taking a connection failed");
	else if (s->n_clients < GRPC_CONNECTIONS_MAX)
		r = add_client(s, fd, &err);
	else {
		(void)close(fd);
		r = err_set(&err, -ENOBUFS, "a connection was refused, there are %u",
			    GRPC_CONNECTIONS_MAX);
	}
	if (r && log_allowed(&s->refusals, LOG_SOURCE))
		log_warning("%s: %s", s->config.path, err.text);
}

int grpc_server_new(const struct grpc_server_config *config, struct grpc_server **ret,
		    struct err *err)
{
	struct grpc_server *s = calloc(1, sizeof *s);
	if (!s)
		return err_errno(err, -ENOMEM, "%s", config->path);
	s->config = *config;
	s->refusals = (struct log_limit)LOG_LIMIT(5, 10000);
	int r = listener_new(config->loop,
			     &(struct listener_config){.what = "gRPC socket",
						       .path = config->path,
						       .mode = config->mode,
						       .inherited = config->inherited,
						       .accepted = on_connection,
						       .arg = s},
			     &s->listener, err);
	if (r) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct grpc_server *grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return NULL;
	listener_free(s->listener);
	while (s->clients)
		client_free(s->clients);
	free(s);
	return NULL;
}

unsigned grpc_server_n_connections(const struct grpc_server *s)
{
	return s->n_clients;
}
