/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/options.h"

#include <getopt.h>
#include <stdio.h>

#include "core/agent/protocol.h"
#include "core/nri-rp-agent/kubelet.h"

enum { OPT_DAEMON_SOCKET = 256, OPT_KUBELET_SOCKET, OPT_LOG_LEVEL, OPT_VERSION, OPT_HELP };

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{{"daemon-socket", required_argument, NULL, OPT_DAEMON_SOCKET},
	 "PATH",
	 "where nri-rpd listens, default " AGENT_DEFAULT_SOCKET},
	{{"kubelet-socket", required_argument, NULL, OPT_KUBELET_SOCKET},
	 "PATH",
	 "the kubelet's pod-resources socket,\n"
	 "                           default " KUBELET_DEFAULT_SOCKET},
	{{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	 "LEVEL",
	 "error, warning, notice, info or debug, default info"},
	{{"version", no_argument, NULL, OPT_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, OPT_HELP}, NULL, "print this and exit"},
};
#define N_OPTIONS (sizeof table / sizeof *table)

static void help(void)
{
	printf("Usage: nri-rp-agent [OPTION]…\n"
	       "Asks the kubelet which devices pods have, for nri-rpd to place their containers "
	       "near "
	       "them.\n"
	       "Runs in the foreground; SIGTERM stops.\n\n");
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		char left[40];
		(void)snprintf(left, sizeof left, "--%s%s%s", table[i].option.name,
			       table[i].argument ? " " : "",
			       table[i].argument ? table[i].argument : "");
		printf("  %-24s %s\n", left, table[i].help);
	}
	printf("\nExit status: 0 stopped as asked, 1 failed, 2 wrong usage.\n"
	       "See nri-rp-agent(8), nri-rpd(8), rp.conf(5).\n");
}

static int take(struct options *o, int opt)
{
	switch (opt) {
	case OPT_DAEMON_SOCKET:
		o->daemon_socket = optarg;
		return 0;
	case OPT_KUBELET_SOCKET:
		o->kubelet_socket = optarg;
		return 0;
	case OPT_LOG_LEVEL:
		if (log_level_from_name(optarg, &o->log_level) == 0)
			return 0;
		fprintf(stderr,
			"nri-rp-agent: --log-level %s: expected error, warning, notice, info or "
			"debug\n",
			optarg);
		return -1;
	default:
		return -1;
	}
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	struct option longs[N_OPTIONS + 1] = {0};
	struct options o = {AGENT_DEFAULT_SOCKET, KUBELET_DEFAULT_SOCKET, LOG_INFO};
	int opt;
	for (unsigned i = 0; i < N_OPTIONS; i++)
		longs[i] = table[i].option;
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == OPT_HELP) {
			help();
			return OPTIONS_DONE;
		}
		if (opt == OPT_VERSION) {
			printf("nri-rp-agent %s\n", NRI_RP_VERSION);
			return OPTIONS_DONE;
		}
		if (take(&o, opt)) {
			fprintf(stderr, "Try 'nri-rp-agent --help'.\n");
			return OPTIONS_WRONG;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"nri-rp-agent: unexpected argument \"%s\". Try 'nri-rp-agent --help'.\n",
			argv[optind]);
		return OPTIONS_WRONG;
	}
	*ret = o;
	return OPTIONS_RUN;
}
