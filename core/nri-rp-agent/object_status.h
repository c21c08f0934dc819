/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a configuration on this node, written where people look: into the status of the
 * custom resource, a member for each node; for a ConfigMap, which has no status, into an annotation
 * of the Node. When another object is the node's configuration, what was said of this node in the
 * former one is taken away.
 */
#ifndef NRI_RP_AGENT_VERDICT_H
#define NRI_RP_AGENT_VERDICT_H

#include "core/nri-rp-agent/candidate.h"
#include "core/nri-rp-agent/kube.h"

#define VERDICT_ANNOTATION "nri-rp/config-status"

struct verdicts;

struct verdicts *verdicts_new(struct kube *k, const char *node); /* NULL: no memory */
struct verdicts *verdicts_free(struct verdicts *v); /* NULL is fine; returns NULL */
/* `plural`: the resource that the candidate was found under. errors: NULL when it is in force, with
 * these warnings (NULL: none). */
void verdicts_tell(struct verdicts *v, const char *plural, const struct candidate *c,
		   const char *errors, const char *warnings);
/* The Node, as it has changed: what was said there and is not any more, as of one that was made
 * anew, is said again. */
void verdicts_node_seen(const struct verdicts *v, const json_t *node);
/* Takes away what was said. */
void verdicts_withdraw(struct verdicts *v);
bool verdicts_idle(const struct verdicts *v); /* nothing is left to be written */

#endif
