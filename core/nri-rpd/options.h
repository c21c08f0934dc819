/* SPDX-License-Identifier: Apache-2.0 */
/* Command line of nri-rpd. */
#pragma once

#include <stdbool.h>

#include "core/lib/util/cmdline.h"

#define MODULE_DIRS_MAX 16u

struct options {
	const char *config, *host_root;
	/* folder and sockets; NULL: from the configuration */
	const char *state_dir, *nri_socket, *control_socket;
	const char *module_dirs[MODULE_DIRS_MAX];
	unsigned n_module_dirs;
	const char *log_level; /* lowest level of log messages; NULL: from the configuration */
	bool check_config, reset_cache;
};

enum options_result options_parse(int argc, char **argv, struct options *ret);
