/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_SERVICE_NODE_H
#define HOST_SERVICE_NODE_H

#include "core/nri-rpd/host/node.h"

/* Somebody else has wished for the same before: this one does not count. */
bool node_wish_waits(const struct node_wish *all, const struct node_wish *w);

/* Does the Node have it? NULL: nothing is known of it. */
bool node_has_wish(const struct node_object *node, const struct node_wish *w);

/* Wishes in an instance's name, as it could itself: 0, -RP_EINVAL, -RP_E2BIG, -RP_ENOMEM. value
 * NULL, or RP_NOT_SET of a resource: no more. */
int32_t instance_wish_pair(struct instance *i, enum wish_kind kind, const char *key,
			   const char *value);
int32_t instance_wish_resource(struct instance *i, const char *name, int64_t amount);
const char *wish_kind_name(enum wish_kind kind); /* "label" */

#endif
