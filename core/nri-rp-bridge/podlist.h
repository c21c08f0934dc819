/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the node's pods besides their cgroups: names, labels, annotations, requests.
 *
 *   podlist.c  the pods, and which source they are from
 *   fetch.c    the kubelet's list: its port without authentication (readonly), or with (secure)
 *   feed.c     nri-rp-agent's feed, which is from the API server (agent)
 *
 * Nobody waits here: what is known is looked up, what is not may be asked for, and it is told when
 * something has changed. A fetch that fails changes nothing. A list without any pod is believed
 * when it is the fifth in a row, as a kubelet that restarts has none at first.
 */
#ifndef NRI_RP_BRIDGE_PODLIST_H
#define NRI_RP_BRIDGE_PODLIST_H

#include <stdbool.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "proto/agent.pb-c.h"

#define PODLIST_MAX 4096u /* pods */

enum pods_source { PODS_AUTO, PODS_READONLY, PODS_SECURE, PODS_AGENT, PODS_CGROUPFS };

struct podlist;

struct podlist_config {
	struct loop *loop;
	enum pods_source source;
	const char *kubelet; /* host */
	unsigned readonly_port, secure_port;
	const char *token; /* file */
	const char *ca; /* file; NULL: the kubelet's certificate is not checked */
	const char *agent_socket;
	uint64_t poll_ms;
	void (*changed)(void *arg); /* not from inside of a call */
	void *arg;
};

int podlist_new(const struct podlist_config *config, struct podlist **ret, struct err *err);
/* NULL is fine; returns NULL. */
struct podlist *podlist_free(struct podlist *p);
/* Valid until changed(); NULL: it is not known. */
const Agent__FedPod *podlist_find(const struct podlist *p, const char *uid);
/* It is known to be no pod of this node any more, and for how long: in ms; 0: it is one, or nobody
 * knows. */
uint64_t podlist_gone_ms(const struct podlist *p, const char *uid);
/* A pod that is not known yet may be soon: there is a source, and its last answer was one. */
bool podlist_may_know(const struct podlist *p);
/* Asks now, or as soon as the kubelet may be asked again. */
void podlist_ask(struct podlist *p);
/* "secure: HTTP status 403", for people; by what pods are known now. */
const char *podlist_state(const struct podlist *p);

/* ---- between the files ---- */

/* A list begins; pods of it; and its end, when what was not in it is gone. */
void podlist_begin(struct podlist *p);
void podlist_take(struct podlist *p, const Agent__FedPod *pod);
void podlist_end(struct podlist *p);
void podlist_forget(struct podlist *p, const char *uid);

struct fetch;
struct feed;

/* One GET of /pods. text: why there is none, valid during the call; NULL: body has it. */
typedef void (*fetched)(const char *text, const char *body, size_t n, void *arg);
int fetch_new(const struct podlist_config *config, fetched done, void *arg, struct fetch **ret,
	      struct err *err);
struct fetch *fetch_free(struct fetch *f);
/* Its token can be read, and the kubelet's certificate is checked: else whoever listens at the port
 * is shown the token, which has to be asked for by name. */
bool fetch_may_be_secure(const struct fetch *f);
/* done is called once, not from inside. */
void fetch_begin(struct fetch *f, bool secure);

/* connected: it has told all its pods; or is gone. */
int feed_new(const struct podlist_config *config, struct podlist *p,
	     void (*told)(bool connected, void *arg), struct feed **ret, struct err *err);
struct feed *feed_free(struct feed *f);
/* It has begun to tell all, and has not told the last of it. */
bool feed_is_telling(const struct feed *f);

/* Calls fn for each pod of a kubelet's list, valid during that. -EBADMSG: it is none; -E2BIG. */
int podlist_parse(const char *text, size_t n, void (*fn)(const Agent__FedPod *pod, void *arg),
		  void *arg, size_t *ret_n);

#endif
