/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections and limits their number, their calls and their idle time. */
#include "core/lib/grpc/server.h"

#include <stdlib.h>
#include <unistd.h>

#include <utlist.h>

#include "core/lib/grpc/conn.h"
#include "core/lib/grpc/served.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/listener.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "grpc"

struct client {
	struct grpc_server *server;
	struct grpc_conn *conn;
	/* begin of the last call or the last time with a running call; at first: of the
	 * connection */
	uint64_t since_ms;
	bool called; /* a call has been made */
	struct client *prev, *next;
};

struct grpc_server {
	struct grpc_server_config config;
	struct listener *listener;
	struct client *clients;
	unsigned n_clients;
	struct loop_timer *sweep;
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
	struct client *c = arg;
	struct grpc_server *s = c->server;
	c->called = true;
	c->since_ms = clock_ms();
	bool modest = h2_n_streams(grpc_conn_h2(c->conn)) <= GRPC_CALLS_SHARE;
	if (count_calls(s) <= GRPC_CALLS_MAX - (modest ? 0 : GRPC_CALLS_SPARE)) {
		s->config.accept(stream, fields, last, s->config.arg);
		return;
	}
	if (log_allowed(&s->refusals, LOG_SOURCE))
		log_warning("%s: refused a call: %u calls are in progress", s->config.path,
			    count_calls(s) - 1);
	grpc_refuse(stream, GRPC_RESOURCE_EXHAUSTED, "too many calls are in progress");
}

static void on_ended(struct grpc_conn *conn, const struct err *err, void *arg)
{
	struct client *c = arg;
	log_debug("%s", err->text);
	client_free(c);
}

/* ---- idle connections ---- */

#define SWEEP_MS 1000u

/* Returns true if a call is running. A stream whose headers never end does not count. */
static bool client_is_busy(const struct client *c)
{
	return c->called && h2_n_streams(grpc_conn_h2(c->conn));
}

/* Closes the connection that has been without a call for longest, to free a place. */
static void server_make_room(struct grpc_server *s)
{
	struct client *c, *found = NULL;
	DL_FOREACH (s->clients, c) {
		if (!client_is_busy(c) && (!found || c->since_ms < found->since_ms))
			found = c;
	}
	if (found)
		client_free(found);
}

static void on_sweep(void *arg)
{
	struct grpc_server *s = arg;
	struct client *c, *next;
	uint64_t now = clock_ms();
	DL_FOREACH_SAFE(s->clients, c, next)
	{
		if (client_is_busy(c))
			c->since_ms = now;
		else if (now - c->since_ms >= (c->called ? GRPC_IDLE_MS : GRPC_SILENT_MS))
			client_free(c);
	}
	if (s->clients)
		(void)loop_timer_arm(s->sweep, SWEEP_MS);
}

static int add_client(struct grpc_server *s, int fd, struct err *err)
{
	struct client *c = calloc(1, sizeof *c);
	if (!c) {
		(void)close(fd);
		return err_set(err, -ENOMEM, "out of memory for a connection");
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
	c->since_ms = clock_ms();
	DL_APPEND(s->clients, c);
	s->n_clients++;
	if (!loop_timer_armed(s->sweep))
		(void)loop_timer_arm(s->sweep, SWEEP_MS);
	return 0;
}

static void on_connection(int fd, void *arg)
{
	struct grpc_server *s = arg;
	struct err err = ERR_INIT;
	int r = 0;
	if (fd >= 0 && s->n_clients == GRPC_CONNECTIONS_MAX)
		server_make_room(s);
	if (fd < 0)
		r = err_errno(&err, fd, "accepting a connection failed");
	else if (s->n_clients < GRPC_CONNECTIONS_MAX)
		r = add_client(s, fd, &err);
	else {
		(void)close(fd);
		r = err_set(&err, -ENOBUFS, "refused a connection: %u are open",
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
	s->sweep = loop_timer_new(config->loop, on_sweep, s);
	if (!s->sweep) {
		free(s);
		return err_errno(err, -ENOMEM, "%s", config->path);
	}
	int r = listener_new(config->loop,
			     &(struct listener_config){.what = "gRPC socket",
						       .path = config->path,
						       .mode = config->mode,
						       .inherited = config->inherited,
						       .accepted = on_connection,
						       .arg = s},
			     &s->listener, err);
	if (r) {
		loop_timer_free(s->sweep);
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
	loop_timer_free(s->sweep);
	while (s->clients)
		client_free(s->clients);
	free(s);
	return NULL;
}

unsigned grpc_server_n_connections(const struct grpc_server *s)
{
	return s->n_clients;
}
