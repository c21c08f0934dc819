/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to nri-rpd, or, for pods only, to nri-rp-bridge. The agent connects and registers,
 * the peer then calls. A lost connection is retried without limit, with back-off. The agent is the
 * side that connects for two reasons: the daemon, which is root, opens no path made by another
 * user, and it identifies the agent by the credentials of a connection to its own socket.
 */
#pragma once

#include "core/nri-rp-agent/podres.h"
#include "core/lib/wire/rpc.h"

struct link;
struct plugins;

/* Callbacks for requests of the daemon other than those about devices and plugins. All but
 * connected may be NULL. */
struct link_client {
	/* The agent has registered, and the peer has answered `m`. Everything sent over an earlier
	 * connection is void. */
	void (*connected)(const Agent__RegisterResponse *m, void *arg);
	/* Called when the connection is lost or could not be established; may be NULL. */
	void (*lost)(void *arg);
	/* New data to publish. Returns 0, or the error why it cannot be published. NULL: the client
	 * is not the cluster's. */
	int (*publish)(const Agent__PublishedRequest *m, void *arg);
	/* Called for events that the agent is to write to the cluster. */
	void (*tell)(const Agent__TellRequest *m, void *arg);
	/* A pod to evict. Answers req, possibly later. */
	void (*evict)(const Agent__EvictRequest *m, struct rpc_request *req, void *arg);
	/* The pods of a claim may have changed. Answers req, possibly later. */
	void (*check_claim)(const Agent__Claim *m, struct rpc_request *req, void *arg);
	void *arg;
};

/* Creates a link. peer: name for people. podres must outlive the link; NULL: no answers about
 * devices. */
int link_new(struct loop *loop, const char *peer, const char *socket, struct podres *podres,
	     struct link **ret, struct err *err);
struct link *link_free(struct link *l); /* accepts NULL; returns NULL */
/* Sets the callbacks. Call before link_connect; `client` must live as long as the link. */
void link_set_client(struct link *l, const struct link_client *client);
/* Sets the handler of requests about resource plugins; NULL: none. Call before link_connect;
 * `plugins` must live until link_free. */
void link_set_plugins(struct link *l, struct plugins *plugins);
/* Starts connecting. */
void link_connect(struct link *l);
/* Calls the daemon like rpc_call; -ENOTCONN: not registered. */
int link_call(struct link *l, const char *method, const ProtobufCMessage *msg, uint64_t timeout_ms,
	      rpc_done done, void *arg);
