/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wishes for the Node object (nri-rp.host.node/1): comparison with the Node, and wishes that the
 * core makes in the name of an instance. node.c implements them.
 */
#pragma once

#include "core/nri-rpd/host/node.h"

/* Returns true if another instance has requested the same change of the Node earlier: this request
 * then has no effect. */
bool node_wish_waits(const struct node_wish *all, const struct node_wish *w);

/* Returns true if the Node has the requested change. node NULL: unknown, so false. */
bool node_has_wish(const struct node_object *node, const struct node_wish *w);

/* Makes wishes in an instance's name, as if it called the service: 0, -RP_EINVAL, -RP_E2BIG,
 * -RP_ENOMEM. value NULL, or RP_NOT_SET of a resource: withdraw the wish. */
int32_t instance_wish_pair(struct instance *i, enum wish_kind kind, const char *key,
			   const char *value);
int32_t instance_wish_resource(struct instance *i, const char *name, int64_t amount);
const char *wish_kind_name(enum wish_kind kind); /* "label" */
