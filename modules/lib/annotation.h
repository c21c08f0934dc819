/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations whose value is YAML. Their documentation says which type has to be where: text in the
 * place of a list is an error, which names annotation and member, and is not taken for an empty
 * list. Nodes live as long as the callback.
 */
#ifndef NRI_RP_LIB_ANNOTATION_H
#define NRI_RP_LIB_ANNOTATION_H

#include "modules/lib/host.h"

/* `what` is how messages name the annotation. The value has to be a map: -RP_EINVAL. -RP_ENOTSUP:
 * the host reads no YAML. */
int32_t annotation_parse(const struct modhost *h, const char *what, const char *text, rp_cfg *ret);
/* A member of a map. NULL: it is not there, or null. -RP_EINVAL: it is of another kind than
 * RP_NODE_…. */
int32_t annotation_member(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			  uint32_t kind, rp_cfg *ret);
/* A member whose name has dots in it, as those of resources do. NULL: it is not there. */
rp_cfg annotation_named(const struct modhost *h, rp_cfg map, const char *name);
/* As annotation_member(), for a list of texts. */
int32_t annotation_texts(const struct modhost *h, const char *what, rp_cfg map, const char *name,
			 rp_cfg *ret);

#endif
