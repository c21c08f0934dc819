/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows the node's pods beyond their cgroups: names, labels, annotations, requests.
 *
 *   podlist.c  the pods and their source
 *   fetch.c    the kubelet's list: from its port without authentication (readonly) or with (secure)
 *   feed.c     nri-rp-agent's feed from the API server (agent)
 *
 * No function blocks. podlist_find returns what is known now, podlist_ask requests a new list, and
 * `changed` reports changes. A failed fetch changes nothing. A restarting kubelet lists no pods at
 * first, so an empty list is accepted only when it is the fifth in a row.
 */
#pragma once

#include <stdbool.h>

#include "core/lib/util/err.h"
#include "core/lib/util/loop.h"
#include "proto/agent.pb-c.h"

#define PODLIST_MAX 4096u /* largest number of pods */

enum pods_source { PODS_AUTO, PODS_READONLY, PODS_SECURE, PODS_AGENT, PODS_CGROUPFS };

struct podlist;

struct podlist_config {
	struct loop *loop;
	enum pods_source source;
	const char *kubelet; /* host name or address of the kubelet */
	unsigned readonly_port, secure_port;
	const char *token; /* file with the bearer token */
	const char *ca; /* file; NULL: the kubelet's certificate is not verified */
	const char *agent_socket;
	uint64_t poll_ms;
	void (*changed)(void *arg); /* not called from inside a function of this header */
	void *arg;
};

int podlist_new(const struct podlist_config *config, struct podlist **ret, struct err *err);
/* Accepts NULL; returns NULL. */
struct podlist *podlist_free(struct podlist *p);
/* Returns the pod, valid until changed(); NULL: unknown. */
const Agent__FedPod *podlist_find(const struct podlist *p, const char *uid);
/* Returns the milliseconds for which the pod has been missing from the lists; 0: it is listed, or
 * was never listed. */
uint64_t podlist_gone_ms(const struct podlist *p, const char *uid);
/* Returns true if an unknown pod may appear soon: a source exists and its last answer was valid. */
bool podlist_may_know(const struct podlist *p);
/* Requests a list of pods now, or as soon as the minimum interval between requests has passed. */
void podlist_ask(struct podlist *p);
/* Returns a status text for people, such as "secure: HTTP status 403": the source of the pods, or
 * why it fails. */
const char *podlist_state(const struct podlist *p);

/* ---- for the sources ------------------------------------------------------------------------- */

/* Updates the pods from a list: begin, one call for each pod, end. At the end, pods that were not
 * in the list are marked as missing. */
void podlist_begin(struct podlist *p);
void podlist_take(struct podlist *p, const Agent__FedPod *pod);
void podlist_end(struct podlist *p);
void podlist_forget(struct podlist *p, const char *uid);

/* Calls fn for each pod of a kubelet's list; the pod is valid during the call. -EBADMSG: the text
 * is not a list; -E2BIG: too many pods. */
int podlist_parse(const char *text, size_t n, void (*fn)(const Agent__FedPod *pod, void *arg),
		  void *arg, size_t *ret_n);
