/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections. Each is answered once and then closed: a scraper comes four times a minute, and what does not stay open needs no rules.
 *
 *   reading ──a request──▶ writing ──all written──▶ draining ──end of file──▶ gone
 *      └─── METRICS_REQUEST_MS ───┴──── METRICS_ANSWER_MS ────┴───────────────▶ gone
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "core/metrics/address.h"
#include "core/metrics/collect.h"
#include "core/metrics/metrics.h"
#include "core/metrics/request.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"
#include "core/wire/sock.h"

#define LOG_SOURCE "metrics"
#define PAUSE_MS 1000u
#define TEXT_PLAIN "text/plain; charset=utf-8"
#define TEXT_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

enum phase { READING, WRITING, DRAINING };

struct connection {
	struct metrics *m;
	int fd;
	enum phase phase;
	struct loop_io *io;
	struct loop_timer *timer;
	struct buf out;
	struct connection *prev, *next;
	size_t n_in;
	char in[METRICS_HEADER_MAX];
};

struct metrics {
	struct loop *loop;
	struct pipeline *pipeline;
	char *listen; /* as it was asked for */
	int fd;
	struct loop_io *io;
	struct loop_timer *pause; /* descriptors are short */
	dev_t dev; /* of a unix socket */
	ino_t ino;
	struct connection *connections;
	unsigned n_connections;
};

/* ---- answers ---------------------------------------------------------------------------------- */

struct answer {
	int status;
	const char *type;
	struct buf body;
};

int metrics_render(struct pipeline *p, struct buf *out)
{
	const struct conf_core *core = conf_core(pipeline_conf(p));
	struct expo e;
	expo_init(&e);
	if (collect_wanted(core, "buildinfo", "buildinfo"))
		expo_add(&e,
			 expo_family(&e, "nri_rp_build_info", EXPO_GAUGE, "The version that runs."),
			 "", "version=\"" NRI_RP_VERSION "\"", 1);
	collect_host(&e, p);
	if (collect_wanted(core, "policy", "system"))
		collect_system(&e, p);
	collect_containers(&e, p);
	collect_modules(&e, p);
	collect_process(&e);
	int r = expo_write(&e, out);
	expo_fini(&e);
	return r;
}

static void answer_metrics(struct metrics *m, struct answer *a)
{
	if (!conf_core(pipeline_conf(m->pipeline))->metrics.prometheus) {
		a->status = 404;
		(void)buf_add_str(&a->body, "instrumentation.prometheusExport is off\n");
		return;
	}
	a->type = TEXT_PROMETHEUS;
	if (metrics_render(m->pipeline, &a->body)) {
		a->status = 500;
		a->type = TEXT_PLAIN;
		buf_fini(&a->body);
		(void)buf_add_str(&a->body, "out of memory\n");
	}
}

static void answer_ready(struct metrics *m, struct answer *a)
{
	if (health_check(m->pipeline, &a->body))
		(void)buf_add_str(&a->body, "ok\n");
	else
		a->status = 500;
}

/* That somebody answers is the answer: what only time or people can mend is no reason for a restart. */
static void answer_live(struct metrics *m, struct answer *a)
{
	(void)m;
	(void)buf_add_str(&a->body, "ok\n");
}

static void answer_index(struct metrics *m, struct answer *a)
{
	(void)m;
	(void)buf_add_str(&a->body, "nri-rp " NRI_RP_VERSION "\n/metrics\n/healthz\n/livez\n");
}

static void route(struct metrics *m, const char *path, struct answer *a)
{
	static const struct {
		const char *path;
		void (*fn)(struct metrics *m, struct answer *a);
	} routes[] = {
		{"/metrics", answer_metrics}, {"/healthz", answer_ready}, {"/readyz", answer_ready},
		{"/livez", answer_live},      {"/", answer_index},
	};
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
		if (str_eq(routes[i].path, path)) {
			routes[i].fn(m, a);
			return;
		}
	a->status = 404;
	(void)buf_add_str(&a->body, "there is /metrics, /healthz and /livez\n");
}

static int write_answer(struct buf *out, const struct answer *a, bool head)
{
	size_t len = buf_len(&a->body);
	(void)buf_printf(out,
			 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
			 "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
			 a->status, http_reason(a->status), a->type, len,
			 a->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (!head)
		(void)buf_add(out, buf_bytes(&a->body), len);
	return a->body.failed ? a->body.failed : out->failed;
}

/* ---- connections ------------------------------------------------------------------------------ */

static void connection_free(struct connection *c)
{
	struct metrics *m = c->m;
	DL_DELETE(m->connections, c);
	/* There is a place again. */
	if (m->n_connections-- == METRICS_CONNECTIONS_MAX && m->io)
		(void)loop_io_set(m->io, LOOP_READ);
	loop_io_free(c->io);
	loop_timer_free(c->timer);
	(void)close(c->fd);
	buf_fini(&c->out);
	free(c);
}

static void too_late(void *arg)
{
	connection_free(arg);
}

/* False: it is gone. */
static bool write_some(struct connection *c)
{
	while (buf_len(&c->out)) {
		ssize_t n = send(c->fd, buf_bytes(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return loop_io_set(c->io, LOOP_WRITE) == 0;
		if (n < 0)
			return false;
		buf_consume(&c->out, (size_t)n);
	}
	/* Closing with unread bytes would reset the connection and take the answer away from its reader. */
	c->phase = DRAINING;
	buf_fini(&c->out);
	return shutdown(c->fd, SHUT_WR) == 0 && loop_io_set(c->io, LOOP_READ) == 0;
}

static bool reply(struct connection *c, int status, const struct http_request *req)
{
	struct answer a = {.status = status, .type = TEXT_PLAIN, .body = BUF_INIT};
	if (status == HTTP_OK)
		route(c->m, req->path, &a);
	else
		(void)buf_printf(&a.body, "%s\n", http_reason(status));
	int r = write_answer(&c->out, &a, status == HTTP_OK && req->head);
	buf_fini(&a.body);
	if (r)
		return false;
	c->phase = WRITING;
	(void)loop_timer_arm(c->timer, METRICS_ANSWER_MS);
	return write_some(c);
}

static bool read_some(struct connection *c)
{
	struct http_request req;
	ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, 0);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	if (c->phase == DRAINING)
		return true;
	c->n_in += (size_t)n;
	int status = http_parse(c->in, c->n_in, sizeof c->in, &req);
	if (status == HTTP_INCOMPLETE)
		return true;
	c->n_in = 0; /* room for what is drained */
	return reply(c, status, &req);
}

static void on_ready(unsigned events, void *arg)
{
	struct connection *c = arg;
	(void)events;
	if (!(c->phase == WRITING ? write_some(c) : read_some(c)))
		connection_free(c);
}

static void connection_new(struct metrics *m, int fd)
{
	struct connection *c = malloc(sizeof *c);
	if (!c) {
		(void)close(fd);
		return;
	}
	c->m = m;
	c->fd = fd;
	c->phase = READING;
	c->out = (struct buf)BUF_INIT;
	c->n_in = 0;
	DL_APPEND(m->connections, c);
	m->n_connections++;
	c->io = loop_io_new(m->loop, fd, LOOP_READ, on_ready, c);
	c->timer = loop_timer_new(m->loop, too_late, c);
	if (!c->io || !c->timer || loop_timer_arm(c->timer, METRICS_REQUEST_MS))
		connection_free(c);
}

static void resume(void *arg)
{
	struct metrics *m = arg;
	if (m->io && m->n_connections < METRICS_CONNECTIONS_MAX)
		(void)loop_io_set(m->io, LOOP_READ);
}

static void on_connection(unsigned events, void *arg)
{
	struct metrics *m = arg;
	(void)events;
	while (m->n_connections < METRICS_CONNECTIONS_MAX) {
		int fd = wire_accept(m->fd);
		if (fd >= 0) {
			connection_new(m, fd);
			continue;
		}
		if (fd != -EAGAIN && fd != -ECONNABORTED && fd != -EINTR) {
			log_warning("a scraper has to wait: %s", strerror(-fd));
			(void)loop_io_set(m->io, 0);
			(void)loop_timer_arm(m->pause, PAUSE_MS);
		}
		return;
	}
	/* The others wait in the kernel's queue. */
	(void)loop_io_set(m->io, 0);
}

/* ---- listening -------------------------------------------------------------------------------- */

static void stop_listening(struct metrics *m)
{
	struct address a;
	struct stat st;
	m->io = loop_io_free(m->io);
	if (m->fd < 0)
		return;
	(void)close(m->fd);
	m->fd = -1;
	if (address_parse(m->listen, &a, NULL) == 0 && a.path && lstat(a.path, &st) == 0 &&
	    st.st_dev == m->dev && st.st_ino == m->ino)
		(void)unlink(a.path);
}

/* Takes over m->fd and m->listen when it works. */
static int start_listening(struct metrics *m, const char *listen, struct err *err)
{
	struct address a;
	struct stat st = {0};
	int r = address_parse(listen, &a, err);
	if (r)
		return err_prefix(err, "metrics.listen: ");
	_free_ char *copy = strdup(listen);
	if (!copy)
		return err_errno(err, -ENOMEM, "metrics");
	_close_ int fd = address_listen(&a, err);
	if (fd < 0)
		return fd;
	struct loop_io *io = loop_io_new(m->loop, fd, LOOP_READ, on_connection, m);
	if (!io || (a.path && lstat(a.path, &st) < 0)) {
		loop_io_free(io);
		return err_errno(err, -ENOMEM, "metrics: listening on %s", listen);
	}
	stop_listening(m);
	m->fd = take_fd(&fd);
	m->io = io;
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	free(m->listen);
	m->listen = TAKE(copy);
	log_info("metrics: %s", m->listen);
	return 0;
}

/* The old address may be what keeps the new one from being had: 127.0.0.1:8891 and :8891. */
static int swap_listening(struct metrics *m, const char *listen, struct err *err)
{
	struct err again = ERR_INIT;
	int r;
	stop_listening(m);
	r = start_listening(m, listen, &again);
	if (r && start_listening(m, m->listen, NULL))
		log_error("metrics: %s cannot be had back", m->listen);
	if (r && err)
		*err = again;
	return r;
}

int metrics_set_listen(struct metrics *m, const char *listen, struct err *err)
{
	struct err first = ERR_INIT;
	if (str_eq(m->listen, listen))
		return 0;
	if (!*listen) {
		stop_listening(m);
		m->listen[0] = '\0';
		return 0;
	}
	int r = start_listening(m, listen, &first);
	if (r == -EADDRINUSE && m->fd >= 0)
		return swap_listening(m, listen, err);
	if (r && err)
		*err = first;
	return r;
}

int metrics_new(struct loop *loop, struct pipeline *pipeline, const char *listen,
		struct metrics **ret, struct err *err)
{
	struct metrics *m = calloc(1, sizeof *m);
	if (!m)
		return err_errno(err, -ENOMEM, "metrics");
	*m = (struct metrics){.loop = loop, .pipeline = pipeline, .fd = -1, .listen = strdup("")};
	m->pause = loop_timer_new(loop, resume, m);
	int r = m->listen && m->pause ? metrics_set_listen(m, listen, err)
				      : err_errno(err, -ENOMEM, "metrics");
	if (r) {
		metrics_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	if (m->listen)
		stop_listening(m);
	while (m->connections)
		connection_free(m->connections);
	loop_timer_free(m->pause);
	free(m->listen);
	free(m);
	return NULL;
}

unsigned metrics_port(const struct metrics *m)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof ss;
	if (m->fd < 0 || getsockname(m->fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ss.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&ss)->sin_port) : 0;
}
