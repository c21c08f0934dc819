/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rp-bridge: connects a plugin to a container runtime without NRI. With the source "cri" it
 * stands between the kubelet and the runtime; with the source "cgroups" it works beside them.
 *
 * Common to both sources:
 *   main.c            start and stop
 *   options.c         command line options
 *   plugin.c          the plugin: its connection, requests and events for it
 *   model.c           pods and containers, by the plugin's and the runtime's ids
 *   cri_edit.c        converts between CRI and NRI messages
 *   cri_info.c        parses the JSON of runtimes' verbose statuses
 *
 * Source "cri":
 *   proxy.c           passes calls between the kubelet and the runtime
 *   trace.c           logs passing calls
 *   upstream.c        connection to the runtime's socket
 *   events.c          shares the runtime's stream of container events
 *   intercept.c       life of an intercepted call
 *   intercept_internal.h  types shared by the files of intercept.h
 *   methods.c         the intercepted calls, one by one
 *   after_create.c    pods and containers created before the plugin hears of them
 *   plugin_notices.c  events for the plugin, and its updates of other containers
 *   gather.c          lists pods and containers for Synchronize
 *   exit_watch.c      detects containers that end by themselves
 *
 * Source "cgroups":
 *   cgroup_source.c   tracks pods and containers by their cgroups
 *   cgroup_source_internal.h  types shared by the files of cgroup_source.h
 *   cgroup_plugin.c   requests and events for the plugin, and its answers
 *   cgroup_writer.c   writes to cgroup files, on a thread
 *   cgroup_files.c    reads and writes the files of one cgroup
 *   kubepods.c        finds and watches the kubelet's cgroups
 *   bundle.c          reads what the runtime has written about a container
 *   describe.c        pods and containers as NRI messages
 *   podlist.c         the node's pods beyond their cgroups
 *   fetch.c           the kubelet's list of pods
 *   feed.c            nri-rp-agent's feed of pods
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/nri-rp-bridge/cgroup_source.h"
#include "core/nri-rp-bridge/options.h"
#include "core/nri-rp-bridge/proxy.h"
#include "core/lib/util/privileges.h"
#include "core/lib/util/sd.h"
#include "core/lib/util/str.h"

#define LOG_SOURCE "bridge"

struct bridge {
	struct loop *loop;
	struct sd *sd;
	struct upstream *runtime, *image; /* image NULL: same as runtime */
	struct events *events;
	struct intercept *intercept;
	struct proxy *proxy;
	/* source cgroups: in place of runtime, image, events, intercept and proxy */
	struct cgroup_source *source;
};

static void on_signal(int signo, void *arg)
{
	struct bridge *b = arg;
	log_notice("stopping");
	sd_stopping(b->sd);
	loop_stop(b->loop);
}

static int start_loop(struct bridge *b, struct err *err)
{
	static const int signos[] = {SIGTERM, SIGINT};
	b->loop = loop_new();
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN); /* no configuration to reload */
	if (b->loop && !loop_take_signals(b->loop, signos, 2, on_signal, b))
		b->sd = sd_new(b->loop);
	return b->sd ? 0 : err_errno(err, -ENOMEM, "start");
}

static int start_proxy(struct bridge *b, const struct options *o, struct err *err)
{
	int r = upstream_new(b->loop, o->runtime, &b->runtime, err);
	if (!r && o->image && !str_eq(o->image, o->runtime))
		r = upstream_new(b->loop, o->image, &b->image, err);
	b->events = r ? NULL : events_new(b->loop, b->runtime);
	if (!r && !b->events)
		r = err_errno(err, -ENOMEM, "start");
	if (!r)
		r = intercept_new(&(struct intercept_config){.loop = b->loop,
							     .runtime = b->runtime,
							     .events = b->events,
							     .socket = o->nri_socket,
							     .strict = o->strict,
							     .require_plugin = o->require_plugin,
							     .pod_event_after = o->pod_event_after},
				  &b->intercept, err);
	return r ? r
		 : proxy_new(&(struct proxy_config){.loop = b->loop,
						    .listen = o->listen,
						    .inherited = sd_listen_fd(0),
						    .runtime = b->runtime,
						    .image = b->image ? b->image : b->runtime,
						    .intercept = b->intercept,
						    .events = b->events,
						    .trace = &o->trace},
			     &b->proxy, err);
}

static void on_status(const char *text, void *arg)
{
	struct bridge *b = arg;
	sd_status(b->sd, text);
}

static int start_cgroup_source(struct bridge *b, const struct options *o, struct err *err)
{
	struct cgroup_source_config config = {.loop = b->loop,
					      .socket = o->nri_socket,
					      .root = o->root,
					      .cgroup_root = o->cgroup_root,
					      .state = o->state,
					      .reconcile_ms = o->reconcile_ms,
					      .migrate = o->migrate,
					      .pods = o->pods,
					      .status = on_status,
					      .arg = b};
	config.pods.loop = b->loop;
	return cgroup_source_new(&config, &b->source, err);
}

static void tell_ready(struct bridge *b, const struct options *o)
{
	char status[SD_STATUS_MAX];
	if (o->source == SOURCE_CGROUPS)
		(void)snprintf(status, sizeof status, "source cgroups, waiting for nri-rpd at %s",
			       o->nri_socket);
	else
		(void)snprintf(status, sizeof status, "between %s and %s", o->listen, o->runtime);
	log_info("%s", status);
	sd_ready(b->sd, status);
}

static void bridge_stop(struct bridge *b)
{
	b->source = cgroup_source_free(b->source);
	b->proxy = proxy_free(b->proxy);
	b->image = upstream_free(b->image);
	b->runtime = upstream_free(b->runtime);
	b->intercept = intercept_free(b->intercept);
	b->events = events_free(b->events);
	b->sd = sd_free(b->sd);
	b->loop = loop_free(b->loop);
}

int main(int argc, char **argv)
{
	struct bridge b = {0};
	struct options o;
	struct err err = ERR_INIT;
	log_init("nri-rp-bridge");
	enum options_result parsed = options_parse(argc, argv, &o);
	if (parsed != OPTIONS_RUN)
		return parsed;
	(void)umask(0077);
	log_set_level(o.log_level);
	log_info("nri-rp-bridge %s", NRI_RP_VERSION);
	/* Root's capability to override file permissions is kept: sockets, state folders and
	 * cgroups may belong to other users. */
	int r = privileges_drop(PRIVILEGE(CAP_DAC_OVERRIDE), &err);
	if (!r)
		r = start_loop(&b, &err);
	if (!r)
		r = o.source == SOURCE_CGROUPS ? start_cgroup_source(&b, &o, &err)
					       : start_proxy(&b, &o, &err);
	if (r) {
		log_error("%s", err_text(&err, r));
	} else {
		tell_ready(&b, &o);
		r = loop_run(b.loop);
	}
	bridge_stop(&b);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
