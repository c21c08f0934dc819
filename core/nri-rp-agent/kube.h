/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the API server, in the order of their calls, with a limited rate, as JSON. If the
 * server asks for a delay (429, or 503 with Retry-After), all requests wait for it, and the delayed
 * request is repeated.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "core/lib/kube/kubeconfig.h"
#include "core/lib/util/backoff.h"
#include "core/lib/util/loop.h"

#define KUBE_RATE_PER_S 5u
#define KUBE_BURST 40u /* covers the requests of a start, so that none waits for the rate */
#define KUBE_URGENT_BURST 100u /* additional burst of urgent requests */
#define KUBE_ANSWER_MAX (8u << 20) /* largest size of an answer that is not a stream, in bytes */
#define KUBE_QUEUE_MAX 256u /* limit of requests waiting or under way */
#define KUBE_TIMEOUT_MS 30000u
#define KUBE_ATTEMPTS_MAX 5u /* largest number of attempts of a request that the server delays */
/* longest delay requested by the server that is accepted, in seconds */
#define KUBE_HOLD_MAX_S 300u

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"
#define KUBE_JSON_PATCH "application/json-patch+json"
#define KUBE_APPLY_PATCH "application/apply-patch+yaml" /* JSON is valid YAML */
#define KUBE_JSON "application/json"

struct kube;
struct kube_call;

/* The answer to a request; valid during the callback. */
struct kube_answer {
	/*
 * 0: done; -EACCES: not permitted or not authenticated (401, 403); -ENOENT; -EEXIST: a conflict;
 * -ESTALE: 410 Gone; -EINVAL: the server refuses the content; -EAGAIN: temporary failure (429,
 * 5xx); -EBADMSG: invalid answer; -E2BIG: the answer is too long; -ECANCELED: stream() has ended
 * the call; -ETIMEDOUT, -ECONNRESET, -EPROTO: not reachable; -ENOMEM.
 */
	int error;
	const char *text; /* error text; "": no error */
	json_t *body; /* JSON body of the answer; NULL: none */
};

struct kube_request {
	const char *method, *path; /* method and path; copied, like the body */
	const char *content_type, *body; /* body of the request and its type; both NULL: no body */
	uint32_t timeout_ms; /* time limit of the request; 0: KUBE_TIMEOUT_MS */
	/* A pod waits for the answer: the request is sent before waiting ones, and has an allowance
	 * of its own in addition. */
	bool urgent;
	/* passes 429 to done() as -EAGAIN instead of repeating the request: in an eviction, 429 is
	 * the verdict about the pod */
	bool takes_429;
	/* Receives the body of a successful answer in pieces, in place of answer->body. A non-zero
	 * result ends the call. Must not start or cancel calls. */
	int (*stream)(const void *data, size_t n, void *arg);
	/* Called exactly once, unless the call is cancelled; never from inside kube_call. */
	void (*done)(const struct kube_answer *answer, void *arg);
	void *arg;
};

/* Takes over the content of k, even on failure. */
int kube_new(struct loop *loop, struct kubeconfig *k, struct kube **ret, struct err *err);
/* Drops all calls without calling done. Not from inside a callback. Accepts NULL; returns NULL. */
struct kube *kube_free(struct kube *k);
/* Queues a request. NULL: no memory, or KUBE_QUEUE_MAX requests are pending. */
struct kube_call *kube_call(struct kube *k, const struct kube_request *request);
/* Accepts NULL; returns NULL. */
struct kube_call *kube_cancel(struct kube_call *c);
/*
 * Problems to be shown to people. kube_set_problem records one under `key`, or removes it if text
 * is NULL. At most KUBE_PROBLEMS_MAX are stored.
 */
#define KUBE_PROBLEMS_MAX 16u
void kube_set_problem(struct kube *k, const char *key, const char *text);
unsigned kube_problems(const struct kube *k, const char *ret[KUBE_PROBLEMS_MAX]);
/* Records the latest write of each kind; `what` is a constant text. At most KUBE_WRITTEN_MAX are
 * stored. */
#define KUBE_WRITTEN_MAX 8u
struct kube_written {
	const char *what;
	int64_t time_s; /* time of the write, by the wall clock */
};
void kube_set_written(struct kube *k, const char *what);
unsigned kube_written(const struct kube *k, const struct kube_written **ret);
/* Returns why the API server is not reachable; "": it is. */
const char *kube_unreachable(const struct kube *k);
const char *kube_server(const struct kube *k);
/* Registers `changed`, which is called when a problem, a write or the reachability has changed,
 * from inside any function; it must not start or cancel calls. */
void kube_on_state(struct kube *k, void (*changed)(void *arg), void *arg);
struct loop *kube_loop(const struct kube *k);
const char *kube_namespace(const struct kube *k); /* the agent's; NULL: unknown */

/* Returns a member of an object's metadata; NULL: it has none. */
static inline json_t *kube_meta(const json_t *object, const char *key)
{
	return json_object_get(json_object_get(object, "metadata"), key);
}

/* Returns true for a name that can become a part of a path: lower-case letters, digits, '-' and, if
 * dots, '.'. The first character is a letter or digit, so that no name means another folder. */
bool kube_name_valid(const char *name, bool dots);
#define KUBE_NAME_MAX 253u /* longest name, in bytes */

#define KUBE_TIME_MAX 32u
/* Formats a time as "2026-01-31T12:00:00Z". -EINVAL: it has no date; *ret is empty then. */
int kube_time(time_t t, char ret[KUBE_TIME_MAX]);

/* Delays between retries: from 1 s, doubling up to 60 s. Each is chosen between half of the value
 * and the value, so that many agents do not retry at once. */
struct kube_backoff {
	struct backoff delay;
	unsigned n_denied; /* number of consecutive refusals */
};
uint32_t kube_jitter(uint32_t below); /* random number below `below` */
uint32_t kube_backoff_next_ms(struct kube_backoff *b);
#define BACKOFF_MIN_MS 1000u
#define BACKOFF_MAX_MS 60000u
/*
 * Returns the delay after a missing right or kind. An API server that has just started knows
 * neither its roles nor all kinds and refuses every request. Therefore the first refusals are
 * treated as other failures. Later requests are repeated every 20 seconds, so that restored rights
 * are noticed within 30 seconds.
 */
uint32_t kube_backoff_denied_ms(struct kube_backoff *b);
#define DENIED_SOON 5u
#define DENIED_MS 20000u
void kube_backoff_reset(struct kube_backoff *b);
