/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations whose value is YAML with a documented type for each member. A member of another type,
 * such as text instead of a list, is an error that names annotation and member. Nodes are valid
 * until the callback returns.
 */
#pragma once

#include <nri-rp/lib/host.h>

/* Parses an annotation whose value must be a map. `what` names the annotation in messages.
 * -RP_EINVAL: malformed or no map; -RP_ENOTSUP: the host cannot read YAML. */
int32_t annotation_parse(const struct modhost *h, const char *what, const char *text, rp_cfg *ret);
/* Stores a member of a map in *ret, NULL if it is absent or null. -RP_EINVAL: its kind is not
 * `kind` (RP_NODE_…). */
int32_t annotation_member(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			  uint32_t kind, rp_cfg *ret);
/* Returns a member whose name contains dots, such as the name of a resource. NULL: absent. */
rp_cfg annotation_named(const struct modhost *h, rp_cfg map, const char *name);
/* Stores a member that must be a list of texts, like annotation_member(). */
int32_t annotation_texts(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			 rp_cfg *ret);
