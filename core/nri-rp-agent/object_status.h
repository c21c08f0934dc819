/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the outcome of a configuration on this node: into the status of the custom resource, which
 * has a member for each node, or, because a ConfigMap has no status, into an annotation of the
 * Node. When another object becomes the node's configuration, this node's entry in the previous one
 * is removed.
 */
#pragma once

#include "core/nri-rp-agent/candidate.h"
#include "core/nri-rp-agent/kube.h"

#define VERDICT_ANNOTATION "nri-rp/config-status"

struct verdicts;

struct verdicts *verdicts_new(struct kube *k, const char *node); /* NULL: no memory */
struct verdicts *verdicts_free(struct verdicts *v); /* accepts NULL; returns NULL */
/* Writes the outcome of a candidate. `plural`: resource of its kind. errors NULL: the configuration
 * is active, with `warnings` (NULL: none). */
void verdicts_tell(struct verdicts *v, const char *plural, const struct candidate *c,
		   const char *errors, const char *warnings);
/* Call when the Node has changed: writes the annotation again if it has been lost, for example
 * because the Node was created again. */
void verdicts_node_seen(const struct verdicts *v, const json_t *node);
/* Ends writing into the candidate's status; the present entry remains. */
void verdicts_release(struct verdicts *v, const char *plural, const struct candidate *c);
/* Removes the entry of this node. */
void verdicts_withdraw(struct verdicts *v);
bool verdicts_idle(const struct verdicts *v); /* Returns true if no write is pending. */
