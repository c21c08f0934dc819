/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's side of NRI: a socket that a plugin connects to, registers at, is configured and
 * synchronized on, and then gets events of pods and containers. Runs on the loop and never blocks.
 *
 *   no process ──connect──▶ accepted ──RegisterPlugin──▶ registered ──Configure──▶ configured ──Synchronize──▶ active
 *
 * One lock provides the order that plugins rely on. An event, a synchronization or an update holds
 * it from the request until its result is carried out. Turns are granted in the order of requests.
 * A plugin that is late, disconnects, or violates the protocol is dropped, and may reconnect.
 * Events are sent by separate methods or as StateChange, depending on the release.
 */
#pragma once

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

/* A turn that waits for the lock, in the caller's memory. */
struct nri_turn {
	void (*fn)(void *arg); /* called with the lock, which nri_runtime_unlock releases */
	void *arg;
	struct nri_turn *prev, *next;
};

struct nri_runtime_config {
	struct loop *loop;
	const char *socket;
	const char *name, *version; /* name and version of the simulated runtime */
	const struct nri_release *release;
	uint32_t registration_timeout_ms, request_timeout_ms;
	/* Called when a plugin has to be synchronized, with the lock; nri_runtime_synchronize has
	 * to be called, now or later. */
	void (*synchronize)(void *arg);
	/*
	 * Called for unsolicited updates of the plugin, with the lock. The messages are valid until
	 * nri_runtime_updated, which has to be called, now or later.
	 */
	void (*update)(const Nri__UpdateContainersRequest *m, void *arg);
	/* The following may be NULL. */
	/* came(): the plugin is synchronized and gets events from now on. gone(): the plugin has
	 * disconnected, whether or not it was active. */
	void (*came)(const char *plugin, void *arg);
	void (*gone)(bool was_active, const char *why, void *arg);
	/* Called when the plugin violates NRI's rules, also if the plugin is then disconnected. */
	void (*problem)(const char *what, void *arg);
	/* Inserts a filter between the plugin's socket and the runtime. Takes fd, also on failure;
	 * ret_fd is the runtime's end. The filter has to end with gone(). */
	int (*wrap)(int fd, int *ret_fd, struct err *err, void *arg);
	void *arg;
};

int nri_runtime_new(const struct nri_runtime_config *config, struct nri_runtime **ret,
		    struct err *err);
/* Frees the runtime. Calls end with -ECANCELED, and turns that wait are forgotten. Not inside a
 * callback. accepts NULL; returns NULL. */
struct nri_runtime *nri_runtime_free(struct nri_runtime *r);

bool nri_runtime_is_active(const struct nri_runtime *r);
/* Returns the plugin's name, "90-nri-rp"; "" before it has registered. */
const char *nri_runtime_plugin(const struct nri_runtime *r);
/* Returns true if a plugin is active and subscribed to the event. */
bool nri_runtime_is_subscribed(const struct nri_runtime *r, Nri__Event event);
/* Disconnects the plugin, if there is one. */
void nri_runtime_drop(struct nri_runtime *r, const char *why);
/* Sends Configure before the next registration is answered, for tests of plugins. */
void nri_runtime_configure_first(struct nri_runtime *r, bool first);
/* Calls turn->fn when the lock is free, perhaps within this call. */
void nri_runtime_lock(struct nri_runtime *r, struct nri_turn *turn);
void nri_runtime_unlock(struct nri_runtime *r);
/* Cancels a turn that waits. No effect if it does not wait. */
void nri_runtime_forget(struct nri_runtime *r, struct nri_turn *turn);

/* Event to send. */
struct nri_about {
	Nri__Event event;
	Nri__PodSandbox *pod;
	Nri__Container *ctr; /* container of the event; NULL: the event concerns the pod */
	Nri__LinuxResources *resources; /* resources of an updated container or pod */
	Nri__LinuxResources *overhead; /* overhead of an updated pod */
};

/*
 * Sends an event to the plugin, under the lock. timeout_ms 0: the runtime's default. Returns 0:
 * done is called exactly once, later, and the messages have to live until then; 1: no plugin is
 * subscribed; -errno: not sent.
 */
int nri_runtime_event(struct nri_runtime *r, const struct nri_about *about, uint64_t timeout_ms,
		      rpc_done done, void *arg);

/* Receives the outcome of Synchronize; NULL: no answer. Called with the lock, which has to be
 * released. */
typedef void (*nri_synchronized)(const Nri__SynchronizeResponse *m, void *arg);
/* All existing pods and containers. */
struct nri_existing {
	Nri__PodSandbox **pods;
	size_t n_pods;
	Nri__Container **ctrs;
	size_t n_ctrs;
	size_t part; /* largest number of pods, and of containers, per message; 0: as many as fit */
};
/*
 * Synchronizes the plugin, in parts if there are many objects. The lists have to live until done is
 * called, which is exactly once, perhaps within this call. The plugin is active when done is called
 * with an answer.
 */
void nri_runtime_synchronize(struct nri_runtime *r, const struct nri_existing *all,
			     nri_synchronized done, void *arg);
/* Disconnects a plugin because the existing objects are unknown. In place of
 * nri_runtime_synchronize; unlocks. */
void nri_runtime_not_synchronized(struct nri_runtime *r, const char *why);
/* Ends the plugin's unsolicited updates; failed: at least one failed. Unlocks. */
void nri_runtime_updated(struct nri_runtime *r, bool failed);
