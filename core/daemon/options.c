/* SPDX-License-Identifier: Apache-2.0 */
#include "core/daemon/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <nri-rp/module.h>

#include "core/conf/conf.h"
#include "core/util/log.h"

enum {
	OPT_CONFIG = 256,
	OPT_HOST_ROOT,
	OPT_STATE_DIR,
	OPT_NRI_SOCKET,
	OPT_CONTROL_SOCKET,
	OPT_MODULE_DIR,
	OPT_CHECK,
	OPT_RESET,
	OPT_LOG_LEVEL,
	OPT_VERSION,
	OPT_HELP
};

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{{"config", required_argument, NULL, OPT_CONFIG},
	 "FILE",
	 "configuration, default " CONF_DEFAULT_PATH},
	{{"host-root", required_argument, NULL, OPT_HOST_ROOT},
	 "DIR",
	 "where /sys and /proc of the machine are, default /"},
	{{"state-dir", required_argument, NULL, OPT_STATE_DIR}, "DIR", "instead of cache.dir"},
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
	{{"version", no_argument, NULL, OPT_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, OPT_HELP}, NULL, "print this and exit"},
};
#define N_OPTIONS (sizeof table / sizeof *table)

static void help(void)
{
	printf("Usage: nri-rpd [OPTION]…\n"
	       "Places the containers of this node on CPUs and memory nodes, as a plugin of the "
	       "container runtime.\n"
	       "Runs in the foreground; SIGHUP reloads the configuration, SIGTERM stops.\n\n");
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		char left[40];
		(void)snprintf(left, sizeof left, "--%s%s%s", table[i].option.name,
			       table[i].argument ? " " : "",
			       table[i].argument ? table[i].argument : "");
		printf("  %-24s %s\n", left, table[i].help);
	}
	printf("\nExit status: 0 stopped as asked, 1 failed, 2 wrong usage, 70 a module "
	       "call hung,\n78 wrong configuration.\n"
	       "See nri-rpd(8), rp.conf(5), nri-rpctl(1).\n");
}

static int take(struct options *o, int opt)
{
	switch (opt) {
	case OPT_CONFIG:
		o->config = optarg;
		return 0;
	case OPT_HOST_ROOT:
		o->host_root = optarg;
		return 0;
	case OPT_STATE_DIR:
		o->state_dir = optarg;
		return 0;
	case OPT_NRI_SOCKET:
		o->nri_socket = optarg;
		return 0;
	case OPT_CONTROL_SOCKET:
		o->control_socket = optarg;
		return 0;
	case OPT_MODULE_DIR:
		if (o->n_module_dirs == MODULE_DIRS_MAX) {
			fprintf(stderr, "nri-rpd: more than %u --module-dir\n", MODULE_DIRS_MAX);
			return -1;
		}
		o->module_dirs[o->n_module_dirs++] = optarg;
		return 0;
	case OPT_CHECK:
		o->check_config = true;
		return 0;
	case OPT_RESET:
		o->reset_cache = true;
		return 0;
	case OPT_LOG_LEVEL:
		o->log_level = optarg;
		return 0;
	default:
		return -1;
	}
}

static enum options_result check(const struct options *o)
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
	struct option longs[N_OPTIONS + 1] = {0};
	struct options o = {.config = CONF_DEFAULT_PATH, .host_root = "/"};
	int opt;
	for (unsigned i = 0; i < N_OPTIONS; i++)
		longs[i] = table[i].option;
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == OPT_HELP) {
			help();
			return OPTIONS_DONE;
		}
		if (opt == OPT_VERSION) {
			printf("nri-rpd %s (module ABI %u.%u)\n", NRI_RP_VERSION, RP_ABI_MAJOR,
			       RP_ABI_MINOR);
			return OPTIONS_DONE;
		}
		if (take(&o, opt)) {
			fprintf(stderr, "Try 'nri-rpd --help'.\n");
			return OPTIONS_WRONG;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "nri-rpd: unexpected argument \"%s\". Try 'nri-rpd --help'.\n",
			argv[optind]);
		return OPTIONS_WRONG;
	}
	*ret = o;
	return check(ret);
}
