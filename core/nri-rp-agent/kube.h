/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the API server: as many a second as is polite, in the order in which they were asked
 * for, JSON in and out. A server that says when to come back (429, 503 with Retry-After) is obeyed
 * by all requests, and asked again.
 */
#ifndef NRI_RP_AGENT_KUBE_H
#define NRI_RP_AGENT_KUBE_H

#include <jansson.h>
#include <stdbool.h>

#include "core/lib/kube/kubeconfig.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/loop.h"

#define KUBE_RATE_PER_S 5u
#define KUBE_BURST 10u
#define KUBE_ANSWER_MAX (8u << 20) /* bytes of one answer that is no stream */
#define KUBE_QUEUE_MAX 256u /* requests that wait or are under way */
#define KUBE_TIMEOUT_MS 30000u
#define KUBE_ATTEMPTS_MAX 5u /* of a request that the server puts off */
#define KUBE_HOLD_MAX_S 300u /* that it may put it off for at a time */

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_JSON_PATCH "application/json-patch+json"
#define KUBE_APPLY_PATCH "application/apply-patch+yaml" /* JSON is YAML */
#define KUBE_JSON "application/json"

struct kube;
struct kube_call;

/* Valid during the callback only. */
struct kube_answer {
	/*
	 * 0: done; -EACCES: we may not, or are not known (401, 403); -ENOENT; -EEXIST: a conflict;
	 * -ESTALE: 410 Gone; -EINVAL: the server refuses what it was sent; -EAGAIN: it cannot now
	 * (429, 5xx); -EBADMSG: its answer makes no sense; -E2BIG: it is too large; -ECANCELED:
	 * stream() has ended it; -ETIMEDOUT, -ECONNRESET, -EPROTO: it cannot be reached; -ENOMEM.
	 */
	int error;
	const char *text; /* "": no error */
	json_t *body; /* NULL: none */
};

struct kube_request {
	const char *method, *path; /* copied, as is the body */
	const char *content_type, *body; /* NULL: none */
	uint32_t timeout_ms; /* 0: KUBE_TIMEOUT_MS */
	bool takes_429; /* it may be about the object: an answer like others, -EAGAIN */
	/* The body of a good answer in pieces, instead of answer->body; not 0 ends the call. Must
	 * not start or cancel calls. */
	int (*stream)(const void *data, size_t n, void *arg);
	/* Called exactly once, never from inside kube_call; not after kube_cancel. */
	void (*done)(const struct kube_answer *answer, void *arg);
	void *arg;
};

/* Takes what k holds over, also when this fails. */
int kube_new(struct loop *loop, struct kubeconfig *k, struct kube **ret, struct err *err);
/* Calls that wait or are under way are dropped. Not from inside a callback. NULL is fine; returns
 * NULL. */
struct kube *kube_free(struct kube *k);
/* NULL: no memory, or KUBE_QUEUE_MAX are waiting. */
struct kube_call *kube_call(struct kube *k, const struct kube_request *request);
/* NULL is fine; returns NULL. */
struct kube_call *kube_cancel(struct kube_call *c);
/*
 * What is off: `key` names it, NULL for text says that it is not any more. Told to people by
 * whoever listens; at most KUBE_PROBLEMS_MAX are kept.
 */
#define KUBE_PROBLEMS_MAX 16u
void kube_set_problem(struct kube *k, const char *key, const char *text);
unsigned kube_problems(const struct kube *k, const char *ret[KUBE_PROBLEMS_MAX]);
/* What was written last, told like that: `what` is a constant text; at most KUBE_WRITTEN_MAX. */
#define KUBE_WRITTEN_MAX 8u
struct kube_written {
	const char *what;
	int64_t time_s; /* wall clock */
};
void kube_set_written(struct kube *k, const char *what);
unsigned kube_written(const struct kube *k, const struct kube_written **ret);
const char *kube_unreachable(
	const struct kube *k); /* why the server does not answer; "": it does */
const char *kube_server(const struct kube *k);
/* Called when one of these has changed, from anywhere; it must not start or cancel calls. */
void kube_on_state(struct kube *k, void (*changed)(void *arg), void *arg);
struct loop *kube_loop(const struct kube *k);
const char *kube_namespace(const struct kube *k); /* ours; NULL: nobody says */

/* Once more later: 1 s doubling to 60 s, each time between half of that and all of it, so that a
 * thousand agents do not come at once. */
struct kube_backoff {
	struct backoff delay;
	unsigned n_denied; /* in a row */
};
uint32_t kube_jitter(uint32_t below); /* 0 … below - 1 */
uint32_t kube_backoff_next_ms(struct kube_backoff *b);
#define BACKOFF_MIN_MS 1000u
#define BACKOFF_MAX_MS 60000u
/*
 * The same where we may not, or there is no such thing. A server that has only just started knows
 * neither its roles nor all of its kinds, and says so of everybody: the first few times it is asked
 * again as after any failure, then every 20 seconds, so that rights that are given back are noticed
 * within 30.
 */
uint32_t kube_backoff_denied_ms(struct kube_backoff *b);
#define DENIED_SOON 5u
#define DENIED_MS 20000u
void kube_backoff_reset(struct kube_backoff *b);

#endif
