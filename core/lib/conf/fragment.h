/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded piece of YAML or JSON that is no configuration: the value of an annotation. Everybody
 * who may create a pod writes those, so the limits are tighter than those of rp.conf. The tree has
 * the getters of the configuration.
 */
#ifndef CONF_FRAGMENT_H
#define CONF_FRAGMENT_H

#include "core/lib/conf/conf.h"

#define FRAGMENT_TEXT_MAX 65536u /* bytes */
#define FRAGMENT_MEMORY_MAX (2u << 20) /* of the tree */

struct fragment {
	struct arena *arena;
	struct fragment *next; /* the caller's */
};

/*
 * One document whose top is a map. 0 with *ret and the map in *ret_root; an empty text gives a NULL
 * root. -EINVAL when it is none, with the place in err ("line 1, column 5: …"); -E2BIG; -ENOMEM.
 */
int fragment_parse(const char *text, struct fragment **ret, rp_cfg *ret_root, struct err *err);
/* Resources that a map has by what the site calls them, by their own names instead, which are not
 * heard where the site calls them otherwise. */
void fragment_rename(rp_cfg root, const struct prefixes *p);
struct fragment *fragment_free(struct fragment *f); /* NULL is fine; returns NULL */

#endif
