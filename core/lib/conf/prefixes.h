/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a site calls the labels, annotations and resources by which pods and nodes say what is lent
 * (nodeResources.prefixes). Modules, and the sources here, know the names that schedulers come
 * with; the core looks up, keeps and publishes what the site calls them. Names go from the first to
 * the second where a module or a source asks for one, and nowhere back: whoever asks says which one
 * he means. Only within annotations are there names that nobody has asked for (fragment.h).
 */
#ifndef CONF_PREFIXES_H
#define CONF_PREFIXES_H

#include <stdbool.h>

struct buf;

#define PREFIX_MAX 189u /* bytes: 63 more behind a slash are still a key of 253 */
#define PREFIXES 4u

/* By the rows of prefix_defaults; "": as it is there. All zeros: all of them are. */
struct prefixes {
	bool any;
	char site[PREFIXES][PREFIX_MAX + 1];
};

/* "koordinator.sh" …; the last one has the resources of prefix_resources alone, as all else with
 * that prefix is Kubernetes' own. */
extern const char *const prefix_defaults[PREFIXES];
#define PREFIX_OF_RESOURCES (PREFIXES - 1)
#define PREFIX_RESOURCES 4u
extern const char *const prefix_resources[PREFIX_RESOURCES];

struct site_name {
	char text[PREFIX_MAX + 256u];
};

/* What the site calls it: `name` itself, or the text in buf. NULL for prefixes: nobody calls
 * anything otherwise. A name that is longer than any key of
 * Kubernetes is nobody's. */
const char *site_name(const struct prefixes *p, const char *name, struct site_name *buf);
/* Text that a module wants published, with the resources of prefix_resources between quotes as the
 * site calls them: `text` itself, or the text in buf. */
const char *site_text(const struct prefixes *p, const char *text, struct buf *buf);

#endif
