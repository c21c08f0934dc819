/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource plugin: the connection to its socket, and calls over it.
 *
 * 	           Register
 * 	(unknown) ──────────▶ connecting ──it answers──▶ connected ──the connection ends──▶ stopped
 * 	                          │ 10 s                     ▲                               │ │
 * 	                          └──────────▶ stopped       └────────────Register───────────┘ │
 * 	(unknown) ◀──────────────────── the grace period ends ──────────────────────────────────┘
 *
 * Plugins recorded by an earlier agent process begin as stopped.
 */
#pragma once

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
	const char *folder; /* must outlive the plugin, like loop */
	const char *resource, *endpoint;
	bool aligns, pre_start, reconciles;
	bool ask_options; /* the plugin did not register its options: request them */
	/* Called when the plugin has connected or stopped, or has reported other options. Not
	 * called from inside a function below. */
	void (*changed)(struct plugin *p, void *arg);
	void *arg;
};

/* Returns NULL if memory is exhausted. */
struct plugin *plugin_new(const struct plugin_config *config);
/* Ends pending calls with -ECANCELED. Accepts NULL; returns NULL. */
struct plugin *plugin_free(struct plugin *p);
void plugin_connect(struct plugin *p);

/*
 * Calls PLUGIN_SERVICE METHOD with a packed message; `done` is called as by grpc_call(). On failure
 * err has a complete sentence, and the failure is counted for the plugin.
 */
int plugin_call(struct plugin *p, const char *method, const uint8_t *payload, size_t n,
		uint32_t timeout_ms, grpc_done done, void *arg, struct err *err);
/* Counts a failed call or an invalid answer and stores the error for people. Prefixes err with the
 * plugin and the method. */
void plugin_failed(struct plugin *p, const char *method, struct err *err);

bool plugin_connected(const struct plugin *p);
/* Returns clock_ms() of the time when the plugin stopped; 0: it has not stopped. */
uint64_t plugin_stopped_ms(const struct plugin *p);
/* Describes the plugin for the daemon; valid until something changes. */
void plugin_describe(const struct plugin *p, Agent__Plugin *ret);
