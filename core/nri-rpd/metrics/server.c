/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP server: that of libevent with additional limits. A connection that exceeds the limit of its
 * address or of all clients closes the oldest one within that limit, so that a probe always gets
 * through. A connection younger than METRICS_YOUNG_MS is never closed for another one, because a
 * probe's request and its answer need less time. Only with METRICS_ACCEPTED_MAX connections does
 * the listener pause until some of them are old enough.
 *
 *   accepted ──▶ waiting for the request ──complete──▶ answering ──sent──▶ closed
 *                  └─── METRICS_REQUEST_MS ─────────────┴── METRICS_STALLED_MS ──▶ closed
 */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <utlist.h>

#include "core/nri-rpd/metrics/address.h"
#include "core/nri-rpd/metrics/held.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/metrics/containers.h"
#include "core/nri-rpd/metrics/health.h"
#include "core/nri-rpd/metrics/host.h"
#include "core/nri-rpd/metrics/modules.h"
#include "core/nri-rpd/metrics/server.h"
#include "core/nri-rpd/metrics/system.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "metrics"
#define PAUSE_MS 1000u
#define TEXT_PLAIN "text/plain; charset=utf-8"
#define TEXT_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
/* Let libevent pass on all methods, because it would report others as not implemented. The table of
 * routes refuses all but GET and HEAD. */
#define ANY_METHOD 0xffffu

struct connection {
	struct metrics *m;
	struct bufferevent *bev;
	struct evhttp_connection *http; /* NULL until server_watch() */
	struct loop_timer *timer;
	uint64_t since_ms;
	/* client's address, for IPv6 its network; all zero for a unix socket */
	struct in6_addr from;
	bool asked; /* the request is complete */
	bool kept; /* limited by metrics_hold() and not by the number of connections */
	size_t unsent; /* unsent bytes of the answer at the last check */
	void (*closed)(void *arg); /* called when the connection has ended; NULL: no notification */
	void *closed_arg;
	struct connection *prev, *next;
};

struct metrics {
	struct loop *loop;
	struct pipeline *pipeline;
	struct evhttp *http;
	/* listening socket of the server; NULL: the server does not listen */
	struct evhttp_bound_socket *bound;
	char *listen; /* address as configured */
	struct held held;
	struct loop_timer *pause; /* runs while descriptors are short */
	dev_t dev; /* device of a unix socket's file */
	ino_t ino;
	struct connection *connections;
	unsigned n_connections;
	const char *routed; /* path of another component; NULL: none */
	metrics_route_fn route;
	void *route_arg;
};

/* ---- answers --------------------------------------------------------------------------------- */

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
			 expo_family(&e, "nri_rp_build_info", EXPO_GAUGE,
				     "Version of the running daemon."),
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

static bool is_crowded(const struct metrics *m);

static void answer_metrics(struct metrics *m, struct answer *a)
{
	if (is_crowded(m)) {
		a->status = HTTP_SERVUNAVAIL;
		(void)buf_add_str(&a->body, "too many clients request metrics: try again\n");
		return;
	}
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

/* Answers the liveness probe. Any answer means "alive", because faults that time or people mend are
 * no reason for a restart. */
static void answer_live(struct metrics *m, struct answer *a)
{
	(void)buf_add_str(&a->body, "ok\n");
}

static void answer_index(struct metrics *m, struct answer *a)
{
	(void)buf_add_str(&a->body, "nri-rp " NRI_RP_VERSION "\n/metrics\n/healthz\n/livez\n");
	if (m->routed)
		(void)buf_printf(&a->body, "%s\n", m->routed);
}

static void server_route(struct metrics *m, const char *path, struct answer *a)
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
	(void)buf_add_str(&a->body, "available paths are /metrics, /healthz and /livez\n");
}

static void send_answer(struct evhttp_request *req, const struct answer *a)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	char length[24];
	(void)snprintf(length, sizeof length, "%zu", buf_len(&a->body));
	bool ok = !a->body.failed && evhttp_add_header(headers, "Content-Type", a->type) == 0 &&
		  evhttp_add_header(headers, "Content-Length", length) == 0 &&
		  evhttp_add_header(headers, "Cache-Control", "no-store") == 0 &&
		  /* A scraper connects a few times a minute, so connections are closed after each
		   * answer. */
		  evhttp_add_header(headers, "Connection", "close") == 0 &&
		  evhttp_add_header(headers, "Allow", "GET, HEAD") == 0;
	if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
		ok = ok && evbuffer_add(evhttp_request_get_output_buffer(req), buf_bytes(&a->body),
					buf_len(&a->body)) == 0;
	if (ok)
		evhttp_send_reply(req, a->status, NULL, NULL);
	else
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void accept_more(struct metrics *m, bool more)
{
	if (!m->bound)
		return;
	struct evconnlistener *listener = evhttp_bound_socket_get_listener(m->bound);
	(void)(more ? evconnlistener_enable(listener) : evconnlistener_disable(listener));
}

static void connection_free(struct connection *c)
{
	assert(c->m->n_connections);
	struct metrics *m = c->m;
	DL_DELETE(m->connections, c);
	m->n_connections--;
	if (!loop_timer_armed(m->pause))
		accept_more(m, true);
	if (!c->http && c->bev)
		(void)bufferevent_decref(c->bev);
	if (c->closed)
		c->closed(c->closed_arg);
	loop_timer_free(c->timer);
	free(c);
}

/* ---- limits ---- ---- */

/* Records the client's address; of IPv6 the network, which one host may use alone. */
static void connection_note_address(struct connection *c)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof ss;
	if (getpeername(bufferevent_getfd(c->bev), (struct sockaddr *)&ss, &len) < 0)
		return;
	if (ss.ss_family == AF_INET6)
		c->from = ((struct sockaddr_in6 *)&ss)->sin6_addr;
	else if (ss.ss_family == AF_INET)
		memcpy(&c->from.s6_addr[12], &((struct sockaddr_in *)&ss)->sin_addr, 4);
	if (ss.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&c->from))
		memset(&c->from.s6_addr[8], 0, 8);
}

static bool connection_same_client(const struct connection *a, const struct connection *b)
{
	return memcmp(&a->from, &b->from, sizeof a->from) == 0;
}

/* Counts the limited connections with the address of `like`; NULL: all limited connections. */
static unsigned count_connections(const struct metrics *m, const struct connection *like)
{
	const struct connection *c;
	unsigned n = 0;
	DL_FOREACH (m->connections, c)
		n += !c->kept && (!like || connection_same_client(c, like));
	return n;
}

/* Returns true if so many answers are being sent that another one would exceed the limits. */
static bool is_crowded(const struct metrics *m)
{
	const struct connection *c;
	unsigned n = 0;
	DL_FOREACH (m->connections, c)
		n += !c->kept && c->asked;
	return n > METRICS_CONNECTIONS_MAX;
}

static void connection_close(struct connection *c)
{
	if (c->http)
		evhttp_connection_free(c->http); /* on_closed() frees the rest */
	else
		connection_free(c);
}

/* Closes connections from the oldest on, except young ones, until `n` is at most `most`. like: only
 * connections of its client; NULL: all. Returns the new `n`. */
static unsigned close_oldest(struct metrics *m, const struct connection *like, bool asked,
			     unsigned n, unsigned most)
{
	struct connection *c, *next;
	uint64_t now = clock_ms();
	DL_FOREACH_SAFE(m->connections, c, next)
	{
		bool fits = !like || connection_same_client(c, like);
		if (n <= most)
			break;
		if (!fits || c->kept || !c->http || (c->asked && !asked) ||
		    now - c->since_ms < METRICS_YOUNG_MS)
			continue;
		connection_close(c);
		n--;
	}
	return n;
}

/* Closes connections that exceed a limit: first those without a complete request, then those that
 * are receiving answers. */
static void close_excess(struct metrics *m, const struct connection *like, unsigned most)
{
	unsigned n = count_connections(m, like);
	n = close_oldest(m, like, false, n, most);
	(void)close_oldest(m, like, true, n, most);
}

static void on_closed(struct evhttp_connection *http, void *arg)
{
	connection_free(arg);
}

/*
 * Finds libevent's connection object, which libevent passes on only with the first complete
 * request, through the callbacks of the connection's buffer. False: the connection has been closed
 * already.
 */
static bool server_watch(struct connection *c)
{
	void *http = NULL;
	bufferevent_getcb(c->bev, NULL, NULL, NULL, &http);
	if (!http)
		return false;
	assert(evhttp_connection_get_bufferevent(http) == c->bev);
	c->http = http;
	evhttp_connection_set_closecb(c->http, on_closed, c);
	(void)bufferevent_decref(c->bev);
	connection_note_address(c);
	/* `c` itself is too young to be closed here. */
	if (!IN6_IS_ADDR_UNSPECIFIED(&c->from))
		close_excess(c->m, c, METRICS_ADDRESS_MAX);
	close_excess(c->m, NULL, METRICS_CONNECTIONS_MAX);
	return loop_timer_arm(c->timer, METRICS_REQUEST_MS) == 0;
}

/* Returns true if the client has received a part of its answer since the last check. */
static bool connection_progresses(struct connection *c)
{
	size_t left = evbuffer_get_length(bufferevent_get_output(c->bev));
	bool less = left < c->unsent;
	c->unsent = left;
	return less && clock_ms() - c->since_ms < METRICS_ANSWER_MS;
}

static void on_timer(void *arg)
{
	struct connection *c = arg;
	if (c->asked && !c->kept && connection_progresses(c)) {
		(void)loop_timer_arm(c->timer, METRICS_STALLED_MS);
		return;
	}
	if (c->http) {
		connection_close(c);
		return;
	}
	if (!server_watch(c))
		connection_free(c);
}

static void pause_accepting(struct metrics *m, const char *why)
{
	log_warning("accepting a scraper failed, retrying: %s", why);
	accept_more(m, false);
	(void)loop_timer_arm(m->pause, PAUSE_MS);
}

/* Sets up an accepted connection. After a failure the connection is still served, but accepting
 * pauses. */
static struct bufferevent *on_accepted(struct event_base *base, void *arg)
{
	struct metrics *m = arg;
	struct connection *c = calloc(1, sizeof *c);
	if (!c) {
		pause_accepting(m, "out of memory");
		return NULL;
	}
	c->m = m;
	c->since_ms = clock_ms();
	c->timer = loop_timer_new(m->loop, on_timer, c);
	c->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	DL_APPEND(m->connections, c);
	m->n_connections++;
	if (!c->timer || !c->bev || loop_timer_arm(c->timer, 0)) {
		connection_free(c);
		pause_accepting(m, "out of memory");
		return NULL;
	}
	bufferevent_incref(c->bev);
	if (m->n_connections == METRICS_ACCEPTED_MAX) {
		accept_more(m, false);
		(void)loop_timer_arm(m->pause, METRICS_YOUNG_MS);
	}
	return c->bev;
}

static struct connection *connection_of(struct metrics *m, struct evhttp_request *req)
{
	struct bufferevent *bev =
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct connection *c;
	DL_SEARCH_SCALAR(m->connections, c, bev, bev);
	return c && (c->http || server_watch(c)) ? c : NULL;
}

static bool is_routed(const struct metrics *m, const char *path)
{
	size_t len = m->routed ? strlen(m->routed) : 0;
	return len && strncmp(path, m->routed, len) == 0 && (!path[len] || path[len] == '/');
}

static void on_request(struct evhttp_request *req, void *arg)
{
	struct metrics *m = arg;
	struct answer a = {.status = HTTP_OK, .type = TEXT_PLAIN, .body = BUF_INIT};
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	struct connection *c = connection_of(m, req);
	if (c) {
		c->asked = true;
		c->unsent = SIZE_MAX;
		c->since_ms = clock_ms();
		(void)loop_timer_arm(c->timer, METRICS_STALLED_MS);
	}
	if (path && is_routed(m, path)) {
		m->route(req, m->route_arg);
		return;
	}
	if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD) {
		server_route(m, path ? path : "", &a);
	} else {
		a.status = HTTP_BADMETHOD;
		(void)buf_add_str(&a.body, "allowed methods are GET and HEAD\n");
	}
	send_answer(req, &a);
	buf_fini(&a.body);
}

void metrics_hold(struct metrics *m, struct evhttp_request *req, uint64_t limit_ms,
		  void (*closed)(void *arg), void *arg)
{
	struct connection *c = connection_of(m, req);
	assert(c);
	c->kept = true;
	c->closed = closed;
	c->closed_arg = arg;
	(void)loop_timer_arm(c->timer, limit_ms);
}

void metrics_route(struct metrics *m, const char *path, size_t body_max, metrics_route_fn fn,
		   void *arg)
{
	m->routed = path;
	m->route = fn;
	m->route_arg = arg;
	evhttp_set_max_body_size(m->http, path ? (ev_ssize_t)body_max : 0);
}

const char *metrics_listens(const struct metrics *m)
{
	return m->bound ? m->listen : "";
}

static void server_resume(void *arg)
{
	struct metrics *m = arg;
	close_excess(m, NULL, METRICS_CONNECTIONS_MAX);
	if (m->n_connections < METRICS_ACCEPTED_MAX)
		accept_more(m, true);
	else
		(void)loop_timer_arm(m->pause, METRICS_YOUNG_MS);
}

static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	pause_accepting(arg, strerror(errno));
}

/* ---- listening ------------------------------------------------------------------------------- */

static void stop_listening(struct metrics *m)
{
	struct address a;
	struct stat st;
	if (!m->bound)
		return;
	evhttp_del_accept_socket(m->http, m->bound);
	m->bound = NULL;
	if (address_parse(m->listen, &a, NULL) == 0 && a.path && lstat(a.path, &st) == 0 &&
	    st.st_dev == m->dev && st.st_ino == m->ino)
		(void)unlink(a.path);
}

/* Starts listening and sets m->bound and m->listen if that works. */
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
	struct evhttp_bound_socket *bound = a.path && lstat(a.path, &st) < 0
						    ? NULL
						    : evhttp_accept_socket_with_handle(m->http, fd);
	if (!bound)
		return err_errno(err, -ENOMEM, "metrics: listening on %s", listen);
	(void)take_fd(&fd);
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
	stop_listening(m);
	m->bound = bound;
	accept_more(m, m->n_connections < METRICS_ACCEPTED_MAX && !loop_timer_armed(m->pause));
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	free(m->listen);
	m->listen = TAKE(copy);
	log_info("%s", m->listen);
	return 0;
}

/* Closes the old address before the new one is opened, because the two may conflict: 127.0.0.1:8891
 * and :8891. Restores the old one after a failure. */
static int swap_listening(struct metrics *m, const char *listen, struct err *err)
{
	struct err again = ERR_INIT;
	int r;
	stop_listening(m);
	r = start_listening(m, listen, &again);
	if (r && start_listening(m, m->listen, NULL))
		log_error("%s cannot be reopened", m->listen);
	if (r && err)
		*err = again;
	return r;
}

static int set_listen(struct metrics *m, const char *listen, struct err *err)
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
	if (r == -EADDRINUSE && m->bound)
		return swap_listening(m, listen, err);
	if (r && err)
		*err = first;
	return r;
}

int metrics_set_listen(struct metrics *m, const char *listen, struct err *err)
{
	int r = set_listen(m, listen, err);
	held_serve(&m->held, m->loop, m->bound ? evhttp_bound_socket_get_fd(m->bound) : -1);
	return r;
}

static void set_bounds(struct metrics *m)
{
	evhttp_set_max_headers_size(m->http, METRICS_HEADER_MAX);
	evhttp_set_max_body_size(m->http, 0);
	evhttp_set_allowed_methods(m->http, ANY_METHOD);
	evhttp_set_bevcb(m->http, on_accepted, m);
	evhttp_set_gencb(m->http, on_request, m);
}

int metrics_new(struct loop *loop, struct pipeline *pipeline, const char *listen,
		struct metrics **ret, struct err *err)
{
	struct metrics *m = calloc(1, sizeof *m);
	if (!m)
		return err_errno(err, -ENOMEM, "metrics");
	*m = (struct metrics){.loop = loop, .pipeline = pipeline, .listen = strdup("")};
	m->pause = loop_timer_new(loop, server_resume, m);
	m->http = evhttp_new(loop_base(loop));
	int r = m->listen && m->pause && m->http ? 0 : err_errno(err, -ENOMEM, "metrics");
	if (r == 0) {
		set_bounds(m);
		r = metrics_set_listen(m, listen, err);
	}
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
	held_fini(&m->held);
	if (m->http)
		evhttp_free(m->http);
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
	if (!m->bound ||
	    getsockname(evhttp_bound_socket_get_fd(m->bound), (struct sockaddr *)&ss, &len) < 0)
		return 0;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ss.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&ss)->sin_port) : 0;
}
