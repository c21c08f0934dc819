/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin, as both sources have it: the runtime's side of NRI with the pods and containers that
 * the plugin knows, the plugin's connection, and requests and events (notices) for it. A source
 * decides what to send and carries out the answers.
 */
#pragma once

#include "core/nri-rp-bridge/model.h"
#include "core/lib/nri-runtime/runtime.h"

#define ARENA_BLOCK (16u << 10)
#define ARENA_MAX                                                                                  \
	(64u << 20) /* limit for one call: its message, the unpacked form and the answer */
#define QUESTION_MS 1500u /* longest time that the plugin has to answer */

struct notice;

struct plugin_config {
	struct loop *loop;
	const char *socket; /* path of the socket to which plugins connect */
	const char *name; /* name of the emulated runtime */
	const char *without; /* text for log messages: what happens without a plugin */
	bool creates; /* the plugin places a container before the runtime creates it */
	/* Callbacks; all get the plugin. Callbacks of NRI are described in struct
	 * nri_runtime_config. */
	void (*synchronize)(void *plugin);
	void (*update)(const Nri__UpdateContainersRequest *m, void *plugin);
	void (*came)(const char *name, void *plugin);
	void (*gone)(void *plugin); /* the plugin has disconnected; may be NULL */
	/* Handles the answer to a notice: NULL if the plugin does not subscribe to the event.
	 * notice_end() has to be called, now or later. */
	void (*heard)(struct notice *n, const struct rpc_result *result, void *plugin);
};

/* The first member of both sources. */
struct plugin {
	struct plugin_config config;
	struct nri_runtime *nri;
	struct model model;
	struct notice *notices;
};

int plugin_open(struct plugin *p, const struct plugin_config *config, struct err *err);
/* Disconnects the plugin and frees the notices. Accepts a zeroed plugin. */
void plugin_close(struct plugin *p);

/* Calls fn for each update of a list with the container and what to set, except for the container
 * with the id `except`. Returns the number of updates that failed, each of which is logged. */
unsigned plugin_updates(struct plugin *p, Nri__ContainerUpdate *const *list, size_t n,
			const char *except,
			int (*fn)(struct ctr *ctr, const Nri__ContainerUpdate *u, void *arg,
				  struct err *err),
			void *arg);

/* ---- questions ------------------------------------------------------------------------------- */

/* A request or event for the plugin, which is sent in the order of the runtime's queue. The caller
 * owns the memory. */
struct question {
	struct plugin *plugin;
	Nri__Event event;
	struct pod *pod;
	struct ctr *ctr; /* container of the event; NULL: the event concerns the pod */
	/* resources of an update; overhead only for pods */
	Nri__LinuxResources *resources, *overhead;
	uint64_t deadline_ms; /* when the caller stops waiting; UINT64_MAX: never */
	/* Receives the answer, an error if the request could not be sent, or NULL if the plugin
	 * does not subscribe to the event. Called with the lock of `nri` held; the callee releases
	 * it. */
	void (*then)(struct question *q, const struct rpc_result *result);
	struct nri_turn turn;
	struct arena *arena; /* memory of the messages until the answer has been handled */
};

void question_ask(struct question *q);

/* ---- notices --------------------------------------------------------------------------------- */

/* A question that no call waits for. */
struct notice {
	struct question q; /* must be the first member */
	struct arena *arena; /* memory of q.resources; NULL: none */
	bool removes; /* the pod or container leaves the tables afterwards */
	Nri__StopContainerResponse *answer; /* kept while its updates are carried out */
	struct notice *prev, *next;
};

/* Creates a notice, to be sent with question_ask(). ctr NULL: the notice is about the pod. Without
 * memory, logs that and returns NULL. */
struct notice *notice_new(struct plugin *p, Nri__Event event, struct pod *pod, struct ctr *ctr);
/* Frees the notice, and sends the next question. */
void notice_end(struct notice *n);
/* Frees all notices without waiting for answers. */
void notices_free(struct plugin *p);
