/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NRI front end: the runtime's plugin connection on one side, the pipeline on the other.
 *
 *   nri.c         connecting, registering, coming back for ever; the queue of unsolicited updates
 *   fallback.c    which of two sockets it is
 *   handlers.c    the runtime's calls, in both forms (own methods and StateChange)
 *   sync.c        the parts of Synchronize, an object at a time
 *   wait.c        requests that wait for devices to be known, and those behind them
 *   decode.c      packed pods and containers into descriptions
 *   encode.c      replies into messages that point into the cache
 *
 *            ┌────────── socket missing, refused, closed: 50 ms doubling to 2 s ──────────┐
 *            ▼                                                                            │
 *   (waiting) ──connect──▶ registering ──Configure──▶ configured ──last Synchronize──▶ synchronized
 *
 * The order Configure and the answer to our registration come in is not fixed. Unsolicited updates
 * leave only when synchronized, with no request of the runtime being handled and no other batch
 * under way.
 */
#ifndef RUNTIME_NRI_H
#define RUNTIME_NRI_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/lib/util/loop.h"

struct nri;

struct nri_config {
	struct loop *loop;
	struct pipeline *pipeline;
	const char *socket, *name;
	const char *fallback; /* another socket, for when the first is away; NULL, "": none */
	uint64_t fallback_after_ms;
	unsigned index;
	int inherited_fd; /* the runtime has started us: its end of the connection; else -1 */
	/* The connection that was inherited has ended: there is no other. */
	void (*orphaned)(void *arg);
	void *arg;
};

/* Starts connecting. */
int nri_new(const struct nri_config *config, struct nri **ret, struct err *err);
struct nri *nri_free(struct nri *nri);
/* The pipeline has updates to send. */
void nri_updates_ready(struct nri *nri);
/* Takes over the sockets, fallback_after_ms, name and index of `config`, and connects anew if what
 * the connection stands on is different. Of no effect on a connection that was inherited. */
int nri_set_runtime(struct nri *nri, const struct nri_config *config);

/* Ends the connection and starts over. */
void nri_restart(struct nri *nri, const char *why);

/* Connects anew as soon as nothing is under way. */
void nri_renew(struct nri *nri);
void nri_kick(struct nri *nri);

/* Soon: gives the memory that a large message took back to the system. */
void nri_give_back(struct nri *nri);

#endif
