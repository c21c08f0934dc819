/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the sources of configurations:
 *
 *   configs.c          kinds, the choice of a configuration, and the daemon's answers
 *   configs_objects.c  the watched objects of a kind
 */
#pragma once

#include "core/lib/wire/agent_protocol.h"
#include "core/nri-rp-agent/candidate.h"
#include "core/nri-rp-agent/configs.h"
#include "core/nri-rp-agent/object_status.h"
#include "core/nri-rp-agent/watch.h"

#define GROUP_PATH "/apis/config.nri/v1alpha1"
#define KINDS_MAX 64u /* limit of kinds of custom resources, in all namespaces */
#define PLURAL_MAX 64u
#define SETTLE_MS 100u /* time within which changes are collected and handled together */
/* limit of objects of a kind that select this node by a nodeSelector, in a namespace */
#define SELECTED_MAX 64u

/* A name of an object that is watched. Objects with a nodeSelector are watched together: the slot
 * of LEVEL_SELECTED has the watch, and the list that it begins one slot for each object. */
struct slot {
	struct kind *kind;
	enum level level;
	struct slot *next; /* list of LEVEL_SELECTED */
	struct watch *watch;
	char *name; /* NULL: any */
	struct candidate *held; /* content of the object; NULL: the object does not exist */
	bool known; /* `held` is valid */
	bool denied; /* no right to read the object, so its absence means nothing */
	bool seen; /* the object is in the current list */
	bool full; /* with `watch`: more than SELECTED_MAX objects select the node */
	unsigned n_failures; /* failures since the watch began, until it has listed */
	/* the status of an object that is not used because another one is; NULL: none yet */
	struct verdicts *passed;
	/* identity of the object that the status is about; NULL: no status */
	struct candidate *passed_for;
	char *passed_why; /* text of that status */
};

/* The objects of a kind in one namespace. */
struct kind {
	struct configs *configs;
	unsigned ns; /* index in the list of namespaces */
	/* plural name of the kind, such as "balloonspolicies" or "configmaps" */
	char plural[PLURAL_MAX];
	bool config_map;
	struct slot slots[N_LEVELS];
};

struct configs {
	struct configs_config config;
	char *node, *config_map;
	/* namespaces in order of precedence, the agent's own first */
	char *ns[1 + AGENT_NAMESPACES_MAX];
	unsigned n_ns;
	json_t *labels; /* labels of the Node; NULL: none, or not known yet */
	char *group; /* configuration group that the Node's labels name; NULL: none */
	bool group_known, group_changed, discovered, discovery_denied;
	bool labels_changed; /* the objects with a nodeSelector have to be listed again */
	bool deleted; /* an object that was read has been deleted */
	uint64_t none_since_ms; /* time since which no object exists; 0: an object exists */
	bool cleared; /* the daemon was notified that the cluster has no configuration for it */
	struct kind *kinds[KINDS_MAX + 1]; /* the first kind is ConfigMap */
	unsigned n_kinds;
	struct kube_call *discovery;
	struct loop_timer *discover_timer, *settle_timer, *certain_timer, *retire_timer;
	struct verdicts *verdicts;
	struct kube_backoff backoff; /* for configurations that the daemon could not process */
	const struct slot *sending; /* source of the configuration that is being sent; NULL: none */
	struct candidate *sent; /* identity of the configuration last sent to the daemon */
	bool sent_counts; /* the daemon has answered to `sent` over the present connection */
	bool stale; /* the pending answer is of an earlier connection */
	bool warned_none;
	void (*retired)(void *arg);
	void *retired_arg;
	uint64_t retire_until_ms;
};

/* ---- configs.c ------------------------------------------------------------------------------- */

/* Handles all changes of the next `ms` milliseconds together. */
void configs_settle_later(struct configs *c, uint32_t ms);
/* Lists the kinds of the group config.nri. */
void configs_discover(void *arg);

/* ---- configs_objects.c ----------------------------------------------------------------------- */

/* Returns the slot of the kind that follows s; the first one if s is NULL. */
struct slot *kind_next(struct kind *k, const struct slot *s);
/* Returns the object of a slot if this node may follow it, else NULL. */
const struct candidate *slot_usable(const struct slot *s);
/* Removes the status of an object that was not used. */
void slot_unpass(struct slot *s);
/* Leaves the status of the object, which is used now, to the daemon's answer. */
void slot_use(struct slot *s);
/* Begins to watch the objects of a level. A watch that the level has ends first. -ENOMEM. */
int slot_open(struct kind *k, enum level level);
void slot_close(struct slot *s);
