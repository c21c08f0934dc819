/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libcurl's multi interface on the loop. */
#include "core/lib/kube/http.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <utlist.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define CONNECT_TIMEOUT_MS 10000L
#define KEEPALIVE_S 20L
#define CONNECTIONS_MAX 4L
#define HEAD_MAX                                                                                   \
	(256u << 10) /* bytes of headers, interim answers and trailers: libcurl keeps all */

struct http_call {
	struct http *http;
	CURL *easy;
	struct curl_slist *headers;
	int (*data)(unsigned status, const void *data, size_t n, void *arg);
	void (*done)(const struct http_result *result, void *arg);
	void *arg;
	uint64_t began_ms;
	unsigned epoch;
	size_t n_head; /* bytes outside of the body */
	char error[CURL_ERROR_SIZE];
	struct http_call *prev, *next;
};

struct http {
	struct loop *loop;
	const struct kubeconfig *config;
	CURLM *multi;
	struct loop_timer *timer;
	struct http_call *calls;
	uint64_t heard_ms; /* time of the last data from the server */
	unsigned epoch; /* number of times that connections were given up */
	bool aborted; /* a callback of libcurl's has failed */
};

/* A socket of libcurl's that the loop watches. */
struct watched {
	struct http *http;
	int fd;
	struct loop_io *io;
};

/* ---- end of calls ---------------------------------------------------------------------------- */

static void give_up_connections(struct http *h, CURLcode code);

static void call_free(struct http_call *c)
{
	DL_DELETE(c->http->calls, c);
	(void)curl_multi_remove_handle(c->http->multi, c->easy);
	curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->headers);
	free(c);
}

static int error_of(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_WRITE_ERROR:
		return -ECANCELED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return -EPROTO;
	default:
		return -ECONNRESET;
	}
}

/*
 * Returns true if a call has timed out without any data from the server since it began. The other
 * end of the connection may be gone then, which TCP would notice after a quarter of an hour. All
 * calls are restarted on another connection.
 */
static bool is_hung(const struct http_call *c, CURLcode code)
{
	return code == CURLE_OPERATION_TIMEDOUT && c->http->heard_ms <= c->began_ms;
}

static void http_conclude(struct http_call *c, CURLcode code)
{
	long status = 0;
	curl_off_t retry_after = 0;
	char text[CURL_ERROR_SIZE];
	struct http *h = c->http;
	bool hung = c->epoch == h->epoch && is_hung(c, code);
	void (*done)(const struct http_result *result, void *arg) = c->done;
	void *arg = c->arg;
	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_after);
	(void)snprintf(text, sizeof text, "%s",
		       code == CURLE_OK	      ? ""
		       : c->n_head > HEAD_MAX ? "the header of the reply is too long"
		       : c->error[0]	      ? c->error
					      : curl_easy_strerror(code));
	str_one_line(text);
	const struct http_result result = {
		.error = error_of(code),
		.status = status > 0 ? (unsigned)status : 0,
		.retry_after_s = retry_after < 0	    ? 0
				 : retry_after > UINT32_MAX ? UINT32_MAX
							    : (uint32_t)retry_after,
		.text = text,
	};
	if (status > 0)
		h->heard_ms = clock_ms();
	if (hung) /* calls that begin from now on are not affected */
		h->epoch++;
	if (c->epoch != h->epoch)
		(void)curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, 1L);
	call_free(c);
	done(&result, arg);
	if (hung)
		give_up_connections(h, CURLE_OPERATION_TIMEDOUT);
}

static void give_up_connections(struct http *h, CURLcode code)
{
	struct http_call *c = h->calls;
	while (c) {
		bool former = c->epoch != h->epoch;
		if (former)
			http_conclude(c, code);
		c = former ? h->calls : c->next;
	}
}

static void conclude_ended(struct http *h)
{
	CURLMsg *msg;
	int left;
	while ((msg = curl_multi_info_read(h->multi, &left))) {
		char *call = NULL;
		if (msg->msg != CURLMSG_DONE)
			continue;
		CURLcode code = msg->data.result;
		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &call);
		http_conclude((struct http_call *)call, code);
	}
}

/* ---- libcurl on the loop --------------------------------------------------------------------- */

static int make_multi(struct http *h);

/* Restarts libcurl after a failure to watch a socket or a timer for lack of memory or descriptors,
 * after which it does nothing more. All calls fail, except endless ones, which are restarted with a
 * new instance. */
static void begin_anew(struct http *h)
{
	CURLM *former = h->multi;
	if (!h->aborted)
		return;
	for (struct http_call *c = h->calls; c; c = c->next)
		(void)curl_multi_remove_handle(former, c->easy);
	h->aborted = make_multi(h) < 0;
	if (!h->aborted)
		(void)curl_multi_cleanup(former);
	h->epoch++;
	give_up_connections(h, CURLE_ABORTED_BY_CALLBACK);
}

static int abort_all(struct http *h)
{
	h->aborted = true;
	return -1;
}

static void http_act(struct http *h, int fd, int what)
{
	int running;
	(void)curl_multi_socket_action(h->multi, fd, what, &running);
	conclude_ended(h);
	begin_anew(h);
}

static void on_io(unsigned events, void *arg)
{
	const struct watched *w = arg; /* libcurl may free it */
	http_act(w->http, w->fd,
		 (events & LOOP_READ ? CURL_CSELECT_IN : 0) |
			 (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *arg)
{
	http_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long delay_ms, void *arg)
{
	struct http *h = arg;
	if (delay_ms < 0)
		loop_timer_disarm(h->timer);
	else if (loop_timer_arm(h->timer, (uint64_t)delay_ms))
		return abort_all(h);
	return 0;
}

static int http_unwatch(struct http *h, int fd, struct watched *w)
{
	if (w)
		loop_io_free(w->io);
	free(w);
	(void)curl_multi_assign(h->multi, fd, NULL);
	return 0;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
	struct http *h = arg;
	struct watched *w = assigned;
	if (what == CURL_POLL_REMOVE)
		return http_unwatch(h, fd, w);
	unsigned events =
		(what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
	if (w)
		return loop_io_set(w->io, events) ? abort_all(h) : 0;
	w = calloc(1, sizeof *w);
	if (!w)
		return abort_all(h);
	*w = (struct watched){h, fd, loop_io_new(h->loop, fd, events, on_io, w)};
	if (!w->io || curl_multi_assign(h->multi, fd, w)) {
		(void)http_unwatch(h, fd, w);
		return abort_all(h);
	}
	return 0;
}

/* Makes the instance of libcurl; a failure leaves the previous one in place. */
static int make_multi(struct http *h)
{
	CURLM *multi = curl_multi_init();
	if (!multi)
		return -ENOMEM;
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, h);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, h);
	(void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_MAX);
	h->multi = multi;
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static size_t take_data(char *data, size_t size, size_t n, void *arg)
{
	const struct http_call *c = arg;
	long status = 0;
	c->http->heard_ms = clock_ms();
	(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	return c->data(status > 0 ? (unsigned)status : 0, data, size * n, c->arg) ? 0 : size * n;
}

static size_t take_head(char *data, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	c->n_head += size * n;
	return c->n_head > HEAD_MAX ? 0 : size * n;
}

static int set_pem(CURL *easy, const struct kube_pem *pem, CURLoption file, CURLoption blob)
{
	struct curl_blob data = {pem->data, pem->len, CURL_BLOB_NOCOPY};
	if (pem->data)
		return curl_easy_setopt(easy, blob, &data) ? -ENOTSUP : 0;
	return pem->file && curl_easy_setopt(easy, file, pem->file) ? -ENOMEM : 0;
}

static int set_server(CURL *easy, const struct kubeconfig *k)
{
	int r = set_pem(easy, &k->ca, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB);
	r = r ? r : set_pem(easy, &k->cert, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB);
	r = r ? r : set_pem(easy, &k->key, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB);
	if (r)
		return r;
	if (k->insecure) {
		(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if ((k->proxy && curl_easy_setopt(easy, CURLOPT_PROXY, k->proxy)) ||
	    (k->user && curl_easy_setopt(easy, CURLOPT_USERNAME, k->user)) ||
	    (k->password && curl_easy_setopt(easy, CURLOPT_PASSWORD, k->password)))
		return -ENOMEM;
	return 0;
}

static int add_header(struct http_call *c, const char *name, const char *value)
{
	_free_ char *line = str_printf("%s: %s", name, value);
	struct curl_slist *list = line ? curl_slist_append(c->headers, line) : NULL;
	if (list)
		c->headers = list;
	if (line)
		explicit_bzero(line, strlen(line));
	return list ? 0 : -ENOMEM;
}

static int set_headers(struct http_call *c, const struct http_request *q)
{
	_free_ char *bearer = q->token ? str_printf("Bearer %s", q->token) : NULL;
	int r = q->token && !bearer ? -ENOMEM : add_header(c, "Accept", "application/json");
	if (!r && q->content_type)
		r = add_header(c, "Content-Type", q->content_type);
	if (!r && bearer)
		r = add_header(c, "Authorization", bearer);
	if (bearer)
		explicit_bzero(bearer, strlen(bearer));
	return r ? r : curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) ? -ENOMEM : 0;
}

static int set_request(struct http_call *c, const struct http_request *q)
{
	const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{CURLOPT_NOSIGNAL, 1},
		{CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS},
		{CURLOPT_TIMEOUT_MS, (long)q->timeout_ms},
		{CURLOPT_TCP_KEEPALIVE, 1},
		{CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S},
		{CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S},
		{CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
		{CURLOPT_PIPEWAIT, 1},
	};
	_free_ char *url = str_printf("%s%s", c->http->config->server, q->path);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		(void)curl_easy_setopt(c->easy, numbers[i].option, numbers[i].value);
	(void)curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
	(void)curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->error);
	(void)curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_data);
	(void)curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
	(void)curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, take_head);
	(void)curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
	if (q->content_type) {
		(void)curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE,
				       (curl_off_t)strlen(q->body));
		(void)curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, q->body);
	}
	if (!url || curl_easy_setopt(c->easy, CURLOPT_URL, url) ||
	    curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https") ||
	    curl_easy_setopt(c->easy, CURLOPT_USERAGENT, "nri-rp-agent/" NRI_RP_VERSION) ||
	    curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, q->method))
		return -ENOMEM;
	int r = set_server(c->easy, c->http->config);
	return r ? r : set_headers(c, q);
}

struct http_call *http_start(struct http *h, const struct http_request *q, struct err *err)
{
	struct http_call *c = calloc(1, sizeof *c);
	if (!c) {
		(void)err_errno(err, -ENOMEM, "%s", q->path);
		return NULL;
	}
	c->http = h;
	c->began_ms = clock_ms();
	c->epoch = h->epoch;
	c->data = q->data;
	c->done = q->done;
	c->arg = q->arg;
	DL_APPEND(h->calls, c);
	c->easy = curl_easy_init();
	int r = c->easy ? set_request(c, q) : -ENOMEM;
	if (!r && curl_multi_add_handle(h->multi, c->easy))
		r = -ENOMEM;
	if (h->aborted) /* not from here: the caller is in the middle of an operation */
		(void)loop_timer_arm(h->timer, 0);
	if (!r)
		return c;
	call_free(c);
	(void)err_errno(err, r, "%s", q->path);
	return NULL;
}

struct http_call *http_cancel(struct http_call *c)
{
	if (c)
		call_free(c);
	return NULL;
}

/* ---- creation and freeing -------------------------------------------------------------------- */

int http_new(struct loop *loop, const struct kubeconfig *k, struct http **ret, struct err *err)
{
	struct http *h = calloc(1, sizeof *h);
	if (!h || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(h);
		return err_errno(err, -ENOMEM, "libcurl");
	}
	h->loop = loop;
	h->config = k;
	h->timer = loop_timer_new(loop, on_timer, h);
	if (!h->timer || make_multi(h)) {
		http_free(h);
		return err_errno(err, -ENOMEM, "libcurl");
	}
	*ret = h;
	return 0;
}

struct http *http_free(struct http *h)
{
	if (!h)
		return NULL;
	while (h->calls)
		call_free(h->calls);
	if (h->multi)
		(void)curl_multi_cleanup(h->multi);
	loop_timer_free(h->timer);
	free(h);
	curl_global_cleanup();
	return NULL;
}
