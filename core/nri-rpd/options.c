/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of nri-rpd. */
#include "core/nri-rpd/options.h"

#include <stdio.h>

#include <nri-rp/module.h>

#include "core/lib/conf/conf.h"
#include "core/lib/util/cmdline.h"
#include "core/lib/util/log.h"

static int take_module_dir(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	if (o->n_module_dirs == MODULE_DIRS_MAX)
		return fprintf(stderr, "nri-rpd: more than %u --%s\n", MODULE_DIRS_MAX,
			       option->name),
		       -1;
	o->module_dirs[o->n_module_dirs++] = argument;
	return 0;
}

#define OPTION_AT(member) offsetof(struct options, member)

static const struct cmdline_option table[] = {
	OPTION("config", "FILE", "configuration, default " CONF_DEFAULT_PATH, OPTION_TEXT(config)),
	OPTION("host-root", "DIR", "parent of the machine's /sys and /proc, default /",
	       OPTION_TEXT(host_root)),
	OPTION("state-dir", "DIR", "folder for saved state, instead of cache.dir",
	       OPTION_TEXT(state_dir)),
	OPTION("nri-socket", "PATH", "instead of runtime.socket", OPTION_TEXT(nri_socket)),
	OPTION("control-socket", "PATH", "instead of control.socket", OPTION_TEXT(control_socket)),
	OPTION("module-dir", "DIR", "instead of modules.path; may be repeated",
	       .take = take_module_dir),
	OPTION("check-config", NULL, "check the configuration, including modules, and exit",
	       OPTION_FLAG(check_config)),
	OPTION("reset-cache", NULL, "forget all saved placements", OPTION_FLAG(reset_cache)),
	OPTION("log-level", "LEVEL", "error, warning, notice, info or debug, instead of log.level",
	       OPTION_TEXT(log_level)),
};

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
		.before = "Usage: nri-rpd [OPTION]…\nPlaces the containers of this node on CPUs "
			  "and memory nodes, as a plugin of the container runtime.\nRuns in the "
			  "foreground; SIGHUP reloads the configuration, SIGTERM stops it.\n",
		.after = "Exit status: 0 stopped on request, 1 failed, 2 wrong usage, 70 a module "
			 "call hung,\n78 wrong configuration and no previous one.\nSee nri-rpd(8), "
			 "rp.conf(5), nri-rpctl(1).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
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
