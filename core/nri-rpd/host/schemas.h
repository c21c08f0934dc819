/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the installed modules, for those who read configurations: the daemon, and nri-rpctl
 * without one. */
#ifndef HOST_SCHEMAS_H
#define HOST_SCHEMAS_H

#include <stdbool.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/loader.h"

struct schemas {
	struct loader *loader;
	/* the directories are the command line's: modules.path of a configuration changes
	 * nothing */
	bool fixed;
	void (*warn)(const char *text); /* of a path or a module that cannot be had */
};

/* Borrows `s`, which has to stay as long as the answer is used. */
struct conf_schemas schemas_of(struct schemas *s);
/* The table of an installed module, as conf_schemas.find. */
enum conf_found schemas_find(struct schemas *s, const char *module, const struct rp_schema **ret);

#endif
