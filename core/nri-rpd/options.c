/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of nri-rpd. */
#include "core/nri-rpd/options.h"

#include <stdio.h>
#include <string.h>

#include <nri-rp/module.h>

#include "core/lib/conf/conf.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"

enum {
	OPT_CONFIG = 256,
	OPT_HOST_ROOT,
	OPT_STATE_DIR,
	OPT_NRI_SOCKET,
	OPT_CONTROL_SOCKET,
	OPT_MODULE_DIR,
	OPT_CHECK,
	OPT_RESET,
	OPT_LOG_LEVEL
};

static const struct cmdline_option table[] = {
	{{"config", required_argument, NULL, OPT_CONFIG},
	 "FILE",
	 "configuration, default " CONF_DEFAULT_PATH},
	{{"host-root", required_argument, NULL, OPT_HOST_ROOT},
	 "DIR",
	 "where /sys and /proc of the machine are, default /"},
	{{"state-dir", required_argument, NULL, OPT_STATE_DIR},
	 "DIR",
	 "for placements and the configuration in force, instead of cache.dir"},
	{{"nri-socket", required_argument, NULL, OPT_NRI_SOCKET},
	 "PATH",
	 "instead of runtime.socket"},
	{{"control-socket", required_argument, NULL, OPT_CONTROL_SOCKET},
	 "PATH",
	 "instead of control.socket"},
	{{"module-dir", required_argument, NULL, OPT_MODULE_DIR},
	 "DIR",
	 "instead of modules.path; may be given several times"},
	{{"check-config", no_argument, NULL, OPT_CHECK},
	 NULL,
	 "check the configuration, modules and all, and exit"},
	{{"reset-cache", no_argument, NULL, OPT_RESET},
	 NULL,
	 "forget every placement of earlier runs"},
	{{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	 "LEVEL",
	 "error, warning, notice, info or debug, instead of log.level"},
	{{"version", no_argument, NULL, CMDLINE_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, CMDLINE_HELP}, NULL, "print this and exit"},
};
static int take(void *to, int option, const char *argument)
{
	struct options *o = to;
	switch (option) {
	case OPT_CONFIG:
		o->config = argument;
		return 0;
	case OPT_HOST_ROOT:
		o->host_root = argument;
		return 0;
	case OPT_STATE_DIR:
		o->state_dir = argument;
		return 0;
	case OPT_NRI_SOCKET:
		o->nri_socket = argument;
		return 0;
	case OPT_CONTROL_SOCKET:
		o->control_socket = argument;
		return 0;
	case OPT_MODULE_DIR:
		if (o->n_module_dirs == MODULE_DIRS_MAX) {
			fprintf(stderr, "nri-rpd: more than %u --module-dir\n", MODULE_DIRS_MAX);
			return -1;
		}
		o->module_dirs[o->n_module_dirs++] = argument;
		return 0;
	case OPT_CHECK:
		o->check_config = true;
		return 0;
	case OPT_RESET:
		o->reset_cache = true;
		return 0;
	case OPT_LOG_LEVEL:
		o->log_level = argument;
		return 0;
	default:
		return -1;
	}
}

static enum options_result options_check(const struct options *o)
{
	enum log_level level;
	if (!o->log_level || log_level_from_name(o->log_level, &level) == 0)
		return OPTIONS_RUN;
	fprintf(stderr, "nri-rpd: --log-level %s: expected error, warning, notice, info or debug\n",
		o->log_level);
	return OPTIONS_WRONG;
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rpd",
		.before =
			"Usage: nri-rpd [OPTION]…\n"
			"Places the containers of this node on CPUs and memory nodes, as a plugin "
			"of the container runtime.\n"
			"Runs in the foreground; SIGHUP reloads the configuration, SIGTERM "
			"stops.\n",
		.after = "Exit status: 0 stopped as asked, 1 failed, 2 wrong usage, 70 a module "
			 "call hung,\n78 wrong configuration, and never another one.\n"
			 "See nri-rpd(8), rp.conf(5), nri-rpctl(1).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
		.take = take,
	};
	char version[64];
	struct cmdline c = line;
	(void)snprintf(version, sizeof version, "%s (module ABI %u.%u)", NRI_RP_VERSION,
		       RP_ABI_MAJOR, RP_ABI_MINOR);
	c.version = version;
	*ret = (struct options){.config = CONF_DEFAULT_PATH, .host_root = "/"};
	enum options_result r = cmdline_parse(&c, argc, argv, ret);
	return r == OPTIONS_RUN ? options_check(ret) : r;
}
