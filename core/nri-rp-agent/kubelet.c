/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/kubelet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/util/log.h"
#include "core/wire/sock.h"

#define LOG_SOURCE "kubelet"
#define CHUNK_SIZE (64u << 10)
#define READS_MAX 16u /* a turn of the loop */
#define BUFFER_KEEP (64u << 10)

struct kubelet {
	struct loop *loop;
	char *socket;
	int fd; /* -1: not connected */
	struct loop_io *io;
	struct loop_timer *timer;
	struct grpc *grpc;
	struct buf out;
	unsigned connection;
	bool writing; /* what waits goes when the socket takes it */
	bool telling; /* grpc is calling those who asked, and has to stay */
};

static void disconnect(struct kubelet *k, int error, const char *text)
{
	struct grpc *g = k->grpc;
	k->grpc = NULL;
	k->io = loop_io_free(k->io);
	if (k->fd >= 0)
		(void)close(k->fd);
	k->fd = -1;
	k->writing = false;
	loop_timer_disarm(k->timer);
	buf_fini(&k->out);
	/* Whoever asks anew from a callback gets a new connection. */
	if (g)
		grpc_close(g, error, text);
	grpc_free(g);
}

static void set_timer(struct kubelet *k)
{
	uint64_t deadline = k->grpc ? grpc_deadline_ms(k->grpc) : 0, now = clock_ms();
	if (deadline)
		(void)loop_timer_arm(k->timer, deadline > now ? deadline - now : 0);
	else
		loop_timer_disarm(k->timer);
}

/* 0, or the end of the connection. */
static int write_some(struct kubelet *k, struct err *err)
{
	while (buf_len(&k->out)) {
		ssize_t n = send(k->fd, buf_bytes(&k->out), buf_len(&k->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return err_errno(err, -ECONNRESET, "writing to %s failed", k->socket);
		if (n < 0)
			break;
		buf_consume(&k->out, (size_t)n);
	}
	buf_shrink(&k->out, BUFFER_KEEP);
	bool writing = buf_len(&k->out) > 0;
	if (writing != k->writing)
		(void)loop_io_set(k->io, LOOP_READ | (writing ? LOOP_WRITE : 0u));
	k->writing = writing;
	return 0;
}

/* Written with the next turn of the loop: an error must not end the connection under whoever is using it. */
static void on_output(void *arg)
{
	struct kubelet *k = arg;
	if (k->io && buf_len(&k->out) && !k->writing) {
		k->writing = true;
		(void)loop_io_set(k->io, LOOP_READ | LOOP_WRITE);
	}
}

static int read_some(struct kubelet *k, struct err *err)
{
	uint8_t chunk[CHUNK_SIZE];
	for (unsigned i = 0; i < READS_MAX && k->grpc; i++) {
		ssize_t n = recv(k->fd, chunk, sizeof chunk, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return err_errno(err, -ECONNRESET, "reading from %s failed", k->socket);
		if (n == 0)
			return err_set(err, -ECONNRESET, "%s: the kubelet closed the connection",
				       k->socket);
		k->telling = true;
		int r = grpc_feed(k->grpc, chunk, (size_t)n, err);
		k->telling = false;
		if (r)
			return r;
	}
	return 0;
}

static void on_io(unsigned events, void *arg)
{
	struct kubelet *k = arg;
	struct err err = ERR_INIT;
	int r = 0;
	if (events & LOOP_READ)
		r = read_some(k, &err);
	if (!r && events & LOOP_WRITE)
		r = write_some(k, &err);
	if (r) {
		if (r != -ECONNRESET)
			log_warning("%s: %s", k->socket, err.text);
		disconnect(k, r, err.text);
	}
	set_timer(k);
}

static void on_timer(void *arg)
{
	struct kubelet *k = arg;
	k->telling = true;
	if (k->grpc)
		grpc_expire(k->grpc, clock_ms());
	k->telling = false;
	set_timer(k);
}

static int connect_now(struct kubelet *k, struct err *err)
{
	struct grpc_config config = {
		.message_max = KUBELET_MESSAGE_MAX, .out = &k->out, .output = on_output, .arg = k};
	int r = wire_check_folder(k->socket, err);
	if (r)
		return r;
	int fd = wire_connect_unix(k->socket, err);
	if (fd < 0)
		return fd;
	k->fd = fd;
	k->grpc = grpc_new(&config);
	k->io = k->grpc ? loop_io_new(k->loop, fd, LOOP_READ, on_io, k) : NULL;
	if (!k->io) {
		disconnect(k, -ENOMEM, "out of memory");
		return err_set(err, -ENOMEM, "no memory for a connection");
	}
	k->connection++;
	log_debug("connected to %s", k->socket);
	return 0;
}

int kubelet_call(struct kubelet *k, const char *path, const ProtobufCMessage *msg,
		 uint32_t timeout_ms, grpc_done done, void *arg, struct err *err)
{
	if (k->grpc && !grpc_usable(k->grpc)) {
		if (k->telling || grpc_n_calls(k->grpc))
			return err_set(err, -EAGAIN, "%s: the kubelet is closing the connection",
				       k->socket);
		disconnect(k, -ECONNRESET, "");
	}
	int r = k->grpc ? 0 : connect_now(k, err);
	if (r)
		return r;
	r = grpc_call(k->grpc, path, msg, timeout_ms, done, arg);
	if (r)
		return err_errno(err, r, "%s: asking the kubelet", k->socket);
	set_timer(k);
	return 0;
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
	k->fd = -1;
	k->socket = strdup(socket);
	k->timer = loop_timer_new(loop, on_timer, k);
	if (!k->socket || !k->timer) {
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
	disconnect(k, -ECANCELED, "the agent is stopping");
	loop_timer_free(k->timer);
	free(k->socket);
	free(k);
	return NULL;
}
