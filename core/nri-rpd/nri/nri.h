/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI front end: connects the runtime's plugin connection with the pipeline.
 *
 *   nri.c         connecting, registering, reconnecting; the queue of unsolicited updates
 *   fallback.c    choice between two sockets
 *   handlers.c    the runtime's calls, in both forms (own methods and StateChange)
 *   sync.c        the parts of Synchronize, an object at a time
 *   wait.c        deferred requests and those that wait behind them
 *   decode.c      packed pods and containers into descriptions
 *   encode.c      replies into messages that point into the cache
 *   abilities.c   abilities of a runtime, by its name and version
 *
 *            ┌────────── socket missing, refused, closed: 50 ms doubling to 2 s ──────────┐
 *            ▼                                                                            │
 *   (waiting) ──connect──▶ registering ──Configure──▶ configured ──last Synchronize──▶ synchronized
 *
 * Configure and the answer to the registration arrive in any order. Unsolicited updates are sent
 * only when the connection is synchronized, while no request of the runtime is being handled and no
 * other batch is pending.
 */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/loop.h"

struct nri;

struct nri_config {
	struct loop *loop;
	struct pipeline *pipeline;
	const char *socket, *name;
	/* another socket for when the first is not available; NULL, "": none */
	const char *fallback;
	uint64_t fallback_after_ms;
	unsigned index;
	int inherited_fd; /* connection from a runtime that has started the daemon; else -1 */
	/* Called when an inherited connection has ended, because the daemon cannot reconnect. */
	void (*orphaned)(void *arg);
	void *arg;
};

/* Creates the front end and starts connecting. */
int nri_new(const struct nri_config *config, struct nri **ret, struct err *err);
struct nri *nri_free(struct nri *nri);
/* Notifies the front end that the pipeline has updates to send. */
void nri_updates_ready(struct nri *nri);
/* Takes over the sockets, fallback_after_ms, name and index of `config`, and reconnects if one of
 * those that the connection depends on has changed. An inherited connection is unchanged. */
int nri_set_runtime(struct nri *nri, const struct nri_config *config);

/* Ends the connection and connects again. */
void nri_restart(struct nri *nri, const char *why);

/* Reconnects as soon as no work is pending. */
void nri_renew(struct nri *nri);
void nri_kick(struct nri *nri);

/* Returns the memory of a large message to the system, soon. */
void nri_give_back(struct nri *nri);
