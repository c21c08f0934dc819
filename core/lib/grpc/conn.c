/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the socket of an HTTP/2 connection. */
#include "core/lib/grpc/conn.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/loop.h"

/* Bytes of a read, in a buffer on the stack, so that an idle connection needs no memory for it. */
#define CHUNK_SIZE (64u << 10)
#define READS_MAX 16u /* largest number of reads in one turn of the loop */
#define WRITE_SIZE (64u << 10) /* bytes that are collected for one write */
#define BUFFER_KEEP (16u << 10)

struct grpc_conn {
	struct grpc_conn_config config;
	int fd;
	struct loop_io *io;
	struct h2 *h2;
	struct buf out;
	/* Sends the output of all callbacks of a turn in one write. */
	struct loop_task flush;
	bool flushing; /* the task is queued */
	bool writing; /* the socket is full: wait until it is writable */
	bool ended, doomed;
	unsigned depth; /* nesting of calls into h2 */
};

static struct grpc_conn *conn_destroy(struct grpc_conn *c)
{
	if (c->flushing)
		loop_undefer_task(c->config.loop, &c->flush);
	h2_free(c->h2);
	loop_io_free(c->io);
	if (c->fd >= 0)
		(void)close(c->fd);
	buf_fini(&c->out);
	free(c);
	return NULL;
}

static void conn_leave(struct grpc_conn *c)
{
	if (--c->depth == 0 && c->doomed)
		conn_destroy(c);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void conn_schedule(struct grpc_conn *c)
{
	if (c->flushing || c->doomed)
		return;
	c->flushing = true;
	loop_defer_task(c->config.loop, &c->flush);
}

static void on_touched(void *arg)
{
	struct grpc_conn *c = arg;
	if (!c->writing)
		conn_schedule(c);
}

/* Writes the buffered output. 1: all of it was written; 0: the socket is full. */
static int write_out(struct grpc_conn *c, struct err *err)
{
	while (buf_len(&c->out)) {
		ssize_t n = send(c->fd, buf_bytes(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return err_errno(err, -ECONNRESET, "writing to %s failed", c->config.peer);
		buf_consume(&c->out, (size_t)n);
	}
	/* A connection with streams is likely to send more, so it keeps a larger buffer. */
	buf_shrink(&c->out, h2_n_streams(c->h2) ? 2 * WRITE_SIZE : BUFFER_KEEP);
	return 1;
}

static int why_finished(const struct grpc_conn *c, struct err *err)
{
	const char *complaint = h2_complaint(c->h2);
	if (complaint)
		return err_set(err, -EBADMSG, "data from %s violates HTTP/2: %s", c->config.peer,
			       complaint);
	return err_set(err, -ECONNRESET, "%s closed the connection", c->config.peer);
}

static int write_some(struct grpc_conn *c, struct err *err)
{
	int r;
	do {
		r = h2_pull(c->h2, &c->out, WRITE_SIZE);
		if (r)
			return err_errno(err, r, "%s", c->config.peer);
		if (!buf_len(&c->out))
			r = -EAGAIN; /* no output is left */
		else
			r = write_out(c, err);
	} while (r > 0);
	if (r < 0 && r != -EAGAIN)
		return r;
	bool writing = r == 0;
	if (writing != c->writing)
		(void)loop_io_set(c->io, LOOP_READ | (writing ? LOOP_WRITE : 0u));
	c->writing = writing;
	return h2_finished(c->h2) && !buf_len(&c->out) ? why_finished(c, err) : 0;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Ends the connection. The caller must not use c afterwards, unless it holds c. */
static void conn_end(struct grpc_conn *c, int error, const struct err *err)
{
	if (c->ended || c->doomed)
		return;
	c->ended = true;
	c->io = loop_io_free(c->io);
	h2_close(c->h2, error, err->text);
	if (!c->doomed)
		c->config.ended(c, err, c->config.arg);
}

/* ---- input ----------------------------------------------------------------------------------- */

static int read_some(struct grpc_conn *c, struct err *err)
{
	uint8_t chunk[CHUNK_SIZE];
	for (unsigned i = 0; i < READS_MAX && !c->doomed; i++) {
		ssize_t n = recv(c->fd, chunk, sizeof chunk, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return err_errno(err, -ECONNRESET, "reading from %s failed",
					 c->config.peer);
		if (n == 0)
			return err_set(err, -ECONNRESET, "%s closed the connection",
				       c->config.peer);
		int r = h2_feed(c->h2, chunk, (size_t)n, err);
		if (r)
			return r;
		/* A read that did not fill the buffer has emptied the socket. */
		if ((size_t)n < sizeof chunk)
			return 0;
	}
	return 0;
}

static void on_flush(void *arg)
{
	struct grpc_conn *c = arg;
	struct err err = ERR_INIT;
	c->flushing = false;
	if (c->ended)
		return;
	c->depth++;
	int r = write_some(c, &err);
	if (r) {
		/* Data that the peer sent before it disconnected may still be unread. */
		struct err unread = ERR_INIT;
		(void)read_some(c, &unread);
		conn_end(c, r, &err);
	}
	conn_leave(c);
}

static void on_io(unsigned events, void *arg)
{
	struct grpc_conn *c = arg;
	struct err err = ERR_INIT;
	int r = 0;
	c->depth++;
	if (events & LOOP_READ)
		r = read_some(c, &err);
	if (!r && !c->doomed && events & LOOP_WRITE)
		r = write_some(c, &err);
	if (r)
		conn_end(c, r, &err);
	conn_leave(c);
}

/* ---- creation and freeing -------------------------------------------------------------------- */

struct h2 *grpc_conn_h2(struct grpc_conn *c)
{
	return c->h2;
}

static void on_accept(struct h2_stream *s, const struct h2_fields *fields, bool last, void *arg)
{
	struct grpc_conn *c = arg;
	c->config.accept(s, fields, last, c->config.arg);
}

int grpc_conn_new(int fd, const struct grpc_conn_config *config, struct grpc_conn **ret,
		  struct err *err)
{
	struct grpc_conn *c = calloc(1, sizeof *c);
	if (!c) {
		(void)close(fd);
		return err_set(err, -ENOMEM, "out of memory for a connection");
	}
	c->config = *config;
	c->fd = fd;
	c->flush = (struct loop_task){NULL, on_flush, c};
	c->h2 = h2_new(&(struct h2_config){.server = config->server,
					   .streams_max = config->streams_max,
					   .accept = on_accept,
					   .touched = on_touched,
					   .arg = c});
	c->io = c->h2 ? loop_io_new(config->loop, fd, LOOP_READ, on_io, c) : NULL;
	if (!c->io) {
		conn_destroy(c);
		return err_set(err, -ENOMEM, "out of memory for a connection");
	}
	conn_schedule(c); /* sends the connection preface */
	*ret = c;
	return 0;
}

struct grpc_conn *grpc_conn_free(struct grpc_conn *c)
{
	if (!c || c->doomed)
		return NULL;
	c->doomed = true;
	c->depth++;
	c->io = loop_io_free(c->io);
	h2_close(c->h2, -ECANCELED, "the connection was closed");
	conn_leave(c);
	return NULL;
}
