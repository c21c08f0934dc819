/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One resource plugin: the connection to its socket, and calls over it.
 *
 *	           Register
 *	(unknown) ──────────▶ connecting ──it answers──▶ connected ──the connection ends──▶ stopped
 *	                          │ 10 s                     ▲                               │ │
 *	                          └──────────▶ stopped       └────────────Register───────────┘ │
 *	(unknown) ◀────────────────────── the grace is over ────────────────────────────────────┘
 *
 * Plugins that the agent knows of from before its start begin as stopped.
 */
#ifndef NRI_RP_AGENT_PLUGIN_H
#define NRI_RP_AGENT_PLUGIN_H

#include "core/lib/grpc/call.h"
#include "core/lib/util/loop.h"
#include "proto/agent.pb-c.h"
#include "proto/resourceplugin.pb-c.h"

#define PLUGIN_DIAL_MS 10000u
#define PLUGIN_CALL_MS 10000u
#define PLUGIN_PRE_START_MS 30000u
#define PLUGIN_MESSAGE_MAX (4u << 20)
#define PLUGIN_SERVICE "/resourceplugin.v1alpha1.ResourcePlugin/"

struct plugin;

struct plugin_config {
	struct loop *loop;
	const char *folder; /* has to outlive it, as loop */
	const char *resource, *endpoint;
	bool aligns, pre_start, reconciles;
	bool ask_options; /* it has not told them */
	/* It is connected, or has stopped, or has said otherwise what it is. Not from inside a
	 * function below. */
	void (*changed)(struct plugin *p, void *arg);
	void *arg;
};

/* NULL: out of memory. */
struct plugin *plugin_new(const struct plugin_config *config);
/* Calls under way end with -ECANCELED. NULL is fine; returns NULL. */
struct plugin *plugin_free(struct plugin *p);
void plugin_connect(struct plugin *p);

/*
 * PLUGIN_SERVICE METHOD, with a packed message. done as grpc_call has it. An error has a sentence
 * and counts as a failure of the plugin, too.
 */
int plugin_call(struct plugin *p, const char *method, const uint8_t *payload, size_t n,
		uint32_t timeout_ms, grpc_done done, void *arg, struct err *err);
/* A call has failed, or its answer makes no sense: counted, and kept for people. Puts who and which
 * method before err's sentence. */
void plugin_failed(struct plugin *p, const char *method, struct err *err);

bool plugin_connected(const struct plugin *p);
/* clock_ms() of when it stopped; 0: it has not. */
uint64_t plugin_stopped_ms(const struct plugin *p);
/* What the daemon is told; valid until something changes. */
void plugin_describe(const struct plugin *p, Agent__Plugin *ret);

#endif
