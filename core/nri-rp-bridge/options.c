/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/options.h"

#include <errno.h>
#include <stdio.h>

#include "core/util/str.h"

#define DEFAULT_LISTEN "/run/nri-rp/cri.sock"
#define DEFAULT_RUNTIME "/run/containerd/containerd.sock"
#define DEFAULT_NRI "/run/nri-rp/bridge.sock"
#define SCHEME "unix://"

enum {
	OPT_LISTEN,
	OPT_RUNTIME,
	OPT_IMAGE,
	OPT_NRI_SOCKET,
	OPT_STRICT,
	OPT_REQUIRE_PLUGIN,
	OPT_POD_EVENT,
	OPT_TRACE,
	OPT_LOG_LEVEL,
	OPT_FORMER, /* + one of the first three: what CRI Resource Manager calls them */
};

static const struct cmdline_option table[] = {
	{{"listen", required_argument, NULL, OPT_LISTEN},
	 "PATH",
	 "the socket for the kubelet, default " DEFAULT_LISTEN},
	{{"runtime", required_argument, NULL, OPT_RUNTIME},
	 "PATH",
	 "the runtime's socket, default\n"
	 "                        " DEFAULT_RUNTIME},
	{{"image", required_argument, NULL, OPT_IMAGE},
	 "PATH",
	 "the image service's socket, default the runtime's"},
	{{"nri-socket", required_argument, NULL, OPT_NRI_SOCKET},
	 "PATH",
	 "the socket for nri-rpd, default " DEFAULT_NRI},
	{{"strict", no_argument, NULL, OPT_STRICT},
	 NULL,
	 "fail a call when the plugin wants what CRI has no place for"},
	{{"require-plugin", no_argument, NULL, OPT_REQUIRE_PLUGIN},
	 NULL,
	 "fail RunPodSandbox and CreateContainer without nri-rpd"},
	{{"pod-event", required_argument, NULL, OPT_POD_EVENT},
	 "WHEN",
	 "ask about a pod before the runtime makes it (default) or after,\n"
	 "                        by the id that the runtime gave it"},
	{{"trace", required_argument, NULL, OPT_TRACE},
	 "GLOB[=LEVEL]",
	 "log calls whose method fits: off, name, short (default) or\n"
	 "                        full; may be given several times, the first that fits counts"},
	{{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	 "LEVEL",
	 "error, warning, notice, info or debug, default info"},
	{{"relay-socket", required_argument, NULL, OPT_FORMER + OPT_LISTEN},
	 "PATH",
	 "CRI Resource Manager's name of --listen"},
	{{"runtime-socket", required_argument, NULL, OPT_FORMER + OPT_RUNTIME},
	 "PATH",
	 "CRI Resource Manager's name of --runtime"},
	{{"image-socket", required_argument, NULL, OPT_FORMER + OPT_IMAGE},
	 "PATH",
	 "CRI Resource Manager's name of --image"},
	{{"version", no_argument, NULL, CMDLINE_VERSION}, NULL, "print the version and exit"},
	{{"help", no_argument, NULL, CMDLINE_HELP}, NULL, "print this and exit"},
};

/* A socket may be written as the kubelet wants it. */
static int take_socket(const char **to, const char *option, const char *argument)
{
	const char *path =
		str_has_prefix(argument, SCHEME) ? argument + sizeof SCHEME - 1 : argument;
	if (*path != '/') {
		fprintf(stderr, "nri-rp-bridge: --%s %s: expected an absolute path\n", option,
			argument);
		return -1;
	}
	*to = path;
	return 0;
}

static int take_trace(struct options *o, const char *argument)
{
	int r = trace_add(&o->trace, argument);
	if (!r)
		return 0;
	if (r == -E2BIG)
		fprintf(stderr, "nri-rp-bridge: --trace can be given %u times at most\n",
			TRACE_RULES_MAX);
	else
		fprintf(stderr,
			"nri-rp-bridge: --trace %s: expected a method as ListContainers or "
			"List*, and perhaps =off, =name, =short or =full\n",
			argument);
	return -1;
}

static int take_pod_event(struct options *o, const char *argument)
{
	o->pod_event_after = str_eq(argument, "after");
	if (o->pod_event_after || str_eq(argument, "before"))
		return 0;
	fprintf(stderr, "nri-rp-bridge: --pod-event %s: expected before or after\n", argument);
	return -1;
}

static int take(void *to, int option, const char *argument)
{
	static const char *const names[] = {"listen", "runtime", "image", "nri-socket"};
	struct options *o = to;
	const char **const sockets[] = {&o->listen, &o->runtime, &o->image, &o->nri_socket};
	int socket = option >= OPT_FORMER ? option - OPT_FORMER : option;
	if (option >= OPT_FORMER)
		fprintf(stderr,
			"nri-rp-bridge: hint: --%s is the name of this option here; the one of CRI "
			"Resource Manager works as well\n",
			names[socket]);
	if (socket <= OPT_NRI_SOCKET)
		return take_socket(sockets[socket], names[socket], argument);
	if (option == OPT_STRICT || option == OPT_REQUIRE_PLUGIN) {
		*(option == OPT_STRICT ? &o->strict : &o->require_plugin) = true;
		return 0;
	}
	if (option == OPT_POD_EVENT)
		return take_pod_event(o, argument);
	if (option == OPT_TRACE)
		return take_trace(o, argument);
	if (log_level_from_name(argument, &o->log_level) == 0)
		return 0;
	fprintf(stderr,
		"nri-rp-bridge: --log-level %s: expected error, warning, notice, info or debug\n",
		argument);
	return -1;
}

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rp-bridge",
		.version = NRI_RP_VERSION,
		.before = "Usage: nri-rp-bridge [OPTION]…\n"
			  "Stands between the kubelet and a container runtime without NRI: calls "
			  "of CRI "
			  "pass through, and\nnri-rpd places the containers that they create.\n"
			  "Runs in the foreground; SIGTERM stops.\n",
		.after = "Exit status: 0 stopped as asked, 1 failed, 2 wrong usage.\n"
			 "See nri-rp-bridge(8), nri-rpd(8).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
		.take = take,
	};
	*ret = (struct options){.listen = DEFAULT_LISTEN,
				.runtime = DEFAULT_RUNTIME,
				.nri_socket = DEFAULT_NRI,
				.log_level = LOG_INFO};
	return cmdline_parse(&line, argc, argv, ret);
}
