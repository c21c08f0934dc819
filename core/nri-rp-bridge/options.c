/* SPDX-License-Identifier: Apache-2.0 */
#include "core/nri-rp-bridge/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* Parses the path of a socket; the kubelet's notation "unix:///path" is accepted. */
static int take_socket(void *to, const struct cmdline_option *option, const char *argument)
{
	const char *path =
		str_has_prefix(argument, SCHEME) ? argument + sizeof SCHEME - 1 : argument;
	if (*path != '/') {
		fprintf(stderr, "nri-rp-bridge: --%s %s: expected an absolute path\n", option->name,
			argument);
		return -1;
	}
	*(const char **)cmdline_member(to, option) = path;
	return 0;
}

static int take_trace(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	int r = trace_add(&o->trace, argument);
	if (!r)
		return 0;
	if (r == -E2BIG)
		fprintf(stderr, "nri-rp-bridge: --trace can be repeated at most %u times\n",
			TRACE_RULES_MAX);
	else
		fprintf(stderr,
			"nri-rp-bridge: --trace %s: expected a method like ListContainers or "
			"List*, optionally with =off, =name, =short or =full\n",
			argument);
	return -1;
}

static int options_wrong(const struct cmdline_option *option, const char *argument,
			 const char *expected)
{
	fprintf(stderr, "nri-rp-bridge: --%s %s: expected %s\n", option->name, argument, expected);
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

static int take_pod_event(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	o->pod_event_after = str_eq(argument, "after");
	return o->pod_event_after || str_eq(argument, "before")
		       ? 0
		       : options_wrong(option, argument, "before or after");
}

static int take_pods(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	static const char *const names[] = {[PODS_AUTO] = "auto",
					    [PODS_READONLY] = "readonly",
					    [PODS_SECURE] = "secure",
					    [PODS_AGENT] = "agent",
					    [PODS_CGROUPFS] = "cgroupfs"};
	int i = options_choose(argument, names, PODS_CGROUPFS + 1);
	if (i < 0)
		return options_wrong(option, argument, "auto, readonly, secure, agent or cgroupfs");
	o->pods.source = (enum pods_source)i;
	return 0;
}

static int take_port(void *to, const struct cmdline_option *option, const char *argument)
{
	uint64_t v;
	if (str_to_u64(argument, &v) || !v || v > UINT16_MAX)
		return options_wrong(option, argument, "a port");
	*(unsigned *)cmdline_member(to, option) = (unsigned)v;
	return 0;
}

static int take_time(void *to, const struct cmdline_option *option, const char *argument)
{
	int64_t ms;
	if (str_to_ms(argument, &ms) || ms < 100 || ms > TIME_MAX_MS)
		return options_wrong(option, argument, "a time from 100ms to 1h, as in 30s");
	*(uint64_t *)cmdline_member(to, option) = (uint64_t)ms;
	return 0;
}

static int take_source(void *to, const struct cmdline_option *option, const char *argument)
{
	struct options *o = to;
	static const char *const names[] = {[SOURCE_CRI] = "cri", [SOURCE_CGROUPS] = "cgroups"};
	int i = options_choose(argument, names, SOURCE_CGROUPS + 1);
	if (i < 0)
		return options_wrong(option, argument, "cri or cgroups");
	o->source = (enum source)i;
	return 0;
}

/* Parses an option of CRI Resource Manager, whose help ends with the option's name in this
 * program. */
static int take_former(void *to, const struct cmdline_option *option, const char *argument)
{
	fprintf(stderr,
		"nri-rp-bridge: hint: %s is the name of this option here; the one of CRI Resource "
		"Manager works as well\n",
		strrchr(option->help, ' ') + 1);
	return take_socket(to, option, argument);
}

#define OPTION_AT(member) offsetof(struct options, member)

static const struct cmdline_option table[] = {
	OPTION("source", "cri|cgroups",
	       "cri: between kubelet and runtime (default); cgroups: beside\n                      "
	       "     them",
	       .take = take_source),
	OPTION("nri-socket", "PATH", "the socket for nri-rpd, default " DEFAULT_NRI,
	       OPTION_TAKE(take_socket, nri_socket)),
	OPTION("listen", "PATH", "the socket for the kubelet, default " DEFAULT_LISTEN,
	       OPTION_TAKE(take_socket, listen), .mark = OPTION_AT(of_cri)),
	OPTION("runtime", "PATH",
	       "the runtime's socket, default\n"
	       "                           " DEFAULT_RUNTIME,
	       OPTION_TAKE(take_socket, runtime), .mark = OPTION_AT(of_cri)),
	OPTION("image", "PATH", "the image service's socket, default the runtime's",
	       OPTION_TAKE(take_socket, image), .mark = OPTION_AT(of_cri)),
	OPTION("strict", NULL,
	       "fail a call if the plugin requests settings that CRI cannot\n                      "
	       "     express",
	       OPTION_FLAG(strict), .mark = OPTION_AT(of_cri)),
	OPTION("require-plugin", NULL, "fail RunPodSandbox and CreateContainer without nri-rpd",
	       OPTION_FLAG(require_plugin), .mark = OPTION_AT(of_cri)),
	OPTION("pod-event", "WHEN",
	       "ask the plugin before the runtime creates a pod (default) or\n                     "
	       "      after, with the runtime's id of the pod",
	       .take = take_pod_event, .mark = OPTION_AT(of_cri)),
	OPTION("trace", "GLOB[=LEVEL]",
	       "log calls whose method matches: off, name, short (default)\n                       "
	       "    or full; may be repeated, the first match is used",
	       .take = take_trace, .mark = OPTION_AT(of_cri)),
	OPTION("log-level", "LEVEL", "error, warning, notice, info or debug, default info",
	       OPTION_LEVEL(log_level)),
	OPTION("pods", "SOURCE",
	       "with --source cgroups, source of pods' names and annotations:\n                    "
	       "       readonly or secure (a port of the kubelet), agent (nri-rp-agent),\n         "
	       "                  cgroupfs (none), or auto (default)",
	       .take = take_pods, .mark = OPTION_AT(of_cgroups)),
	OPTION("kubelet", "HOST", "address of the kubelet, default " DEFAULT_KUBELET,
	       OPTION_TEXT(pods.kubelet), .mark = OPTION_AT(of_cgroups)),
	OPTION("read-only-port", "PORT", "read-only port of the kubelet, default 10255",
	       OPTION_TAKE(take_port, pods.readonly_port), .mark = OPTION_AT(of_cgroups)),
	OPTION("secure-port", "PORT", "secure port of the kubelet, default 10250",
	       OPTION_TAKE(take_port, pods.secure_port), .mark = OPTION_AT(of_cgroups)),
	OPTION("kubelet-token", "FILE",
	       "the token for the secure port, default\n"
	       "                           " DEFAULT_TOKEN,
	       OPTION_TEXT(pods.token), .mark = OPTION_AT(of_cgroups)),
	OPTION("kubelet-ca", "FILE",
	       "CA file for the kubelet's certificate; without it the\n                           "
	       "certificate is not checked",
	       OPTION_TEXT(pods.ca), .mark = OPTION_AT(of_cgroups)),
	OPTION("agent-socket", "PATH",
	       "the socket for nri-rp-agent, default\n"
	       "                           " DEFAULT_AGENT,
	       OPTION_TAKE(take_socket, pods.agent_socket), .mark = OPTION_AT(of_cgroups)),
	OPTION("poll", "TIME", "interval between lists of the kubelet, default 30s",
	       OPTION_TAKE(take_time, pods.poll_ms), .mark = OPTION_AT(of_cgroups)),
	OPTION("reconcile", "TIME", "interval between checks of the cgroups' files, default 5s",
	       OPTION_TAKE(take_time, reconcile_ms), .mark = OPTION_AT(of_cgroups)),
	OPTION("cgroup-root", "PATH", "parent of the kubelet's cgroup, default: any",
	       OPTION_TEXT(cgroup_root), .mark = OPTION_AT(of_cgroups)),
	OPTION("runtime-state", "DIR",
	       "runtime's folder with one folder per container, besides\n                          "
	       " those of containerd, CRI-O and Docker",
	       OPTION_TEXT(state), .mark = OPTION_AT(of_cgroups)),
	OPTION("memory-migrate", NULL, "with cgroup v1, move memory to a container's new nodes",
	       OPTION_FLAG(migrate), .mark = OPTION_AT(of_cgroups)),
	OPTION("host-root", "DIR", "read and write cgroups and /proc below DIR", OPTION_TEXT(root),
	       .mark = OPTION_AT(of_cgroups)),
	OPTION("relay-socket", "PATH", "CRI Resource Manager's name of --listen",
	       OPTION_TAKE(take_former, listen), .mark = OPTION_AT(of_cri)),
	OPTION("runtime-socket", "PATH", "CRI Resource Manager's name of --runtime",
	       OPTION_TAKE(take_former, runtime), .mark = OPTION_AT(of_cri)),
	OPTION("image-socket", "PATH", "CRI Resource Manager's name of --image",
	       OPTION_TAKE(take_former, image), .mark = OPTION_AT(of_cri)),
};

enum options_result options_parse(int argc, char **argv, struct options *ret)
{
	static const struct cmdline line = {
		.program = "nri-rp-bridge",
		.version = NRI_RP_VERSION,
		.before = "Usage: nri-rp-bridge [OPTION]…\nLets nri-rpd place containers of a "
			  "runtime without NRI: as a proxy between the kubelet and the\nruntime "
			  "(--source cri), or by writing the containers' cgroups (--source "
			  "cgroups).\nRuns in the foreground; SIGTERM stops it.\n",
		.after = "Exit status: 0 stopped on request, 1 failed, 2 wrong usage.\nSee "
			 "nri-rp-bridge(8), nri-rpd(8).\n",
		.options = table,
		.n_options = sizeof table / sizeof *table,
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
			"nri-rp-bridge: an option has no effect with --source %s: see "
			"nri-rp-bridge --help\n",
			ret->source == SOURCE_CRI ? "cri (the default)" : "cgroups");
		return OPTIONS_WRONG;
	}
	return r;
}
