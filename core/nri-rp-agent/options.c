/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-agent/options.h"

#include <stdio.h>

#include "core/agent/protocol.h"
#include "core/nri-rp-agent/kubelet.h"

enum { OPT_DAEMON_SOCKET = 256, OPT_KUBELET_SOCKET, OPT_LOG_LEVEL };

static const struct cmdline_option table[] = {
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
	{{"version", no_argument, NULL, CMDLINE_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, CMDLINE_HELP}, NULL, "print this and exit"},
};
static int take(void *to, int option, const char *argument)
{
	struct options *o = to;
	switch (option) {
	case OPT_DAEMON_SOCKET:
		o->daemon_socket = argument;
		return 0;
	case OPT_KUBELET_SOCKET:
		o->kubelet_socket = argument;
		return 0;
	case OPT_LOG_LEVEL:
		if (log_level_from_name(argument, &o->log_level) == 0)
			return 0;
		fprintf(stderr,
			"nri-rp-agent: --log-level %s: expected error, warning, notice, info or "
			"debug\n",
			argument);
		return -1;
	default:
		return -1;
	}
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rp-agent",
		.version = NRI_RP_VERSION,
		.before = "Usage: nri-rp-agent [OPTION]…\n"
			  "Asks the kubelet which devices pods have, for nri-rpd to place their "
			  "containers near them.\n"
			  "Runs in the foreground; SIGTERM stops.\n",
		.after = "Exit status: 0 stopped as asked, 1 failed, 2 wrong usage.\n"
			 "See nri-rp-agent(8), nri-rpd(8), rp.conf(5).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
		.take = take,
	};
	*ret = (struct options){AGENT_DEFAULT_SOCKET, KUBELET_DEFAULT_SOCKET, LOG_INFO};
	return cmdline_parse(&line, argc, argv, ret);
}
