/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that a site uses for the labels, annotations and resources of overcommitment
 * (nodeResources.prefixes). Modules and the sources use the original names of the schedulers. The
 * core looks up, stores and publishes the site's names. Names are converted from original to site
 * where a module or a source passes one, and never back, because the caller always states the name.
 * Only annotations contain names that no caller has passed (fragment.h).
 */
#pragma once

#include <stdbool.h>

struct buf;

#define PREFIX_MAX 189u /* bytes: with a slash and 63 more, a key has 253 */
#define PREFIXES 4u

/* Replacements of the prefixes in prefix_defaults, in the same order; "": the default. All zeros:
 * all defaults. */
struct prefixes {
	bool any;
	char site[PREFIXES][PREFIX_MAX + 1];
};

/* Prefixes that a site can replace, such as "koordinator.sh". The last one, "kubernetes.io", is
 * replaced only in the names of prefix_resources, because its other names belong to Kubernetes. */
extern const char *const prefix_defaults[PREFIXES];
#define PREFIX_OF_RESOURCES (PREFIXES - 1)
#define PREFIX_RESOURCES 4u
extern const char *const prefix_resources[PREFIX_RESOURCES];

struct site_name {
	char text[PREFIX_MAX + 256u];
};

/* Returns the site's name: `name` itself, or the text in buf. prefixes NULL: no site names. A name
 * longer than any key of Kubernetes is unchanged. */
const char *site_name(const struct prefixes *p, const char *name, struct site_name *buf);
/* Returns a text that a module publishes, with the resources of prefix_resources between quotes
 * renamed to the site's: `text` itself, or the text in buf. */
const char *site_text(const struct prefixes *p, const char *text, struct buf *buf);
