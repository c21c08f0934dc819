/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP requests to the API server on the loop; hides libcurl, which handles TLS, HTTP/2 with all
 * requests on one connection, keep-alive and proxies. Answers are passed on in pieces as they
 * arrive; the receiver limits their size.
 */
#pragma once

#include "core/lib/kube/kubeconfig.h"
#include "core/lib/util/loop.h"

struct http;
struct http_call;

/* Outcome of a request. Valid during the callback only. */
struct http_result {
	/*
	 * 0: there is an answer, of any status; -ETIMEDOUT; -EPROTO: the TLS connection failed;
	 * -ECANCELED: data() has ended the request; -ECONNRESET: any other failure
	 */
	int error;
	unsigned status; /* HTTP status of the answer; 0: none was received */
	uint32_t retry_after_s; /* delay that the server requests; 0: none */
	const char *text; /* text of the error */
};

struct http_request {
	const char *method;
	const char *path; /* path and query, from the first slash on */
	const char *content_type; /* type of the request's body; NULL: there is no body */
	const char *body; /* borrowed until the end of the call */
	const char *token; /* bearer token of the request; NULL: none */
	uint32_t timeout_ms; /* time limit of the whole request */
	/* Receives a piece of the answer's body. A non-zero result ends the call with -ECANCELED.
	 * It must not start or cancel calls. */
	int (*data)(unsigned status, const void *data, size_t n, void *arg);
	/* Called exactly once, never from inside http_start; not after http_cancel. */
	void (*done)(const struct http_result *result, void *arg);
	void *arg;
};

/* Creates a client. k has to live as long as the client. */
int http_new(struct loop *loop, const struct kubeconfig *k, struct http **ret, struct err *err);
/* Frees the client and cancels its calls. Not inside a callback. accepts NULL; returns NULL. */
struct http *http_free(struct http *h);
/* Starts a request. Returns NULL with err if the request failed at once. */
struct http_call *http_start(struct http *h, const struct http_request *request, struct err *err);
/* Cancels a call. Not inside data() of any call. accepts NULL; returns NULL. */
struct http_call *http_cancel(struct http_call *c);
