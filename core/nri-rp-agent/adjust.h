/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adjustments: custom resources that have containers placed by other requests than their pods have.
 * All that name this node are told to the daemon together, which takes all of them or none; each
 * one's status says which, and for which containers. Those of CRI Resource Manager (group
 * criresmgr.intel.com) count as well, where there are any.
 */
#ifndef NRI_RP_AGENT_ADJUST_H
#define NRI_RP_AGENT_ADJUST_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

#define ADJUST_MAX 256u /* of a namespace; what is more is left out, with a message */
#define ADJUST_SPEC_MAX (64u << 10) /* bytes of one, as JSON */

struct adjust;

struct adjust *adjust_new(struct kube *k, struct link *l, const char *node,
			  const char *ns); /* NULL: no memory */
struct adjust *adjust_free(struct adjust *a); /* NULL is fine; returns NULL */
/* The daemon is there, or there again. */
void adjust_daemon_connected(struct adjust *a);

/* For tests: what an object says for a node, as an item of that name of the section `adjustments`;
 * NULL: nothing. Owned. And the merge patch that makes `want` of `has`, either of which may be
 * null; NULL: they are the same. Owned. */
json_t *adjust_item(const json_t *object, const char *key, const char *node);
json_t *adjust_merge(json_t *has, json_t *want);

#endif
