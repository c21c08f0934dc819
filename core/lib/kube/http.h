/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests to the API server on the loop (libcurl inside, nothing of it outside): TLS, HTTP/2
 * with all requests on one connection, keep-alive and proxies are libcurl's. Answers are handed on
 * in pieces as they come; who takes them bounds them.
 */
#ifndef KUBE_HTTP_H
#define KUBE_HTTP_H

#include "core/lib/kube/kubeconfig.h"
#include "core/lib/util/loop.h"

struct http;
struct http_call;

/* How a request ended. Valid during the callback only. */
struct http_result {
	/*
	 * 0: there is an answer, whatever its status; -ETIMEDOUT; -EPROTO: the TLS connection could
	 * not be made; -ECANCELED: data() has ended it; -ECONNRESET: everything else.
	 */
	int error;
	unsigned status; /* 0: none came */
	uint32_t retry_after_s; /* what the server asks for; 0: nothing */
	const char *text; /* of the error */
};

struct http_request {
	const char *method;
	const char *path; /* with the query, from the first slash on */
	const char *content_type; /* NULL: no body */
	const char *body; /* has to live until the end of the call */
	const char *token; /* NULL: none */
	uint32_t timeout_ms; /* for all of it */
	/* A piece of the answer's body; not 0 ends the call with -ECANCELED. It must not start or
	 * cancel calls. */
	int (*data)(unsigned status, const void *data, size_t n, void *arg);
	/* Called exactly once, never from inside http_start; not after http_cancel. */
	void (*done)(const struct http_result *result, void *arg);
	void *arg;
};

/* k has to live as long as it. */
int http_new(struct loop *loop, const struct kubeconfig *k, struct http **ret, struct err *err);
/* Calls under way are canceled. Not from inside a callback. NULL is fine; returns NULL. */
struct http *http_free(struct http *h);
/* NULL with err when it cannot even be begun. */
struct http_call *http_start(struct http *h, const struct http_request *request, struct err *err);
/* Not from inside data() of any call. NULL is fine; returns NULL. */
struct http_call *http_cancel(struct http_call *c);

#endif
