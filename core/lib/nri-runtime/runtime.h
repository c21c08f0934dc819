/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NRI, the runtime's side: a socket that a plugin connects to, registers, is configured and
 * synchronised, and is then asked about what happens to pods and containers. On the loop; nothing
 * waits.
 *
 *   nobody ──connect──▶ accepted ──RegisterPlugin──▶ registered ──Configure──▶ configured ──Synchronize──▶ active
 *
 * One lock keeps the order that plugins rely on: whoever asks, synchronises or carries out updates
 * has it, from the question until what the answer wants is done. Turns are given in the order in
 * which they were asked for. A plugin that is late, closes, or breaks the protocol is dropped, and
 * may come again. Events go by methods of their own or as StateChange, whichever the release has.
 */
#ifndef NRI_RUNTIME_RUNTIME_H
#define NRI_RUNTIME_RUNTIME_H

#include "core/lib/nri-runtime/release.h"
#include "core/lib/util/loop.h"
#include "core/lib/wire/rpc.h"
#include "proto/nri.pb-c.h"

struct nri_runtime;

enum nri_runtime_state {
	NRI_RUNTIME_NOBODY,
	NRI_RUNTIME_ACCEPTED,
	NRI_RUNTIME_REGISTERED,
	NRI_RUNTIME_CONFIGURED,
	NRI_RUNTIME_ACTIVE,
};

/* Somebody who waits for the lock; the caller's memory. */
struct nri_turn {
	void (*fn)(void *arg); /* the lock is yours, until nri_runtime_unlock */
	void *arg;
	struct nri_turn *prev, *next;
};

struct nri_runtime_config {
	struct loop *loop;
	const char *socket;
	const char *name, *version; /* of the runtime that is played */
	const struct nri_release *release;
	uint32_t registration_timeout_ms, request_timeout_ms;
	/* A plugin wants to know of all there is. The lock is yours; nri_runtime_synchronize, now
	 * or later. */
	void (*synchronize)(void *arg);
	/*
	 * The plugin asks for updates by itself. The lock is yours; the messages are valid until
	 * nri_runtime_updated, which has to be called, now or later.
	 */
	void (*update)(const Nri__UpdateContainersRequest *m, void *arg);
	/* The following may be NULL. */
	/* Synchronized, and asked from now on; and no more, whether it ever was. */
	void (*came)(const char *plugin, void *arg);
	void (*gone)(bool was_active, const char *why, void *arg);
	/* The plugin does not do as NRI wants it to; what it is dropped for, too. */
	void (*problem)(const char *what, void *arg);
	/* Something between its socket and us: takes fd, also when this fails; our end goes to
	 * ret_fd. What is there is to go with gone. */
	int (*wrap)(int fd, int *ret_fd, struct err *err, void *arg);
	void *arg;
};

int nri_runtime_new(const struct nri_runtime_config *config, struct nri_runtime **ret,
		    struct err *err);
/* Questions end with -ECANCELED; turns that were not given are forgotten. Not from inside a
 * callback. NULL is fine; returns NULL. */
struct nri_runtime *nri_runtime_free(struct nri_runtime *r);

bool nri_runtime_is_active(const struct nri_runtime *r);
/* "90-nri-rp"; "" before it has registered. */
const char *nri_runtime_plugin(const struct nri_runtime *r);
/* Whether a plugin is active and wants to hear of an event. */
bool nri_runtime_is_subscribed(const struct nri_runtime *r, Nri__Event event);
/* Lets go of the plugin, if there is one. */
void nri_runtime_drop(struct nri_runtime *r, const char *why);
/* For tests of plugins: Configure goes out before the next registration is answered. */
void nri_runtime_configure_first(struct nri_runtime *r, bool first);
/* The name of an event's own method. */
const char *nri_runtime_method(Nri__Event event);
/* Calls turn->fn when the lock is free, perhaps from inside. */
void nri_runtime_lock(struct nri_runtime *r, struct nri_turn *turn);
void nri_runtime_unlock(struct nri_runtime *r);
/* Does not wait any more. Nothing happens when the turn was not waiting. */
void nri_runtime_forget(struct nri_runtime *r, struct nri_turn *turn);

/* What is asked or told. */
struct nri_about {
	Nri__Event event;
	Nri__PodSandbox *pod;
	Nri__Container *ctr; /* NULL: an event of the pod */
	Nri__LinuxResources *resources; /* of an update of a container or a pod */
	Nri__LinuxResources *overhead; /* of the latter */
};

/*
 * Asks or tells the plugin, under the lock. timeout_ms 0: the runtime's own. 0: done is called
 * exactly once, not from inside, and the messages live until then; 1: nobody listens, or not to
 * this; -errno: not sent.
 */
int nri_runtime_event(struct nri_runtime *r, const struct nri_about *about, uint64_t timeout_ms,
		      rpc_done done, void *arg);

/* How Synchronize ended: NULL: without an answer. Under the lock, which is then to be given
 * back. */
typedef void (*nri_synchronized)(const Nri__SynchronizeResponse *m, void *arg);
/* All that there is. */
struct nri_existing {
	Nri__PodSandbox **pods;
	size_t n_pods;
	Nri__Container **ctrs;
	size_t n_ctrs;
	size_t part; /* so many of each in a message; 0: as many as fit */
};
/*
 * In parts where they are many. The lists live until done is called, which is exactly once, perhaps
 * from inside. The plugin is active when done is called with an answer.
 */
void nri_runtime_synchronize(struct nri_runtime *r, const struct nri_existing *all,
			     nri_synchronized done, void *arg);
/* Lets a plugin go, as there is nothing that says what exists. In place of nri_runtime_synchronize;
 * unlocks. */
void nri_runtime_not_synchronized(struct nri_runtime *r, const char *why);
/* The updates that the plugin asked for are done; failed: it could not be done for all. Unlocks. */
void nri_runtime_updated(struct nri_runtime *r, bool failed);

#endif
