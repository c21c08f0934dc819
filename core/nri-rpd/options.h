/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of nri-rpd. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>

#include "core/lib/util/cmdline.h"

#define MODULE_DIRS_MAX 16u

struct options {
	const char *config, *host_root;
	const char *state_dir, *nri_socket, *control_socket; /* NULL: the configuration says */
	const char *module_dirs[MODULE_DIRS_MAX];
	unsigned n_module_dirs;
	const char *log_level; /* NULL: the configuration says */
	bool check_config, reset_cache;
};

enum options_result options_parse(int argc, char **argv, struct options *ret);

#endif
