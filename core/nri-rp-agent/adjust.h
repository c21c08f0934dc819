/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adjustments: custom resources that place containers by other requests than those of their pods.
 * All that name this node are sent to the daemon together, which accepts all or none. The status of
 * each object tells whether it is active, and for which containers. Objects of CRI Resource Manager
 * (group criresmgr.intel.com) are included.
 */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "core/nri-rp-agent/link.h"

#define ADJUST_MAX 256u /* limit of objects in a namespace; more are ignored with a message */
#define ADJUST_SPEC_MAX (64u << 10) /* limit of one object's spec, in bytes of JSON */

struct adjust;

struct adjust *adjust_new(struct kube *k, struct link *l, const char *node,
			  const char *ns); /* NULL: no memory */
struct adjust *adjust_free(struct adjust *a); /* accepts NULL; returns NULL */
/* Call when the daemon has connected, or connected again. */
void adjust_daemon_connected(struct adjust *a);

/* For tests: adjust_item() returns what an object means for a node, as the item `key` of the
 * section `adjustments`; NULL: nothing. adjust_merge returns the merge patch that changes `has` to
 * `want`, which may be null values; NULL: they are equal. The caller owns the results. */
json_t *adjust_item(const json_t *object, const char *key, const char *node);
json_t *adjust_merge(json_t *has, json_t *want);
