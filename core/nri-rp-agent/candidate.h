/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses this node's configuration among the cluster's. Candidates are objects with these names:
 *
 *   node.NODE     first choice
 *   other names   second choice: custom resources with a nodeSelector; of several the one whose
 *                 name sorts first
 *   group.GROUP   third choice, if the node has a group; `default` is then ignored, even if the
 *                 group's object does not exist
 *   default       choice for nodes without a group
 *
 * A nodeSelector, whatever the object's name, excludes nodes that lack one of its labels. A custom
 * resource precedes a ConfigMap. Of several kinds with the same name the one created last is
 * chosen, so that a change of the policy takes effect when its resource is created.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"

enum level { LEVEL_NODE, LEVEL_SELECTED, LEVEL_SHARED, N_LEVELS };

/* A configuration object as sent to the daemon. Owns its members. */
struct candidate {
	char *kind, *ns, *name, *uid;
	char *generation; /* metadata.generation; for a ConfigMap its resourceVersion */
	char *created; /* creation time in RFC 3339, which sorts as text */
	json_t *selector; /* labels of the nodes that the object is for; NULL: all nodes */
	bool config_map;
	/* reason why the object is refused without a request to the daemon; NULL: it is sent to the
	 * daemon */
	char *refused;
	struct section {
		char *name; /* key of a ConfigMap; "": the object as a whole */
		char *text;
		/* the text begins with a line for the key; see Section of agent.proto */
		bool keyed;
	} * sections;
	size_t n_sections;
};

/* Reads a candidate from an object. -EINVAL: no server would send such an object; -ENOMEM. */
int candidate_new(const json_t *object, bool config_map, struct candidate **ret, struct err *err);
struct candidate *candidate_free(struct candidate *c); /* accepts NULL; returns NULL */
/* Returns true if a node with these labels (NULL: none) may follow the object. */
bool candidate_selects(const struct candidate *c, const json_t *labels);
/* Returns true for equal objects in equal states. Both may be NULL. */
bool candidate_same(const struct candidate *a, const struct candidate *b);
/* Returns the preferred candidate of two on one level. Both may be NULL. */
const struct candidate *candidate_better(const struct candidate *a, const struct candidate *b);
