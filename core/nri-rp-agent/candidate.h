/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the cluster's configurations is this node's. Candidates are the objects that may be it:
 *
 *   node.NODE     wins
 *   group.GROUP   else, where the node has a group; then `default` is not looked at, be there such
 *                 a group or not
 *   default       else
 *
 * A custom resource wins over a ConfigMap. Several kinds of the same name: the one that was created
 * last, so that a change of the policy begins when its resource is created.
 */
#ifndef NRI_RP_AGENT_CHOICE_H
#define NRI_RP_AGENT_CHOICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/lib/util/err.h"

enum level { LEVEL_NODE, LEVEL_SHARED, N_LEVELS };

/* One object as the daemon is told of it. All of it owned. */
struct candidate {
	char *kind, *ns, *name, *uid;
	char *generation; /* a ConfigMap's is its resourceVersion */
	char *created; /* RFC 3339, sorts as text */
	bool config_map;
	char *refused; /* why the daemon need not be asked; NULL: it has to be */
	struct section {
		char *name; /* of a ConfigMap's key; "": the object as a whole */
		char *text;
		/* the text begins with a line for the key; see Section of agent.proto */
		bool keyed;
	} * sections;
	size_t n_sections;
};

/* -EINVAL: the server would not send such a thing; -ENOMEM. */
int candidate_new(const json_t *object, bool config_map, struct candidate **ret, struct err *err);
struct candidate *candidate_free(struct candidate *c); /* NULL is fine; returns NULL */
/* The same object in the same state. Either may be NULL. */
bool candidate_same(const struct candidate *a, const struct candidate *b);
/* Of the two of the same level: a when it wins. Either may be NULL. */
const struct candidate *candidate_better(const struct candidate *a, const struct candidate *b);

#endif
