/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/upstream.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/lib/grpc/conn.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/log.h"
#include "core/lib/wire/sock.h"

#define LOG_SOURCE "bridge"
#define BACKOFF_FIRST_MS 50u
#define BACKOFF_LAST_MS 2000u

/* A connection to the runtime. A connection that accepts no more calls is kept until its calls have
 * ended. */
struct link {
	struct upstream *upstream;
	struct grpc_conn *conn;
	struct link *prev, *next;
};

struct upstream {
	struct loop *loop;
	char *path;
	struct link *links; /* connections to the runtime, the newest first */
	struct loop_timer *retry;
	struct backoff backoff;
	bool away; /* the runtime is away, as logged */
	bool lost; /* an earlier connection was lost */
	/* called when the runtime is reachable again; NULL: no notification */
	void (*back)(void *arg);
	void *arg;
};

static struct link *link_free(struct link *l)
{
	DL_DELETE(l->upstream->links, l);
	grpc_conn_free(l->conn);
	free(l);
	return NULL;
}

static void try_later(struct upstream *u)
{
	if (loop_timer_armed(u->retry))
		return;
	(void)loop_timer_arm(u->retry,
			     backoff_next_ms(&u->backoff, BACKOFF_FIRST_MS, BACKOFF_LAST_MS));
}

static void on_ended(struct grpc_conn *conn, const struct err *err, void *arg)
{
	struct link *l = arg;
	struct upstream *u = l->upstream;
	log_notice("%s: %s", u->path, err->text);
	link_free(l);
	if (u->links)
		return;
	u->lost = true;
	try_later(u);
}

static int connect_now(struct upstream *u, struct err *err)
{
	int r = wire_check_folder(u->path, err);
	if (r)
		return r;
	struct link *l = calloc(1, sizeof *l);
	if (!l)
		return err_set(err, -ENOMEM, "out of memory for a connection");
	const struct grpc_conn_config config = {
		.loop = u->loop, .peer = "the runtime", .ended = on_ended, .arg = l};
	int fd = wire_connect_unix(u->path, err);
	r = fd < 0 ? fd : grpc_conn_new(fd, &config, &l->conn, err);
	if (r) {
		free(l);
		return r;
	}
	l->upstream = u;
	DL_PREPEND(u->links, l);
	return 0;
}

static int upstream_reconnect(struct upstream *u, struct err *err)
{
	int r = connect_now(u, err);
	if (r) {
		if (!u->away)
			log_warning("the runtime is not reachable: %s", err->text);
		u->away = true;
		try_later(u);
		return r;
	}
	if (u->away)
		log_notice("%s: the runtime is back", u->path);
	u->away = false;
	backoff_reset(&u->backoff);
	loop_timer_disarm(u->retry);
	if (u->lost && u->back)
		u->back(u->arg);
	u->lost = false;
	return 0;
}

void upstream_watch(struct upstream *u, void (*back)(void *arg), void *arg)
{
	u->back = back;
	u->arg = arg;
}

static void on_retry(void *arg)
{
	struct upstream *u = arg;
	struct err err = ERR_INIT;
	if (!u->links)
		(void)upstream_reconnect(u, &err);
}

static bool is_usable(const struct link *l)
{
	return l && h2_usable(grpc_conn_h2(l->conn));
}

int upstream_connection(struct upstream *u, struct h2 **ret, struct err *err)
{
	int r = is_usable(u->links) ? 0 : upstream_reconnect(u, err);
	if (!r)
		*ret = grpc_conn_h2(u->links->conn);
	return r;
}

int upstream_new(struct loop *loop, const char *path, struct upstream **ret, struct err *err)
{
	struct upstream *u = calloc(1, sizeof *u);
	if (!u)
		return err_errno(err, -ENOMEM, "%s", path);
	u->loop = loop;
	u->path = strdup(path);
	u->retry = loop_timer_new(loop, on_retry, u);
	if (!u->path || !u->retry) {
		upstream_free(u);
		return err_errno(err, -ENOMEM, "%s", path);
	}
	*ret = u;
	return 0;
}

struct upstream *upstream_free(struct upstream *u)
{
	if (!u)
		return NULL;
	while (u->links)
		link_free(u->links);
	loop_timer_free(u->retry);
	free(u->path);
	free(u);
	return NULL;
}
