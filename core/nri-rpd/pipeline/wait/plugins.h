/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource plugins. The node agent talks to the plugins, and the pipeline asks the agent through
 * struct plugin_source. There are three kinds of questions, each while its request is deferred:
 *
 *   RunPodSandbox    ──▶ hints ──▶ the policy admits, and chooses ──▶ allocation ──▶ the answer
 *   CreateContainer  ──▶ (allocation of what is missing) ──▶ pre-start ──▶ the policy places
 *
 * Allocations are stored with the pod (core/lib/util/grants.h) and go into the replies that create
 * its containers. If a plugin fails or has stopped, requests for its resource are refused. For a
 * plugin that does not answer within the time for an admission, admit.onTimeout decides.
 *
 *   plugins.c          registered plugins, allocations of pods, reconciliation
 *   plugin_question.c  the outstanding question
 *   plugin_grants.c    grants in decisions and replies
 */
#pragma once

#include "core/lib/util/grants.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/log.h"

#define PLUGINS_MAX 32u

struct plugin_desc {
	/* resource and socket of the plugin, and its error ("": none) */
	const char *resource, *endpoint, *error;
	bool connected, aligns, pre_start, reconciles;
	uint64_t calls, failures;
};

enum plugin_ctr { PLUGIN_CTR_INIT, PLUGIN_CTR_MAIN, PLUGIN_CTR_SIDECAR };

/* Amount of a plugin's resource that a container requests. */
struct plugin_wanted {
	const char *ctr; /* name of the container; "": the pod as a whole */
	enum plugin_ctr kind;
	uint32_t index;
	const char *resource;
	double amount; /* amount in CPUs, bytes or units */
	bool chosen; /* for an allocation: `nodes` was chosen by the policy (empty: any) */
	bool preferred;
	struct rp_ids nodes;
};

struct plugin_hint {
	struct rp_ids nodes; /* nodes of the hint; empty: any */
	bool preferred;
};

struct plugin_hints {
	bool told; /* the plugin gave hints; an empty list means that no placement fits */
	const char *error; /* error of the plugin; NULL: none */
	const struct plugin_hint *list;
	uint32_t n;
};

struct plugin_question {
	uint32_t serial; /* number that the answer refers to */
	const char *uid, *ns, *name, *qos;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	const struct plugin_wanted *wanted;
	uint32_t n_wanted;
	uint32_t timeout_ms;
};

/* Connection to the plugins. A question returns 0 if its answer follows through the functions
 * below, never from inside the call. */
struct plugin_source {
	int (*hints)(void *arg, const struct plugin_question *q);
	int (*allocate)(void *arg, const struct plugin_question *q);
	int (*pre_start)(void *arg, const struct plugin_question *q);
	void (*remove)(void *arg, const char *uid);
	void *arg;
};

/* ---- for the source -------------------------------------------------------------------------- */

/* Sets the source; NULL: the agent has disconnected. Outstanding questions then get no answer. */
void pipeline_plugins_source(struct pipeline *p, const struct plugin_source *source);
/* Replaces the list of plugins. Allocations of plugins that are not listed are dropped. -E2BIG,
 * -ENOMEM. */
int pipeline_plugins_set(struct pipeline *p, const struct plugin_desc *list, uint32_t n);

struct plugin_pod {
	const char *uid;
	const Grants__Grants *grants;
};
/*
 * Compares a plugin's allocations with the known pods. Calls `gone` for each UID that is unknown.
 * With `reconcile` the plugin's data replaces the pods' allocations. -EAGAIN: the pods are not
 * known yet, or a decision is open.
 */
int pipeline_plugins_check(struct pipeline *p, const char *resource, bool reconcile,
			   const struct plugin_pod *pods, uint32_t n,
			   void (*gone)(const char *uid, void *arg), void *arg);

/* ---- for status ------------------------------------------------------------------------------ */

struct plugins_counts {
	uint64_t asked, answered, failed, late;
	uint64_t reconciled; /* allocations that a plugin has changed itself */
	uint64_t dropped; /* grants of running containers that do not fit the node any more */
	uint64_t left_alone; /* grants that the policy has overridden */
};
uint32_t pipeline_plugins(const struct pipeline *p, const struct plugin_desc **ret);
const struct plugins_counts *pipeline_plugins_counts(const struct pipeline *p);
bool pipeline_plugins_reachable(const struct pipeline *p);

/* ---- within the pipeline --------------------------------------------------------------------- */

struct inquiry;
struct plugins {
	struct plugin_desc list[PLUGINS_MAX];
	uint32_t n;
	struct arena *texts; /* owns the texts of the list */
	bool reachable;
	struct plugin_source source;
	struct plugins_counts counts;
	struct inquiry *inquiry;
	struct arena *staged; /* memory of staged grants (plugin_grants.c) */
	struct log_limit failures;
};

int plugins_init(struct pipeline *p);
void plugins_fini(struct pipeline *p);
/* Saves the list of plugins. */
void plugins_keep(struct pipeline *p);
/* Restores the list that the previous process saved. */
void plugins_restore(struct pipeline *p);
/* Returns true if plugins are registered and the cluster is enabled. */
bool plugins_any(const struct pipeline *p);
/* Returns the plugin of a resource; NULL: none. */
const struct plugin_desc *plugins_of(const struct pipeline *p, const char *resource);
/* Releases all allocations of a pod that has been removed or refused. */
void plugins_pod_gone(struct pipeline *p, const struct pod *pod);
/* Returns a pod's grants, unpacked into the arena; an empty list if there are none. NULL: out of
 * memory. */
const Grants__Grants *plugins_grants(const struct pod *pod, struct arena *a);
/* Adds grants to the pod's. A grant replaces the one of the same container, resource and part. */
int plugins_add_grants(struct pipeline *p, struct pod *pod, const Grants__Grants *more,
		       struct err *err);
/* Returns true if a grant is for a container: its own, or one of the whole pod. */
bool grant_is_for(const Grants__Grant *g, const char *ctr);

/* ---- plugin_question.c ----------------------------------------------------------------------- */

extern const struct hint_ops inquiry_hint_ops;
