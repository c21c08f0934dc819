/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the socket of a connection, and frees it when that is safe. */
#include "core/lib/wire/trunk.h"
#include "core/lib/util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes of a read, in a buffer on the stack, so that an idle connection needs no memory for it. */
#define CHUNK_SIZE (64u << 10)
/* Reads per turn of the loop, so that a peer with much data does not delay others. */
#define READS_MAX 16u
#define RPCS_MAX MUX_CONNS

struct trunk {
	struct trunk_config config;
	int fd;
	struct loop_io *io;
	/* fires at the first deadline of a call, or at once after a failed write */
	struct loop_timer *timer;
	uint64_t timer_ms; /* time for which `timer` is armed; 0: not armed */
	unsigned events;
	struct mux_rx rx;
	unsigned n_rpcs;
	struct rpc *rpc[RPCS_MAX];
	struct buf in[RPCS_MAX];
	struct buf out;
	struct err broken; /* error of a failed write */
	unsigned depth; /* nesting depth of callbacks */
	bool closed, doomed;
};

static struct trunk *trunk_destroy(struct trunk *t)
{
	for (unsigned i = 0; i < t->n_rpcs; i++)
		rpc_free(t->rpc[i]);
	for (unsigned i = 0; i < RPCS_MAX; i++)
		buf_fini(&t->in[i]);
	buf_fini(&t->out);
	loop_io_free(t->io);
	loop_timer_free(t->timer);
	if (t->fd >= 0)
		(void)close(t->fd);
	free(t);
	return NULL;
}

static void trunk_enter(struct trunk *t)
{
	t->depth++;
}

static void trunk_leave(struct trunk *t)
{
	if (--t->depth == 0 && t->doomed)
		trunk_destroy(t);
}

/* Closes the socket, after which no data is read or written and no callback is called. */
static void trunk_disconnect(struct trunk *t, int error)
{
	t->closed = true;
	t->io = loop_io_free(t->io);
	t->timer = loop_timer_free(t->timer);
	(void)close(t->fd);
	t->fd = -1;
	buf_fini(&t->out);
	/* Shut all ends before the first callback, which may try to use another. */
	for (unsigned i = 0; i < t->n_rpcs; i++)
		rpc_shut(t->rpc[i]);
	for (unsigned i = 0; i < t->n_rpcs; i++)
		rpc_close(t->rpc[i], error);
}

static void trunk_end(struct trunk *t, const struct err *err)
{
	if (t->closed)
		return;
	trunk_disconnect(t, -ECONNRESET);
	if (t->config.closed && !t->doomed)
		t->config.closed(t, err, t->config.arg);
}

/* ---- output ---- */

static void set_events(struct trunk *t)
{
	unsigned events = LOOP_READ | (buf_len(&t->out) ? LOOP_WRITE : 0u);
	if (events != t->events && loop_io_set(t->io, events) == 0)
		t->events = events;
}

/*
 * Arms the timer for the first deadline. A timer that is already armed is not moved: most calls are
 * answered long before, and moving it twice a call costs more than one check in vain.
 */
static void set_timer(struct trunk *t)
{
	uint64_t first = 0;
	for (unsigned i = 0; i < t->n_rpcs; i++) {
		uint64_t deadline = rpc_deadline_ms(t->rpc[i]);
		if (deadline && (!first || deadline < first))
			first = deadline;
	}
	if (!first || (t->timer_ms && t->timer_ms <= first) || t->broken.code)
		return;
	t->timer_ms = first;
	uint64_t now = clock_ms();
	(void)loop_timer_arm(t->timer, first > now ? first - now : 0);
}

/*
 * Stops writing after an error. Data that the peer sent before it disconnected may still be read,
 * most likely the reason for refusing this side. The timer closes the connection after the writing
 * function has returned.
 */
static void break_off(struct trunk *t, int error)
{
	if (t->broken.code || t->closed)
		return;
	if (error == -ENOBUFS)
		(void)err_set(&t->broken, error,
			      "the peer does not read its replies: %zu bytes are waiting",
			      buf_len(&t->out));
	else
		(void)err_errno(&t->broken, error, "writing to the connection failed");
	(void)loop_timer_arm(t->timer, 0);
}

static void trunk_flush(struct trunk *t)
{
	while (!t->broken.code && buf_len(&t->out)) {
		size_t n = buf_len(&t->out);
		ssize_t done = send(t->fd, buf_bytes(&t->out), n, MSG_NOSIGNAL);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno != EAGAIN) {
			break_off(t, -errno);
			break;
		}
		if (done > 0)
			buf_consume(&t->out, (size_t)done);
		if (done < (ssize_t)n)
			break;
	}
	if (t->broken.code)
		buf_reset(&t->out);
	buf_shrink(&t->out, TRUNK_KEEP);
}

static void on_output(void *arg)
{
	struct trunk *t = arg;
	if (t->closed)
		return;
	/* If output waits already, this output waits behind it. */
	if (!(t->events & LOOP_WRITE) || t->broken.code)
		trunk_flush(t);
	set_events(t);
	set_timer(t);
}

static void on_failed(int error, void *arg)
{
	break_off(arg, error);
}

/* ---- input ---- */

static int feed_rpc(struct trunk *t, unsigned i, uint64_t now_ns, struct err *err)
{
	int r = rpc_input(t->rpc[i], &t->in[i], now_ns, err);
	buf_shrink(&t->in[i], TRUNK_KEEP);
	return r;
}

static int trunk_feed(struct trunk *t, const uint8_t *data, size_t n, struct err *err)
{
	uint64_t now_ns = clock_ns();
	if (!t->config.mux) {
		if (buf_add(&t->in[0], data, n))
			return err_set(err, -ENOMEM, "out of memory for %zu bytes of input", n);
		return feed_rpc(t, 0, now_ns, err);
	}
	while (n && !t->closed) {
		ssize_t used = mux_rx_feed(&t->rx, data, n, err);
		if (used < 0)
			return (int)used;
		data += used;
		n -= (size_t)used;
		if (t->rx.conn - 1 >= MUX_CONNS)
			continue;
		int r = feed_rpc(t, t->rx.conn - 1, now_ns, err);
		if (r)
			return r;
	}
	return 0;
}

static bool in_the_middle(const struct trunk *t)
{
	return mux_rx_partial(&t->rx) || buf_len(&t->in[0]) || buf_len(&t->in[1]);
}

/* Reads until the socket is empty or the limit of reads is reached. 0: more may follow later. */
static int read_some(struct trunk *t, struct err *err)
{
	uint8_t chunk[CHUNK_SIZE];
	for (unsigned i = 0; i < READS_MAX && !t->closed; i++) {
		ssize_t n = recv(t->fd, chunk, sizeof chunk, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return err_errno(err, -errno, "reading from the connection failed");
		if (n == 0)
			return err_set(err, -ECONNRESET, "the peer closed the connection%s",
				       in_the_middle(t) ? " in the middle of a message" : "");
		int r = trunk_feed(t, chunk, (size_t)n, err);
		if (r)
			return r;
		/*
		 * A read that did not fill the buffer has emptied the socket, so another one would
		 * be in vain.
		 */
		if ((size_t)n < sizeof chunk)
			return 0;
	}
	return 0;
}

static void on_io(unsigned events, void *arg)
{
	struct trunk *t = arg;
	struct err err = ERR_INIT;
	trunk_enter(t);
	if (events & LOOP_WRITE)
		trunk_flush(t);
	if (events & LOOP_READ && read_some(t, &err))
		trunk_end(t, &err);
	if (!t->closed) {
		set_events(t);
		set_timer(t);
	}
	trunk_leave(t);
}

static void on_timer(void *arg)
{
	struct trunk *t = arg;
	trunk_enter(t);
	t->timer_ms = 0;
	if (t->broken.code) {
		struct err err = ERR_INIT;
		(void)read_some(t, &err);
		trunk_end(t, err.code ? &err : &t->broken);
	}
	for (unsigned i = 0; i < t->n_rpcs && !t->closed; i++)
		rpc_expire(t->rpc[i], clock_ms());
	if (!t->closed)
		set_timer(t);
	trunk_leave(t);
}

/* ---- life ---- */

static int add_rpc(struct trunk *t, uint32_t conn)
{
	const struct trunk_config *c = &t->config;
	/* In addition to the largest call, which may wait as well. */
	size_t answers_out_max = (size_t)TRUNK_ANSWERS_OUT_MAX + c->send_max;
	t->rpc[t->n_rpcs] = rpc_new(&(struct rpc_config){.recv_max = c->recv_max,
							 .send_max = c->send_max,
							 .conn = conn,
							 .first_max = c->first_max,
							 .calls_out_max = TRUNK_CALLS_OUT_MAX,
							 .answers_out_max = answers_out_max,
							 .out = &t->out,
							 .output = on_output,
							 .failed = on_failed,
							 .arg = t});
	if (!t->rpc[t->n_rpcs])
		return -ENOMEM;
	t->n_rpcs++;
	return 0;
}

static int set_up(struct trunk *t, struct loop *loop)
{
	int r = t->config.mux ? add_rpc(t, MUX_CONN_PLUGIN) : add_rpc(t, 0);
	if (!r && t->config.mux)
		r = add_rpc(t, MUX_CONN_RUNTIME);
	if (r)
		return r;
	t->events = LOOP_READ;
	t->io = loop_io_new(loop, t->fd, t->events, on_io, t);
	t->timer = loop_timer_new(loop, on_timer, t);
	return t->io && t->timer ? 0 : -ENOMEM;
}

int trunk_new(struct loop *loop, int fd, const struct trunk_config *config, struct trunk **ret,
	      struct err *err)
{
	struct trunk *t = calloc(1, sizeof *t);
	if (!t) {
		(void)close(fd);
		return err_set(err, -ENOMEM, "out of memory for a connection");
	}
	t->config = *config;
	t->fd = fd;
	if (!t->config.recv_max)
		t->config.recv_max = config->mux ? MUX_RECV_MAX : TTRPC_MESSAGE_MAX;
	if (!t->config.send_max)
		t->config.send_max = TTRPC_MESSAGE_MAX;
	mux_rx_init(&t->rx, &t->in[0], &t->in[1], t->config.recv_max + TTRPC_HEADER_SIZE);
	int r = set_up(t, loop);
	if (r) {
		trunk_destroy(t);
		return err_set(err, r, "out of memory for a connection");
	}
	*ret = t;
	return 0;
}

struct trunk *trunk_free(struct trunk *t)
{
	if (!t || t->doomed)
		return NULL;
	t->doomed = true;
	trunk_enter(t);
	if (!t->closed) {
		for (unsigned i = 0; i < t->n_rpcs; i++)
			rpc_refuse_pending(t->rpc[i], TTRPC_UNAVAILABLE,
					   "the connection is being closed");
		trunk_disconnect(t, -ECANCELED);
	}
	trunk_leave(t);
	return NULL;
}

struct rpc *trunk_rpc(struct trunk *t, uint32_t conn)
{
	return t->rpc[conn == MUX_CONN_RUNTIME && t->config.mux ? 1 : 0];
}

bool trunk_connected(const struct trunk *t)
{
	return !t->closed;
}

size_t trunk_unsent(const struct trunk *t)
{
	return buf_len(&t->out);
}
