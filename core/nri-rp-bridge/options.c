/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/options.h"

#include <errno.h>
#include <stdio.h>

#include "core/lib/util/str.h"
#include "core/lib/util/number.h"

#define DEFAULT_LISTEN "/run/nri-rp/cri.sock"
#define DEFAULT_RUNTIME "/run/containerd/containerd.sock"
#define DEFAULT_NRI "/run/nri-rp/bridge.sock"
#define DEFAULT_KUBELET "127.0.0.1"
#define DEFAULT_TOKEN "/etc/nri-rp/kubelet.token"
#define DEFAULT_AGENT "/run/nri-rp/bridge-agent.sock"
#define TIME_MAX_MS 3600000
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
	OPT_SOURCE,
	OPT_CGROUPS, /* options of the source cgroups, up to OPT_LAST */
	OPT_PODS = OPT_CGROUPS,
	OPT_KUBELET,
	OPT_READ_ONLY_PORT,
	OPT_SECURE_PORT,
	OPT_TOKEN,
	OPT_CA,
	OPT_AGENT_SOCKET,
	OPT_POLL,
	OPT_RECONCILE,
	OPT_CGROUP_ROOT,
	OPT_STATE,
	OPT_MIGRATE,
	OPT_HOST_ROOT,
	OPT_LAST = OPT_HOST_ROOT,
	OPT_FORMER, /* + one of the first three: the option's name in CRI Resource Manager */
};

static const struct cmdline_option table[] = {
	{{"source", required_argument, NULL, OPT_SOURCE},
	 "cri|cgroups",
	 "stand between kubelet and runtime (default), or beside them"},
	{{"nri-socket", required_argument, NULL, OPT_NRI_SOCKET},
	 "PATH",
	 "the socket for nri-rpd, default " DEFAULT_NRI},
	{{"listen", required_argument, NULL, OPT_LISTEN},
	 "PATH",
	 "the socket for the kubelet, default " DEFAULT_LISTEN},
	{{"runtime", required_argument, NULL, OPT_RUNTIME},
	 "PATH",
	 "the runtime's socket, default\n"
	 "                           " DEFAULT_RUNTIME},
	{{"image", required_argument, NULL, OPT_IMAGE},
	 "PATH",
	 "the image service's socket, default the runtime's"},
	{{"strict", no_argument, NULL, OPT_STRICT},
	 NULL,
	 "fail a call when the plugin wants what CRI has no place for"},
	{{"require-plugin", no_argument, NULL, OPT_REQUIRE_PLUGIN},
	 NULL,
	 "fail RunPodSandbox and CreateContainer without nri-rpd"},
	{{"pod-event", required_argument, NULL, OPT_POD_EVENT},
	 "WHEN",
	 "ask about a pod before the runtime makes it (default) or after,\n"
	 "                           by the id that the runtime gave it"},
	{{"trace", required_argument, NULL, OPT_TRACE},
	 "GLOB[=LEVEL]",
	 "log calls whose method fits: off, name, short (default) or\n"
	 "                           full; may be given several times, the first that fits counts"},
	{{"log-level", required_argument, NULL, OPT_LOG_LEVEL},
	 "LEVEL",
	 "error, warning, notice, info or debug, default info"},
	{{"pods", required_argument, NULL, OPT_PODS},
	 "SOURCE",
	 "with --source cgroups, who knows pods' names and annotations:\n"
	 "                           readonly or secure (a port of the kubelet), agent "
	 "(nri-rp-agent),\n"
	 "                           cgroupfs (nobody), or auto (default)"},
	{{"kubelet", required_argument, NULL, OPT_KUBELET},
	 "HOST",
	 "where the kubelet listens, default " DEFAULT_KUBELET},
	{{"read-only-port", required_argument, NULL, OPT_READ_ONLY_PORT},
	 "PORT",
	 "of the kubelet, default 10255"},
	{{"secure-port", required_argument, NULL, OPT_SECURE_PORT},
	 "PORT",
	 "of the kubelet, default 10250"},
	{{"kubelet-token", required_argument, NULL, OPT_TOKEN},
	 "FILE",
	 "the token for the secure port, default\n"
	 "                           " DEFAULT_TOKEN},
	{{"kubelet-ca", required_argument, NULL, OPT_CA},
	 "FILE",
	 "what the kubelet's certificate is checked with; without it\n"
	 "                           that is not checked"},
	{{"agent-socket", required_argument, NULL, OPT_AGENT_SOCKET},
	 "PATH",
	 "the socket for nri-rp-agent, default\n"
	 "                           " DEFAULT_AGENT},
	{{"poll", required_argument, NULL, OPT_POLL},
	 "TIME",
	 "between two lists of the kubelet, default 30s"},
	{{"reconcile", required_argument, NULL, OPT_RECONCILE},
	 "TIME",
	 "between two looks at what cgroups' files say, default 5s"},
	{{"cgroup-root", required_argument, NULL, OPT_CGROUP_ROOT},
	 "PATH",
	 "the cgroup that the kubelet's is in, default: any"},
	{{"runtime-state", required_argument, NULL, OPT_STATE},
	 "DIR",
	 "where the runtime has a folder of each container, besides\n"
	 "                           where containerd, CRI-O and Docker have it"},
	{{"memory-migrate", no_argument, NULL, OPT_MIGRATE},
	 NULL,
	 "with cgroup v1 move memory to a container's new nodes"},
	{{"host-root", required_argument, NULL, OPT_HOST_ROOT},
	 "DIR",
	 "read and write cgroups and /proc below DIR"},
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

/* Parses the path of a socket; the kubelet's notation "unix:///path" is accepted. */
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

static int options_wrong(const char *option, const char *argument, const char *expected)
{
	fprintf(stderr, "nri-rp-bridge: --%s %s: expected %s\n", option, argument, expected);
	return -1;
}

/* Returns the index of the matching name, or -1. */
static int options_choose(const char *argument, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (str_eq(argument, names[i]))
			return i;
	return -1;
}

static int take_pod_event(struct options *o, const char *argument)
{
	o->pod_event_after = str_eq(argument, "after");
	return o->pod_event_after || str_eq(argument, "before")
		       ? 0
		       : options_wrong("pod-event", argument, "before or after");
}

static int take_pods(struct options *o, const char *argument)
{
	static const char *const names[] = {[PODS_AUTO] = "auto",
					    [PODS_READONLY] = "readonly",
					    [PODS_SECURE] = "secure",
					    [PODS_AGENT] = "agent",
					    [PODS_CGROUPFS] = "cgroupfs"};
	int i = options_choose(argument, names, PODS_CGROUPFS + 1);
	if (i < 0)
		return options_wrong("pods", argument, "auto, readonly, secure, agent or cgroupfs");
	o->pods.source = (enum pods_source)i;
	return 0;
}

static int take_port(unsigned *to, const char *option, const char *argument)
{
	uint64_t v;
	if (str_to_u64(argument, &v) || !v || v > UINT16_MAX)
		return options_wrong(option, argument, "a port");
	*to = (unsigned)v;
	return 0;
}

static int take_time(uint64_t *to, const char *option, const char *argument)
{
	int64_t ms;
	if (str_to_ms(argument, &ms) || ms < 100 || ms > TIME_MAX_MS)
		return options_wrong(option, argument, "a time from 100ms to 1h, as 30s");
	*to = (uint64_t)ms;
	return 0;
}

/* Parses an option of the source cgroups. */
static int take_cgroups(struct options *o, int option, const char *argument)
{
	o->of_cgroups = true;
	switch (option) {
	case OPT_PODS:
		return take_pods(o, argument);
	case OPT_KUBELET:
		o->pods.kubelet = argument;
		return 0;
	case OPT_READ_ONLY_PORT:
		return take_port(&o->pods.readonly_port, "read-only-port", argument);
	case OPT_SECURE_PORT:
		return take_port(&o->pods.secure_port, "secure-port", argument);
	case OPT_TOKEN:
		o->pods.token = argument;
		return 0;
	case OPT_CA:
		o->pods.ca = argument;
		return 0;
	case OPT_AGENT_SOCKET:
		return take_socket(&o->pods.agent_socket, "agent-socket", argument);
	case OPT_POLL:
		return take_time(&o->pods.poll_ms, "poll", argument);
	case OPT_RECONCILE:
		return take_time(&o->reconcile_ms, "reconcile", argument);
	case OPT_CGROUP_ROOT:
		o->cgroup_root = argument;
		return 0;
	case OPT_STATE:
		o->state = argument;
		return 0;
	case OPT_MIGRATE:
		o->migrate = true;
		return 0;
	default:
		o->root = argument;
		return 0;
	}
}

static int take_source(struct options *o, const char *argument)
{
	static const char *const names[] = {[SOURCE_CRI] = "cri", [SOURCE_CGROUPS] = "cgroups"};
	int i = options_choose(argument, names, SOURCE_CGROUPS + 1);
	if (i < 0)
		return options_wrong("source", argument, "cri or cgroups");
	o->source = (enum source)i;
	return 0;
}

static int take(void *to, int option, const char *argument)
{
	static const char *const names[] = {"listen", "runtime", "image", "nri-socket"};
	struct options *o = to;
	const char **const sockets[] = {&o->listen, &o->runtime, &o->image, &o->nri_socket};
	int socket = option >= OPT_FORMER ? option - OPT_FORMER : option;
	if (option == OPT_SOURCE)
		return take_source(o, argument);
	if (option >= OPT_CGROUPS && option <= OPT_LAST)
		return take_cgroups(o, option, argument);
	o->of_cri |= option != OPT_LOG_LEVEL && option != OPT_NRI_SOCKET;
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
			  "pass through, and\nnri-rpd places the containers that they create. Or "
			  "beside them: what nri-rpd decides is\nwritten into the containers' "
			  "cgroups.\n"
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
				.log_level = LOG_INFO,
				.root = "/",
				.reconcile_ms = 5000,
				.pods = {.kubelet = DEFAULT_KUBELET,
					 .readonly_port = 10255,
					 .secure_port = 10250,
					 .token = DEFAULT_TOKEN,
					 .agent_socket = DEFAULT_AGENT,
					 .poll_ms = 30000}};
	enum options_result r = cmdline_parse(&line, argc, argv, ret);
	if (r == OPTIONS_RUN && (ret->source == SOURCE_CRI ? ret->of_cgroups : ret->of_cri)) {
		fprintf(stderr,
			"nri-rp-bridge: an option is of no use with --source %s: see "
			"nri-rp-bridge --help\n",
			ret->source == SOURCE_CRI ? "cri, which is the default" : "cgroups");
		return OPTIONS_WRONG;
	}
	return r;
}
