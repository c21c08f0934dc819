/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "core/lib/util/buf.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"

#define LOG_SOURCE "watch"
#define VERSION_MAX 128u
#define CONTINUE_MAX 4096u
#define KEEP (64u << 10)
#define GONE 410

enum state { LISTING, WATCHING, RESTING };

struct watch {
	struct kube *kube;
	char *path, *selector; /* path and selectors as a part of a query; "": none */
	const char *key; /* separate key of the watch problem; NULL: the path */
	watch_fn fn;
	void *arg;
	enum state state;
	struct kube_call *call;
	struct loop_timer *timer;
	struct kube_backoff backoff;
	/* resourceVersion from which the watch continues; "": not listed yet */
	char version[VERSION_MAX];
	char next_page[CONTINUE_MAX]; /* token of the next page of the list; "": the first page */
	unsigned page; /* largest number of objects in a page */
	bool optional; /* an unavailable resource is not a problem */
	bool missing; /* the kind has not existed for some time */
	char last_error[ERR_TEXT_MAX]; /* last logged error */
	struct buf partial;
	int stream_error;
	uint64_t asked_ms;
};

/* ---- events of a stream ---------------------------------------------------------------------- */

int watch_feed(const struct watch_lines *l, const void *data, size_t n)
{
	const char *at = data;
	while (n) {
		const char *end = memchr(at, '\n', n);
		size_t len = end ? (size_t)(end - at) : n;
		int r = len > WATCH_OBJECT_MAX - buf_len(l->partial) ? -EMSGSIZE
								     : buf_add(l->partial, at, len);
		if (!r && end && buf_len(l->partial))
			r = l->line((const char *)buf_bytes(l->partial), buf_len(l->partial),
				    l->arg);
		if (r)
			return r;
		if (end)
			buf_reset(l->partial);
		at += len + (end != NULL);
		n -= len + (end != NULL);
	}
	buf_shrink(l->partial, KEEP);
	return 0;
}

static const char *version_of(const json_t *object)
{
	const char *v = json_string_value(kube_meta(object, "resourceVersion"));
	return v && *v && strlen(v) < VERSION_MAX ? v : NULL;
}

static int kind_of_event(const char *type, enum watch_event *ret)
{
	static const struct {
		const char *type;
		enum watch_event event;
	} types[] = {
		{"ADDED", WATCH_OBJECT},    {"MODIFIED", WATCH_OBJECT}, {"DELETED", WATCH_GONE},
		{"BOOKMARK", WATCH_LISTED}, {"ERROR", WATCH_DENIED},
	};
	for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
		if (str_eq(types[i].type, type)) {
			*ret = types[i].event;
			return 0;
		}
	return -EBADMSG;
}

int watch_parse(const char *text, size_t n, struct watch_message *ret)
{
	struct watch_message m = {.error = 0};
	json_t *top = json_loadb(text, n, 0, NULL);
	int r = kind_of_event(json_string_value(json_object_get(top, "type")), &m.event);
	m.object = json_incref(json_object_get(top, "object"));
	if (!json_is_object(m.object))
		r = -EBADMSG;
	if (!r && m.event == WATCH_DENIED)
		m.error = json_integer_value(json_object_get(m.object, "code")) == GONE ? -ESTALE
											: -EAGAIN;
	m.version = version_of(m.object);
	if (!r && m.event != WATCH_DENIED && !m.version)
		r = -EBADMSG;
	json_decref(top);
	if (r)
		json_decref(m.object);
	else
		*ret = m;
	return r;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void watch_ask(struct watch *w);

static void watch_rest(struct watch *w, uint32_t ms)
{
	w->state = RESTING;
	(void)loop_timer_arm(w->timer, ms);
}

static void watch_say(struct watch *w, enum log_level level, const char *text)
{
	if (str_eq(w->last_error, text))
		return;
	log_write(LOG_SOURCE, level, "%s", text);
	(void)snprintf(w->last_error, sizeof w->last_error, "%s", text);
}

static void watch_set_problem(const struct watch *w, const char *text)
{
	kube_set_problem(w->kube, w->key ? w->key : w->path, text);
}

static void list_anew(struct watch *w)
{
	w->version[0] = w->next_page[0] = '\0';
	w->state = LISTING;
}

/* Handles a missing right or kind. A server that has just started may not know all kinds; a kind is
 * absent only if it stays missing. */
static void watch_denied(struct watch *w, int error, const char *text)
{
	bool gone = error == -ENOENT && w->missing;
	uint32_t ms = kube_backoff_denied_ms(&w->backoff);
	w->missing = error == -ENOENT && ms == DENIED_MS;
	watch_say(w, w->optional ? LOG_INFO : LOG_WARNING, text);
	watch_set_problem(w, w->optional ? NULL : text);
	list_anew(w);
	w->fn(gone ? WATCH_NO_KIND : WATCH_DENIED, NULL, text, w->arg);
	watch_rest(w, ms);
}

static void watch_failed(struct watch *w, int error, const char *text)
{
	if (error == -EACCES || error == -ENOENT) {
		watch_denied(w, error, text);
		return;
	}
	if (error == -E2BIG && w->page > 1)
		w->page /= 2;
	if (error == -EBADMSG || error == -E2BIG || error == -EMSGSIZE || error == -EINVAL) {
		watch_say(w, LOG_WARNING, text);
		list_anew(w);
	}
	watch_rest(w, kube_backoff_next_ms(&w->backoff));
	w->fn(WATCH_FAILED, NULL, text, w->arg);
}

/* ---- watching -------------------------------------------------------------------------------- */

static int take_line(const char *text, size_t n, void *arg)
{
	struct watch *w = arg;
	struct watch_message m;
	w->stream_error = watch_parse(text, n, &m);
	if (w->stream_error)
		return w->stream_error;
	w->stream_error = m.error;
	if (m.version)
		(void)snprintf(w->version, sizeof w->version, "%s", m.version);
	if (m.event == WATCH_OBJECT || m.event == WATCH_GONE)
		w->fn(m.event, m.object, NULL, w->arg);
	if (!m.error)
		kube_backoff_reset(&w->backoff);
	json_decref(m.object);
	return w->stream_error;
}

static int take_stream(const void *data, size_t n, void *arg)
{
	struct watch *w = arg;
	const struct watch_lines lines = {&w->partial, take_line, w};
	int r = watch_feed(&lines, data, n);
	if (r && !w->stream_error)
		w->stream_error = r;
	return r;
}

static void stream_ended(const struct kube_answer *answer, void *arg)
{
	struct watch *w = arg;
	int error = w->stream_error ? w->stream_error : answer->error;
	w->call = NULL;
	buf_fini(&w->partial);
	w->stream_error = 0;
	if (clock_ms() - w->asked_ms >= BACKOFF_MAX_MS)
		kube_backoff_reset(&w->backoff);
	if (error == -ESTALE) {
		list_anew(w);
		watch_rest(w, kube_backoff_next_ms(&w->backoff));
		return;
	}
	if (!error || error == -ETIMEDOUT || error == -ECONNRESET) {
		watch_rest(w, kube_backoff_next_ms(&w->backoff));
		return;
	}
	watch_failed(w, error,
		     *answer->text && answer->error != -ECANCELED ? answer->text
								  : "invalid watch event");
}

/* ---- listing --------------------------------------------------------------------------------- */

static int take_page(struct watch *w, json_t *list)
{
	json_t *items = json_object_get(list, "items"), *item;
	const char *next = json_string_value(kube_meta(list, "continue"));
	const char *version = version_of(list);
	size_t i;
	if (!json_is_array(items) || !version || (next && strlen(next) >= CONTINUE_MAX))
		return -EBADMSG;
	if (!w->next_page[0])
		w->fn(WATCH_BEGIN, NULL, NULL, w->arg);
	json_array_foreach(items, i, item)
	{
		if (json_is_object(item))
			w->fn(WATCH_OBJECT, item, NULL, w->arg);
	}
	(void)snprintf(w->version, sizeof w->version, "%s", version);
	(void)snprintf(w->next_page, sizeof w->next_page, "%s", next ? next : "");
	if (w->next_page[0])
		return 0;
	w->state = WATCHING;
	w->missing = false;
	/* keep the delay of refusals: the right to list does not include the right to watch */
	w->backoff.delay.ms = 0;
	w->last_error[0] = '\0';
	watch_set_problem(w, NULL);
	w->fn(WATCH_LISTED, NULL, NULL, w->arg);
	return 0;
}

static void watch_listed(const struct kube_answer *answer, void *arg)
{
	struct watch *w = arg;
	w->call = NULL;
	int r = answer->error ? answer->error : take_page(w, answer->body);
	if (!r) {
		watch_ask(w);
		return;
	}
	/* The server may have lost the rest of the list, and the page would fail for ever. */
	list_anew(w);
	watch_failed(w, r, *answer->text ? answer->text : "invalid list");
}

/* ---- requests -------------------------------------------------------------------------------- */

static char *list_path(const struct watch *w)
{
	_free_ char *next = NULL;
	if (w->next_page[0]) {
		char *escaped = curl_easy_escape(NULL, w->next_page, 0);
		next = escaped ? str_printf("&continue=%s", escaped) : NULL;
		curl_free(escaped);
		if (!next)
			return NULL;
	}
	return str_printf("%s?limit=%u%s%s", w->path, w->page, w->selector, next ? next : "");
}

static char *stream_path(const struct watch *w, uint32_t seconds)
{
	return str_printf("%s?watch=true&allowWatchBookmarks=true&resourceVersion=%s"
			  "&timeoutSeconds=%u%s",
			  w->path, w->version, seconds, w->selector);
}

static void watch_ask(struct watch *w)
{
	uint32_t seconds = WATCH_SERVER_S - kube_jitter(WATCH_SERVER_S / 4);
	bool lists = w->version[0] == '\0' || w->next_page[0];
	_free_ char *path = lists ? list_path(w) : stream_path(w, seconds);
	const struct kube_request request = {
		.method = "GET",
		.path = path,
		.timeout_ms = lists ? 0 : (seconds + WATCH_GRACE_S) * 1000,
		.stream = lists ? NULL : take_stream,
		.done = lists ? watch_listed : stream_ended,
		.arg = w,
	};
	w->state = lists ? LISTING : WATCHING;
	w->asked_ms = clock_ms();
	w->call = path ? kube_call(w->kube, &request) : NULL;
	if (!w->call)
		watch_rest(w, kube_backoff_next_ms(&w->backoff));
}

static void ask_again(void *arg)
{
	watch_ask(arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static char *selector_query(const char *fields, const char *labels)
{
	char *f = curl_easy_escape(NULL, fields ? fields : "", 0);
	char *l = curl_easy_escape(NULL, labels ? labels : "", 0);
	char *query = f && l ? str_printf("%s%s%s%s", fields ? "&fieldSelector=" : "", f,
					  labels ? "&labelSelector=" : "", l)
			     : NULL;
	curl_free(f);
	curl_free(l);
	return query;
}

struct watch *watch_new(struct kube *k, const char *path, const char *field_selector, watch_fn fn,
			void *arg)
{
	return watch_new_labelled(k, path, field_selector, NULL, fn, arg);
}

struct watch *watch_new_labelled(struct kube *k, const char *path, const char *field_selector,
				 const char *label_selector, watch_fn fn, void *arg)
{
	struct watch *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->kube = k;
	w->page = WATCH_PAGE;
	w->fn = fn;
	w->arg = arg;
	w->path = strdup(path);
	w->selector = selector_query(field_selector, label_selector);
	w->timer = loop_timer_new(kube_loop(k), ask_again, w);
	if (!w->path || !w->selector || !w->timer)
		return watch_free(w);
	watch_ask(w);
	return w;
}

void watch_set_optional(struct watch *w)
{
	w->optional = true;
}

void watch_set_key(struct watch *w, const char *key)
{
	w->key = key;
}

struct watch *watch_free(struct watch *w)
{
	if (!w)
		return NULL;
	if (w->key)
		watch_set_problem(w, NULL);
	kube_cancel(w->call);
	loop_timer_free(w->timer);
	buf_fini(&w->partial);
	free(w->path);
	free(w->selector);
	free(w);
	return NULL;
}
