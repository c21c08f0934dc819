/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to nri-rpd, or to nri-rp-bridge for the pods alone: the agent connects and
 * registers, the peer calls. It comes back for ever, with back-off. That it is the agent who
 * connects has two reasons: the daemon, being root, opens no path that another user has made, and
 * knows who is there by the credentials of a socket of its own.
 */
#ifndef NRI_RP_AGENT_LINK_H
#define NRI_RP_AGENT_LINK_H

#include "core/nri-rp-agent/podres.h"
#include "core/lib/wire/rpc.h"

struct link;
struct plugins;

/* Who talks to the daemon besides the answers about pods. All but the first may be NULL. */
struct link_client {
	/* Registered, once more: nothing of what was sent before counts. */
	void (*connected)(void *arg);
	/* What is to be published; 0, or why it cannot be. */
	int (*publish)(const Agent__PublishedRequest *m, void *arg);
	/* Events for people. */
	void (*tell)(const Agent__TellRequest *m, void *arg);
	/* A pod is to be evicted. Answers req, perhaps later. */
	void (*evict)(const Agent__EvictRequest *m, struct rpc_request *req, void *arg);
	void *arg;
};

/* peer: its name, for people. podres has to outlive it; NULL: nothing is said of devices. */
int link_new(struct loop *loop, const char *peer, const char *socket, struct podres *podres,
	     struct link **ret, struct err *err);
struct link *link_free(struct link *l); /* returns NULL; NULL is fine */
/* Before link_connect; what it points to has to live as long as the link. */
void link_set_client(struct link *l, const struct link_client *client);
/* Who answers about resource plugins; NULL: nobody. Before link_connect, and until the link is
 * freed. */
void link_set_plugins(struct link *l, struct plugins *plugins);
/* Starts connecting. */
void link_connect(struct link *l);
/* Calls the daemon, as rpc_call does; -ENOTCONN: not registered. */
int link_call(struct link *l, const char *method, const ProtobufCMessage *msg, uint64_t timeout_ms,
	      rpc_done done, void *arg);

#endif
