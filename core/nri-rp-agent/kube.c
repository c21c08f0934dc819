/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/kube.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <utlist.h>

#include "core/lib/kube/token.h"
#include "core/lib/kube/http.h"
#include "core/nri-rp-agent/rbac_hint.h"
#include "core/lib/util/buf.h"
#include "core/lib/util/getter.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "kube"
/* size of an answer after which free memory is returned to the kernel */
#define LARGE_ANSWER (1u << 20)
#define NS_PER_S UINT64_C(1000000000)
/* cost of a request; the allowance grows by KUBE_RATE_PER_S each millisecond */
#define REQUEST_COST 1000u

struct kube_call {
	struct kube *kube;
	struct http_call *http; /* the running HTTP request; NULL: the call waits for its turn */
	char *method, *path, *content_type, *body;
	uint32_t timeout_ms;
	unsigned attempts;
	bool too_large, takes_429, urgent;
	int (*stream)(const void *data, size_t n, void *arg);
	void (*done)(const struct kube_answer *answer, void *arg);
	void *arg;
	struct buf answer;
	struct kube_call *prev, *next;
};

struct kube {
	struct loop *loop;
	struct kubeconfig config;
	struct http *http;
	struct loop_timer *timer; /* timer for sending the next request */
	struct kube_call *waiting, *running;
	unsigned n_calls;
	uint64_t allowance, urgent_allowance, counted_ms;
	uint64_t hold_until_ms; /* end of a delay requested by the server */
	char last_error[ERR_TEXT_MAX]; /* why the server is not reachable; "": reachable */
	struct problem {
		char *key, *text; /* the failed operation and the reason; NULL: unused entry */
	} problems[KUBE_PROBLEMS_MAX];
	struct kube_written written[KUBE_WRITTEN_MAX];
	unsigned n_written;
	void (*changed)(void *arg);
	void *changed_arg;
};

bool kube_name_valid(const char *name, bool dots)
{
	size_t n = strnlen(name, KUBE_NAME_MAX + 1);
	return n && n <= KUBE_NAME_MAX && name[0] != '.' && name[0] != '-' &&
	       !name[strspn(name, dots ? "abcdefghijklmnopqrstuvwxyz0123456789-."
				       : "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

int kube_time(time_t t, char ret[KUBE_TIME_MAX])
{
	struct tm tm;
	*ret = '\0';
	if (!gmtime_r(&t, &tm))
		return -EINVAL;
	(void)strftime(ret, KUBE_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return 0;
}

uint32_t kube_jitter(uint32_t below)
{
	uint32_t random;
	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
		random = (uint32_t)clock_ns();
	return random % below;
}

uint32_t kube_backoff_next_ms(struct kube_backoff *b)
{
	uint32_t ms = (uint32_t)backoff_next_ms(&b->delay, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
	return ms / 2 + kube_jitter(ms / 2 + 1);
}

uint32_t kube_backoff_denied_ms(struct kube_backoff *b)
{
	if (b->n_denied == DENIED_SOON)
		return DENIED_MS;
	b->n_denied++;
	return kube_backoff_next_ms(b);
}

void kube_backoff_reset(struct kube_backoff *b)
{
	*b = (struct kube_backoff){.n_denied = 0};
}

/* ---- state for people ------------------------------------------------------------------------ */

static void tell_changed(const struct kube *k)
{
	if (k->changed)
		k->changed(k->changed_arg);
}

static void problem_fini(struct problem *p)
{
	free(p->key);
	free(p->text);
	*p = (struct problem){NULL, NULL};
}

static struct problem *find_problem(struct kube *k, const char *key)
{
	struct problem *room = NULL;
	for (unsigned i = 0; i < KUBE_PROBLEMS_MAX; i++) {
		if (k->problems[i].key && str_eq(k->problems[i].key, key))
			return &k->problems[i];
		if (!k->problems[i].key && !room)
			room = &k->problems[i];
	}
	return room;
}

void kube_set_problem(struct kube *k, const char *key, const char *text)
{
	struct problem *p = find_problem(k, key);
	bool same = !p || (p->text && text ? str_eq(p->text, text) : p->text == text);
	if (same)
		return;
	problem_fini(p);
	if (text)
		*p = (struct problem){strdup(key), strdup(text)};
	if (text && (!p->key || !p->text))
		problem_fini(p);
	tell_changed(k);
}

unsigned kube_problems(const struct kube *k, const char *ret[KUBE_PROBLEMS_MAX])
{
	unsigned n = 0;
	for (unsigned i = 0; i < KUBE_PROBLEMS_MAX; i++)
		if (k->problems[i].text)
			ret[n++] = k->problems[i].text;
	return n;
}

void kube_set_written(struct kube *k, const char *what)
{
	unsigned i = 0;
	while (i < k->n_written && !str_eq(k->written[i].what, what))
		i++;
	if (i == KUBE_WRITTEN_MAX)
		return;
	k->written[i] = (struct kube_written){what, (int64_t)(clock_wall_ns() / NS_PER_S)};
	if (i == k->n_written)
		k->n_written++;
	tell_changed(k);
}

unsigned kube_written(const struct kube *k, const struct kube_written **ret)
{
	*ret = k->written;
	return k->n_written;
}

DEFINE_GETTER_OF(kube_unreachable, const char *, const struct kube *k, k->last_error)
DEFINE_GETTER_OF(kube_server, const char *, const struct kube *k, k->config.server)

void kube_on_state(struct kube *k, void (*changed)(void *arg), void *arg)
{
	k->changed = changed;
	k->changed_arg = arg;
}

/* ---- rate limit ------------------------------------------------------------------------------ */

static void pump_later(struct kube *k, uint64_t delay_ms)
{
	(void)loop_timer_arm(k->timer, delay_ms);
}

static void kube_grow(uint64_t *allowance, uint64_t ms, uint64_t burst)
{
	*allowance += ms * KUBE_RATE_PER_S;
	if (*allowance > burst * REQUEST_COST)
		*allowance = burst * REQUEST_COST;
}

/* Returns the allowance from which the request is paid. */
static uint64_t *kube_allowance(struct kube *k, const struct kube_call *c)
{
	return c->urgent && k->urgent_allowance >= REQUEST_COST ? &k->urgent_allowance
								: &k->allowance;
}

/* Returns the milliseconds until this request may be sent; 0: now. */
static uint64_t wait_ms(struct kube *k, const struct kube_call *c)
{
	uint64_t now = clock_ms();
	kube_grow(&k->allowance, now - k->counted_ms, KUBE_BURST);
	kube_grow(&k->urgent_allowance, now - k->counted_ms, KUBE_URGENT_BURST);
	k->counted_ms = now;
	uint64_t allowance = *kube_allowance(k, c);
	if (now < k->hold_until_ms)
		return k->hold_until_ms - now;
	if (allowance >= REQUEST_COST)
		return 0;
	return (REQUEST_COST - allowance + KUBE_RATE_PER_S - 1) / KUBE_RATE_PER_S;
}

static void kube_hold(struct kube *k, uint32_t retry_after_s)
{
	uint32_t s = retry_after_s > KUBE_HOLD_MAX_S ? KUBE_HOLD_MAX_S : retry_after_s;
	uint64_t until = clock_ms() + UINT64_C(1000) * (s ? s : 1);
	if (until > k->hold_until_ms)
		k->hold_until_ms = until;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void call_free(struct kube_call *c)
{
	c->kube->n_calls--;
	http_cancel(c->http);
	free(c->method);
	free(c->path);
	free(c->content_type);
	free(c->body);
	buf_fini(&c->answer);
	free(c);
}

static void kube_do_answer(struct kube_call *c, int error, const char *text, json_t *body)
{
	const struct kube_answer a = {.error = error, .text = text, .body = body};
	void (*done)(const struct kube_answer *answer, void *arg) = c->done;
	void *arg = c->arg;
	DL_DELETE(c->kube->running, c);
	call_free(c);
	done(&a, arg);
}

static int error_of_status(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return -EACCES;
	case 404:
		return -ENOENT;
	case 409:
		return -EEXIST;
	case 410:
		return -ESTALE;
	default:
		return status >= 200 && status < 300			? 0
		       : status >= 400 && status < 500 && status != 429 ? -EINVAL
									: -EAGAIN;
	}
}

/* Composes the error text: status, remedy if known, and the server's message if there is one. */
static void kube_describe(const struct kube_call *c, unsigned status, const json_t *body, char *ret,
			  size_t size)
{
	const char *message = json_string_value(json_object_get(body, "message"));
	char remedy[RIGHTS_TEXT_MAX];
	rights_remedy(c->method, c->path, status, remedy, sizeof remedy);
	(void)snprintf(ret, size, "%s %.*s: %u%s%s%s%.500s", c->method, (int)strcspn(c->path, "?"),
		       c->path, status, *remedy ? ", " : "", remedy, message ? ": " : "",
		       message ? message : "");
	str_one_line(ret);
}

static void tell_reachable(struct kube *k, const char *why_not)
{
	if (str_eq(k->last_error, why_not))
		return;
	if (*why_not)
		log_warning("the API server %s: %s; retrying", k->config.server, why_not);
	else
		log_notice("the API server %s is reachable again", k->config.server);
	(void)snprintf(k->last_error, sizeof k->last_error, "%s", why_not);
	tell_changed(k);
}

static void kube_conclude(struct kube_call *c, unsigned status)
{
	json_error_t where;
	char text[ERR_TEXT_MAX] = "";
	size_t n = buf_len(&c->answer);
	json_t *body = n ? json_loadb((const char *)buf_bytes(&c->answer), n, 0, &where) : NULL;
	int error = error_of_status(status);
	if (error)
		kube_describe(c, status, body, text, sizeof text);
	else if (n && !body)
		error = -EBADMSG;
	if (error == -EBADMSG)
		(void)snprintf(text, sizeof text, "%s %.200s: the reply is not JSON: %.100s",
			       c->method, c->path, where.text);
	kube_do_answer(c, error, text, error ? NULL : body);
	json_decref(body);
	if (n >= LARGE_ANSWER)
		(void)malloc_trim(0);
}

static void kube_ended(const struct http_result *result, void *arg)
{
	struct kube_call *c = arg;
	struct kube *k = c->kube;
	char text[ERR_TEXT_MAX];
	c->http = NULL;
	if (!result->error)
		tell_reachable(k, "");
	bool later = (result->status == 429 && (!c->takes_429 || result->retry_after_s)) ||
		     (result->status == 503 && result->retry_after_s);
	if (!result->error && later) {
		kube_hold(k, result->retry_after_s);
		if (++c->attempts < KUBE_ATTEMPTS_MAX) {
			DL_DELETE(k->running, c);
			DL_PREPEND(k->waiting, c);
			buf_reset(&c->answer);
			pump_later(k, 0);
			return;
		}
	}
	if (!result->error) {
		kube_conclude(c, result->status);
		return;
	}
	if (result->error != -ECANCELED && !result->status)
		tell_reachable(k, result->text);
	(void)snprintf(text, sizeof text, "%s %.200s: %s", c->method, c->path,
		       c->too_large ? "the reply is too large" : result->text);
	kube_do_answer(c, c->too_large ? -E2BIG : result->error, text, NULL);
}

static int take_data(unsigned status, const void *data, size_t n, void *arg)
{
	struct kube_call *c = arg;
	if (c->stream && error_of_status(status) == 0)
		return c->stream(data, n, c->arg);
	c->too_large = n > KUBE_ANSWER_MAX - buf_len(&c->answer);
	return c->too_large ? -E2BIG : buf_add(&c->answer, data, n);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void kube_begin(struct kube *k, struct kube_call *c)
{
	struct err err = ERR_INIT;
	char *token = NULL;
	int r = kubeconfig_token(&k->config, &token, &err);
	const struct http_request request = {.method = c->method,
					     .path = c->path,
					     .content_type = c->content_type,
					     .body = c->body,
					     .token = token,
					     .timeout_ms = c->timeout_ms,
					     .data = take_data,
					     .done = kube_ended,
					     .arg = c};
	if (!r)
		c->http = http_start(k->http, &request, &err);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
	if (c->http)
		return;
	tell_reachable(k, err.text);
	kube_do_answer(c, err.code, err.text, NULL);
}

static void kube_pump(void *arg)
{
	struct kube *k = arg;
	uint64_t wait = 0;
	while (k->waiting && !(wait = wait_ms(k, k->waiting))) {
		struct kube_call *c = k->waiting;
		*kube_allowance(k, c) -= REQUEST_COST;
		DL_DELETE(k->waiting, c);
		DL_APPEND(k->running, c);
		kube_begin(k, c);
	}
	if (k->waiting)
		pump_later(k, wait);
}

static char *kube_copy(const char *text, bool *failed)
{
	char *s = text ? strdup(text) : NULL;
	*failed |= text && !s;
	return s;
}

struct kube_call *kube_call(struct kube *k, const struct kube_request *request)
{
	bool failed = false;
	struct kube_call *c = k->n_calls < KUBE_QUEUE_MAX ? calloc(1, sizeof *c) : NULL;
	if (!c)
		return NULL;
	k->n_calls++;
	c->kube = k;
	c->method = kube_copy(request->method, &failed);
	c->path = kube_copy(request->path, &failed);
	c->content_type = kube_copy(request->content_type, &failed);
	c->body = kube_copy(request->body, &failed);
	c->timeout_ms = request->timeout_ms ? request->timeout_ms : KUBE_TIMEOUT_MS;
	c->takes_429 = request->takes_429;
	c->urgent = request->urgent;
	c->stream = request->stream;
	c->done = request->done;
	c->arg = request->arg;
	if (failed) {
		call_free(c);
		return NULL;
	}
	if (c->urgent)
		DL_PREPEND(k->waiting, c);
	else
		DL_APPEND(k->waiting, c);
	pump_later(k, 0);
	return c;
}

struct kube_call *kube_cancel(struct kube_call *c)
{
	if (!c)
		return NULL;
	if (c->http)
		DL_DELETE(c->kube->running, c);
	else
		DL_DELETE(c->kube->waiting, c);
	call_free(c);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int kube_new(struct loop *loop, struct kubeconfig *config, struct kube **ret, struct err *err)
{
	struct kube *k = calloc(1, sizeof *k);
	if (!k) {
		kubeconfig_fini(config);
		return err_errno(err, -ENOMEM, "API server");
	}
	k->config = *config;
	*config = (struct kubeconfig){0};
	k->loop = loop;
	k->allowance = KUBE_BURST * REQUEST_COST;
	k->urgent_allowance = KUBE_URGENT_BURST * REQUEST_COST;
	k->counted_ms = clock_ms();
	k->timer = loop_timer_new(loop, kube_pump, k);
	int r = k->timer ? http_new(loop, &k->config, &k->http, err)
			 : err_errno(err, -ENOMEM, "API server");
	if (r)
		kube_free(k);
	else
		*ret = k;
	return r;
}

static void drop_calls(struct kube_call **list)
{
	struct kube_call *c, *next;
	DL_FOREACH_SAFE(*list, c, next)
	{
		DL_DELETE(*list, c);
		call_free(c);
	}
}

struct kube *kube_free(struct kube *k)
{
	if (!k)
		return NULL;
	drop_calls(&k->waiting);
	drop_calls(&k->running);
	http_free(k->http);
	for (unsigned i = 0; i < KUBE_PROBLEMS_MAX; i++)
		problem_fini(&k->problems[i]);
	loop_timer_free(k->timer);
	kubeconfig_fini(&k->config);
	free(k);
	return NULL;
}

DEFINE_GETTER_OF(kube_loop, struct loop *, const struct kube *k, k->loop)
DEFINE_GETTER_OF(kube_namespace, const char *, const struct kube *k, k->config.ns)
