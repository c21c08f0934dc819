/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves the map. A request occupies a place from its arrival until its connection is closed:
 *
 *   asked ──document──▶ answered ──sent──▶ closed
 *   asked ──document──▶ sent ──▶ asked …          (a stream, until its reader leaves or stalls)
 */
#include "core/nri-rpd/metrics/map/map.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <utlist.h>

#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/lib/util/address.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/metrics/server.h"

#define PATH "/map"
#define TYPE_JSON "application/json"
#define TYPE_TEXT "text/plain; charset=utf-8"
#define METHOD_NOT_ALLOWED 405
#define FORBIDDEN 403
#define HOST_MAX 64u

enum request_kind { DOCUMENT, STREAM, TRIAL, N_REQUEST_KINDS };

struct map_request {
	struct map *map;
	struct evhttp_request *http;
	bool started; /* the reply of a stream has begun and has no fixed end */
	enum request_kind kind;
	struct map_request *prev, *next;
};

struct map {
	struct metrics *metrics;
	struct ctl *ctl;
	struct pipeline *pipeline;
	struct map_request *requests;
	unsigned n_requests, n_kind[N_REQUEST_KINDS];
};

/* ---- answers --------------------------------------------------------------------------------- */

static bool add_headers(struct evhttp_request *http, const char *type)
{
	static const char *const headers[][2] = {
		{"Cache-Control", "no-store"},
		{"Connection", "close"},
		{"Content-Security-Policy",
		 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
	};
	struct evkeyvalq *out = evhttp_request_get_output_headers(http);
	bool ok = evhttp_add_header(out, "Content-Type", type) == 0;
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
		ok = ok && evhttp_add_header(out, headers[i][0], headers[i][1]) == 0;
	return ok;
}

static void send_whole(struct evhttp_request *http, int status, const char *type, const void *data,
		       size_t len)
{
	char length[24];
	(void)snprintf(length, sizeof length, "%zu", len);
	bool ok = add_headers(http, type) &&
		  evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Length",
				    length) == 0;
	if (evhttp_request_get_command(http) != EVHTTP_REQ_HEAD)
		ok = ok && evbuffer_add(evhttp_request_get_output_buffer(http), data, len) == 0;
	if (ok)
		evhttp_send_reply(http, status, NULL, NULL);
	else
		evhttp_send_error(http, HTTP_INTERNAL, NULL);
}

static void map_refuse(struct evhttp_request *http, int status, const char *text)
{
	send_whole(http, status, TYPE_TEXT, text, strlen(text));
}

/* ---- the page -------------------------------------------------------------------------------- */

#define PAGE_FILE(name) extern const char map_page_##name[], map_page_##name##_end[]
PAGE_FILE(html);
PAGE_FILE(css);
PAGE_FILE(js);
PAGE_FILE(layout);
PAGE_FILE(history);

static bool send_page(struct evhttp_request *http, const char *path)
{
	static const struct {
		const char *path, *type, *data, *end;
	} files[] = {
		{PATH, "text/html; charset=utf-8", map_page_html, map_page_html_end},
		{PATH "/map.css", "text/css; charset=utf-8", map_page_css, map_page_css_end},
		{PATH "/map.js", "text/javascript; charset=utf-8", map_page_js, map_page_js_end},
		{PATH "/layout.js", "text/javascript; charset=utf-8", map_page_layout,
		 map_page_layout_end},
		{PATH "/history.js", "text/javascript; charset=utf-8", map_page_history,
		 map_page_history_end},
	};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (str_eq(files[i].path, path)) {
			send_whole(http, HTTP_OK, files[i].type, files[i].data,
				   (size_t)(files[i].end - files[i].data));
			return true;
		}
	return false;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void request_closed(void *arg)
{
	struct map_request *r = arg;
	struct map *map = r->map;
	ctl_forget(map->ctl, r);
	/* Ending the reply frees a stream whose reader has disconnected. */
	if (r->started && !evhttp_request_get_connection(r->http))
		evhttp_send_reply_end(r->http);
	DL_DELETE(map->requests, r);
	map->n_requests--;
	map->n_kind[r->kind]--;
	free(r);
}

/* Creates a request; NULL: too many, and it was refused. */
static struct map_request *request_new(struct map *map, struct evhttp_request *http,
				       enum request_kind kind)
{
	static const unsigned max[] = {
		[DOCUMENT] = MAP_REQUESTS_MAX, [STREAM] = MAP_STREAMS_MAX, [TRIAL] = MAP_TRIES_MAX};
	static const uint64_t limit_ms[] = {
		[DOCUMENT] = METRICS_ANSWER_MS, [STREAM] = MAP_STALLED_MS, [TRIAL] = MAP_TRY_MS};
	struct map_request *r = NULL;
	if (map->n_requests < MAP_REQUESTS_MAX && map->n_kind[kind] < max[kind])
		r = calloc(1, sizeof *r);
	if (!r) {
		map_refuse(http, HTTP_SERVUNAVAIL, "too many simultaneous requests: try again\n");
		return NULL;
	}
	*r = (struct map_request){.map = map, .http = http, .kind = kind};
	DL_APPEND(map->requests, r);
	map->n_requests++;
	map->n_kind[kind]++;
	metrics_hold(map->metrics, http, limit_ms[kind], request_closed, r);
	return r;
}

/* ---- documents ------------------------------------------------------------------------------- */

static void answer_document(void *arg, const struct buf *document, int exit)
{
	struct map_request *r = arg;
	int status = exit == CTL_OK || exit == CTL_DEGRADED ? HTTP_OK : 422;
	send_whole(r->http, status, TYPE_JSON, buf_bytes(document), buf_len(document));
}

static void serve_document(struct map *map, struct evhttp_request *http, const char *method,
			   const char *argument)
{
	const struct ctl_question q = {
		.method = method, .argument = argument, .flags = CTL_FLAG_PUBLIC};
	struct map_request *r = request_new(map, http, DOCUMENT);
	if (r)
		ctl_ask(map->ctl, &q, answer_document, r);
}

static void serve_topology(struct map *map, struct evhttp_request *http,
			   const struct evkeyvalq *query)
{
	serve_document(map, http, "Topology", NULL);
}

static void serve_containers(struct map *map, struct evhttp_request *http,
			     const struct evkeyvalq *query)
{
	serve_document(map, http, "Containers", NULL);
}

static void serve_explain(struct map *map, struct evhttp_request *http,
			  const struct evkeyvalq *query)
{
	const char *name = evhttp_find_header(query, "name");
	serve_document(map, http, "Explain", name ? name : "");
}

static void serve_try(struct map *map, struct evhttp_request *http, const struct evkeyvalq *query)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(http);
	size_t len = evbuffer_get_length(body);
	_free_ char *text = malloc(len + 1);
	if (!text || evbuffer_copyout(body, text, len) != (ev_ssize_t)len) {
		map_refuse(http, HTTP_INTERNAL, "out of memory\n");
		return;
	}
	text[len] = '\0';
	if (strlen(text) != len || !utf8_valid(text, len)) {
		map_refuse(http, HTTP_BADREQUEST, "a manifest must be UTF-8 text\n");
		return;
	}
	const struct ctl_question q = {
		.method = "Try", .argument = "manifest", .text = text, .flags = CTL_FLAG_PUBLIC};
	struct map_request *r = request_new(map, http, TRIAL);
	if (r)
		ctl_ask(map->ctl, &q, answer_document, r);
}

/* Answers what a reload of the node's files would move. */
static void serve_plan(struct map *map, struct evhttp_request *http, const struct evkeyvalq *query)
{
	const struct ctl_question q = {.method = "ConfigCheck", .flags = CTL_FLAG_PUBLIC};
	struct map_request *r = request_new(map, http, TRIAL);
	if (r)
		ctl_ask(map->ctl, &q, answer_document, r);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void stream_on(struct map_request *r, uint64_t after);

static void answer_stream(void *arg, const struct buf *document, int exit)
{
	struct map_request *r = arg;
	struct evhttp_connection *connection = evhttp_request_get_connection(r->http);
	struct evbuffer *waiting =
		bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
	uint64_t last = pipeline_last_event(r->map->pipeline);
	struct evbuffer *message = evbuffer_new();
	if (!message || exit != CTL_OK || evbuffer_get_length(waiting) > MAP_BACKLOG_MAX)
		goto out; /* the stream ends at its time limit, and the browser reconnects */
	if (evbuffer_get_length(waiting) == 0)
		metrics_hold(r->map->metrics, r->http, MAP_STALLED_MS, request_closed, r);
	if (evbuffer_add_printf(message, "id: %llu\ndata: ", (unsigned long long)last) < 0 ||
	    evbuffer_add(message, buf_bytes(document), buf_len(document)) ||
	    evbuffer_add(message, "\n\n", 2))
		goto out;
	evhttp_send_reply_chunk(r->http, message);
	stream_on(r, last);
out:
	if (message)
		evbuffer_free(message);
}

static void stream_on(struct map_request *r, uint64_t after)
{
	const struct ctl_question q = {.method = "Events",
				       .after = after,
				       .wait_ms = MAP_QUIET_MS,
				       .flags = CTL_FLAG_PUBLIC};
	ctl_ask(r->map->ctl, &q, answer_stream, r);
}

static void serve_events(struct map *map, struct evhttp_request *http,
			 const struct evkeyvalq *query)
{
	const char *text =
		evhttp_find_header(evhttp_request_get_input_headers(http), "Last-Event-ID");
	uint64_t after = 0;
	if (!text)
		text = evhttp_find_header(query, "after");
	if (text && str_to_u64(text, &after)) {
		map_refuse(http, HTTP_BADREQUEST, "expected the number of an event\n");
		return;
	}
	struct map_request *r = request_new(map, http, STREAM);
	if (!r)
		return;
	if (!add_headers(http, "text/event-stream")) {
		evhttp_send_error(http, HTTP_INTERNAL, NULL);
		return;
	}
	evhttp_send_reply_start(http, HTTP_OK, NULL);
	r->started = true;
	stream_on(r, after);
}

/* ---- access ---------------------------------------------------------------------------------- */

/* Returns true for a numeric address or localhost, with or without a port. A name is refused,
 * because its owner may make it point to this machine. */
static bool host_is_plain(const char *host)
{
	char name[HOST_MAX];
	struct in6_addr a;
	bool brackets = host[0] == '[';
	const char *start = host + brackets;
	size_t n = strcspn(start, brackets ? "]" : ":");
	if (n == 0 || n >= sizeof name || (brackets && start[n] != ']'))
		return false;
	memcpy(name, start, n);
	name[n] = '\0';
	const char *rest = start + n + brackets;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	if (brackets)
		return inet_pton(AF_INET6, name, &a) == 1;
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &a) == 1;
}

static bool may_ask(struct evhttp_request *http)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(http);
	const char *host = evhttp_find_header(in, "Host");
	const char *origin = evhttp_find_header(in, "Origin");
	static const char scheme[] = "http://";
	if (!host || !host_is_plain(host))
		return false;
	return !origin ||
	       (str_has_prefix(origin, scheme) && strcasecmp(origin + strlen(scheme), host) == 0);
}

static void on_request(struct evhttp_request *http, void *arg)
{
	static const struct {
		const char *path;
		enum evhttp_cmd_type method;
		void (*fn)(struct map *map, struct evhttp_request *http,
			   const struct evkeyvalq *query);
	} routes[] = {
		{PATH "/topology", EVHTTP_REQ_GET, serve_topology},
		{PATH "/containers", EVHTTP_REQ_GET, serve_containers},
		{PATH "/explain", EVHTTP_REQ_GET, serve_explain},
		{PATH "/events", EVHTTP_REQ_GET, serve_events},
		{PATH "/try", EVHTTP_REQ_POST, serve_try},
		{PATH "/plan", EVHTTP_REQ_POST, serve_plan},
	};
	enum evhttp_cmd_type method = evhttp_request_get_command(http);
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(http);
	const char *path = evhttp_uri_get_path(uri), *text = evhttp_uri_get_query(uri);
	if (!may_ask(http)) {
		map_refuse(http, FORBIDDEN,
			   "the map only accepts requests for a numeric address or localhost\n");
		return;
	}
	if ((method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD) && send_page(http, path))
		return;
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
		struct evkeyvalq query = {0};
		if (!str_eq(routes[i].path, path))
			continue;
		if (routes[i].method != method) {
			map_refuse(http, METHOD_NOT_ALLOWED, "see nri-rpd(8)\n");
			return;
		}
		if (evhttp_parse_query_str(text ? text : "", &query) == 0)
			routes[i].fn(arg, http, &query);
		else
			map_refuse(http, HTTP_BADREQUEST, "the query cannot be decoded\n");
		evhttp_clear_headers(&query);
		return;
	}
	map_refuse(http, HTTP_NOTFOUND, "there is " PATH "\n");
}

/* ---- enabling and disabling ------------------------------------------------------------------ */

static void end_requests(struct map *map)
{
	while (map->requests)
		evhttp_connection_free(evhttp_request_get_connection(map->requests->http));
}

void map_serve(struct map *map, bool on)
{
	struct address a;
	const char *listens = metrics_listens(map->metrics);
	on = on && *listens && address_parse(listens, &a, NULL) == 0 && address_is_local(&a);
	metrics_route(map->metrics, on ? PATH : NULL, CTL_TEXT_MAX, on_request, map);
	if (!on)
		end_requests(map);
}

struct map *map_new(struct metrics *metrics, struct ctl *ctl, struct pipeline *pipeline)
{
	struct map *map = calloc(1, sizeof *map);
	if (map)
		*map = (struct map){.metrics = metrics, .ctl = ctl, .pipeline = pipeline};
	return map;
}

struct map *map_free(struct map *map)
{
	free(map);
	return NULL;
}
