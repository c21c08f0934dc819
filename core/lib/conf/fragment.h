/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a bounded piece of YAML or JSON that is no configuration: the value of an annotation.
 * Every author of a pod may write those, so the limits are tighter than those of rp.conf. The tree
 * has the getters of the configuration.
 */
#pragma once

#include "core/lib/conf/conf.h"

#define FRAGMENT_TEXT_MAX 65536u /* largest size of the text, in bytes */
#define FRAGMENT_MEMORY_MAX (2u << 20) /* largest memory of the parsed tree, in bytes */

struct fragment {
	struct arena *arena;
	struct fragment *next; /* next fragment of the caller's list */
};

/*
 * Parses one document whose top is a map. 0 with *ret and the map in *ret_root; an empty text has a
 * NULL root. -EINVAL: no such document, with the place in err ("line 1, column 5: …"); -E2BIG;
 * -ENOMEM.
 */
int fragment_parse(const char *text, struct fragment **ret, rp_cfg *ret_root, struct err *err);
/* Renames the site's names of resources in a map to the original names. An original name is removed
 * if the site has replaced it by another name. */
void fragment_rename(rp_cfg root, const struct prefixes *p);
struct fragment *fragment_free(struct fragment *f); /* accepts NULL; returns NULL */
