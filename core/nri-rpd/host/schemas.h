/* SPDX-License-Identifier: Apache-2.0 */
/* Key tables of the installed modules, for readers of configurations: the daemon, and nri-rpctl
 * without a daemon. */
#pragma once

#include <stdbool.h>

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/loader.h"

struct schemas {
	struct loader *loader;
	/* directories are from the command line: modules.path of a configuration has no effect */
	bool fixed;
	void (*warn)(const char *text); /* reports a path or module that is not usable */
};

/* Returns an interface to `s`, which is borrowed and has to live as long as the interface is
 * used. */
struct conf_schemas schemas_of(struct schemas *s);
/* Finds the table of an installed module; implements conf_schemas.find. */
enum conf_found schemas_find(struct schemas *s, const char *module, const struct rp_schema **ret);
