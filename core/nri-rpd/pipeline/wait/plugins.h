/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource plugins as the pipeline knows them: the agent speaks with them, and is asked by the
 * source below. Three things are asked, each while the request that wants it is held:
 *
 *	RunPodSandbox    ──▶ hints ──▶ the policy admits, and chooses ──▶ allocation ──▶ the answer
 *	CreateContainer  ──▶ (allocation of what is missing) ──▶ pre-start ──▶ the policy places
 *
 * What was allocated stays with the pod (util/grants.h) and goes into the reply of its containers'
 * creation. A plugin that fails, or has stopped, refuses what wants its resource; one that does not
 * answer within the time for an admission does what admit.onTimeout says.
 *
 *   plugins.c   who is known, what pods have, what plugins say that they have
 *   inquiry.c   the question under way
 *   granted.c   grants in the reply of a creation
 */
#ifndef PIPELINE_REQUEST_PLUGINS_H
#define PIPELINE_REQUEST_PLUGINS_H

#include "core/lib/util/grants.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/lib/util/log.h"

#define PLUGINS_MAX 32u

struct plugin_desc {
	const char *resource, *endpoint, *error; /* error: "" for none */
	bool connected, aligns, pre_start, reconciles;
	uint64_t calls, failures;
};

enum plugin_ctr { PLUGIN_CTR_INIT, PLUGIN_CTR_MAIN, PLUGIN_CTR_SIDECAR };

/* A resource that a container wants of a plugin. */
struct plugin_wanted {
	const char *ctr; /* "": the pod as a whole */
	enum plugin_ctr kind;
	uint32_t index;
	const char *resource;
	double amount; /* CPUs, bytes, or units */
	bool chosen; /* for an allocation: at these nodes (none: any) */
	bool preferred;
	struct rp_ids nodes;
};

struct plugin_hint {
	struct rp_ids nodes; /* empty: any */
	bool preferred;
};

struct plugin_hints {
	bool told; /* there is a list, of no hints where nothing fits */
	const char *error; /* NULL: none */
	const struct plugin_hint *list;
	uint32_t n;
};

struct plugin_question {
	uint32_t serial; /* that the answer is given with */
	const char *uid, *ns, *name, *qos;
	const struct kv *labels, *annotations;
	uint32_t n_labels, n_annotations;
	const struct plugin_wanted *wanted;
	uint32_t n_wanted;
	uint32_t timeout_ms;
};

/* The way to the plugins. A question returns 0: its answer comes later, by the functions below,
 * never from inside. */
struct plugin_source {
	int (*hints)(void *arg, const struct plugin_question *q);
	int (*allocate)(void *arg, const struct plugin_question *q);
	int (*pre_start)(void *arg, const struct plugin_question *q);
	void (*remove)(void *arg, const char *uid);
	void *arg;
};

/* ---- for the source ---- */

/* NULL: nobody can be asked. Nothing that was asked is answered then. */
void pipeline_plugins_source(struct pipeline *p, const struct plugin_source *source);
/* All plugins; what others have allocated does not count any more. -E2BIG, -ENOMEM. */
int pipeline_plugins_set(struct pipeline *p, const struct plugin_desc *list, uint32_t n);

struct plugin_pod {
	const char *uid;
	const Grants__Grants *grants;
};
/*
 * What a plugin says that pods have of it. `gone` gets the UIDs of those that are not here. With
 * `reconcile` the others have that from now on. -EAGAIN: it is not known yet which pods there are.
 */
int pipeline_plugins_check(struct pipeline *p, const char *resource, bool reconcile,
			   const struct plugin_pod *pods, uint32_t n,
			   void (*gone)(const char *uid, void *arg), void *arg);

/* ---- for status ---- */

struct plugins_counts {
	uint64_t asked, answered, failed, late;
	uint64_t reconciled; /* allocations that a plugin has changed by itself */
	uint64_t dropped; /* grants of running containers that did not fit the node any more */
	uint64_t left_alone; /* what the policy has decided otherwise than a plugin */
};
uint32_t pipeline_plugins(const struct pipeline *p, const struct plugin_desc **ret);
const struct plugins_counts *pipeline_plugins_counts(const struct pipeline *p);
bool pipeline_plugins_reachable(const struct pipeline *p);

/* ---- within the pipeline ---- */

struct inquiry;
struct plugins {
	struct plugin_desc list[PLUGINS_MAX]; /* texts are its own */
	uint32_t n;
	bool reachable;
	struct plugin_source source;
	struct plugins_counts counts;
	struct inquiry *inquiry;
	struct arena *staged; /* granted.c */
	struct log_limit failures;
};

int plugins_init(struct pipeline *p);
void plugins_fini(struct pipeline *p);
void plugins_keep(struct pipeline *p);
void plugins_restore(struct pipeline *p); /* those of the last process, from the store */
/* Is any pod to be asked about? */
bool plugins_any(const struct pipeline *p);
const struct plugin_desc *plugins_of(const struct pipeline *p, const char *resource);
/* The pod is gone, or refused: all that plugins have given it is free. */
void plugins_pod_gone(struct pipeline *p, const struct pod *pod);
/* A pod's grants, in the arena; a pod without any has an empty list. NULL: out of memory. */
const Grants__Grants *plugins_grants(const struct pod *pod, struct arena *a);
/* Adds to what the pod has, in place of what is of the same container, resource and part. */
int plugins_add_grants(struct pipeline *p, struct pod *pod, const void *grants, size_t len,
		       struct err *err);
/* Whether a grant is for a container: its own, or the pod's. */
bool grant_is_for(const Grants__Grant *g, const char *ctr);

/* ---- inquiry.c ---- */

extern const struct hint_ops inquiry_hint_ops;

#endif
