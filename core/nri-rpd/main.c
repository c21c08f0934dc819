/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Main function of nri-rpd. It only connects the parts: the pipeline decides, the front end talks
 * to the runtime, the control socket and the metrics observe. They are created here, notified of
 * each other's changes, and freed in the reverse order.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/agent/agent.h"
#include "core/nri-rpd/control/control.h"
#include "core/nri-rpd/host/breadcrumb.h"
#include "core/nri-rpd/options.h"
#include "core/nri-rpd/metrics/map/map.h"
#include "core/nri-rpd/metrics/collector.h"
#include "core/nri-rpd/metrics/metrics.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/request/request.h"
#include "core/nri-rpd/nri/nri.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/privileges.h"
#include "core/lib/util/sd.h"
#include "core/lib/util/str.h"
#include "core/lib/wire/sock.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/metrics/server.h"
#include "core/nri-rpd/pipeline/observe/status.h"

#define LOG_SOURCE "nri-rpd"
#define EXIT_CONFIG 78
#define SPEED_SELECT "/dev/isst_interface"
/* time after which readiness is reported to systemd, synchronized or not */
#define READY_ANYWAY_MS 20000u
#define NO_RUNTIME_MS 3000u /* time until readiness if there is no runtime to wait for */

struct daemon {
	struct options options;
	struct loop *loop;
	struct sd *sd;
	struct pipeline *pipeline;
	struct nri *nri;
	struct agent *agent;
	struct ctl *ctl;
	struct metrics *metrics;
	struct map *map; /* live map; NULL: out of memory, or not created yet */
	struct collector *collector;
	struct loop_timer *ready_anyway;
	char run_dir[CACHE_PATH_MAX]; /* folder of the option --control-socket */
	bool waits_longer; /* the daemon waits longer for a runtime that exists */
	bool ready, status_due, forced_debug, failed;
};

/* ---- notifications --------------------------------------------------------------------------- */

static void on_updates_ready(void *arg)
{
	nri_updates_ready(((struct daemon *)arg)->nri);
}

static void on_decided(void *arg)
{
	const struct daemon *d = arg;
	if (d->agent)
		agent_changed(d->agent);
}

/* Status for systemd, "connected to containerd 1.7.2; degraded: …", short enough to be shown. */
struct unit_status {
	char text[SD_STATUS_MAX], first[SD_STATUS_MAX];
	unsigned n;
};

static void add_condition(const struct condition *c, void *arg)
{
	struct unit_status *s = arg;
	if (str_has_prefix(c->id, "runtime-"))
		return; /* already at the beginning of the text */
	if (!s->n++)
		(void)snprintf(s->first, sizeof s->first, "%s", c->text);
}

static void build_status(const struct daemon *d, struct unit_status *s)
{
	const struct runtime_state *rt = pipeline_runtime(d->pipeline);
	size_t used;
	if (rt->connected)
		(void)snprintf(s->text, sizeof s->text, "connected to %s %s", rt->facts.name,
			       rt->facts.version);
	else
		(void)snprintf(s->text, sizeof s->text, "waiting for the runtime: %.160s",
			       rt->last_error);
	(void)conditions_each(d->pipeline, add_condition, s);
	used = strlen(s->text);
	if (s->n == 1)
		(void)snprintf(s->text + used, sizeof s->text - used, "; degraded: %s", s->first);
	else if (s->n)
		(void)snprintf(s->text + used, sizeof s->text - used,
			       "; degraded (%u reasons, see nri-rpctl status): %s", s->n, s->first);
}

/* Sends the status to systemd. Before readiness systemd shows that the service is starting. */
static void tell_status(struct daemon *d)
{
	struct unit_status s = {.n = 0};
	if (!d->ready || !d->pipeline)
		return;
	build_status(d, &s);
	sd_status(d->sd, s.text);
}

static void now_ready(struct daemon *d)
{
	struct unit_status s = {.n = 0};
	build_status(d, &s);
	d->ready = true;
	sd_ready(d->sd, s.text);
}

static void on_synchronized(void *arg)
{
	struct daemon *d = arg;
	if (d->ready)
		tell_status(d);
	else
		now_ready(d);
	loop_timer_disarm(d->ready_anyway);
}

/* Reports readiness without a synchronization. A runtime that could not be connected to by now is
 * unlikely to synchronize soon. */
static void ready_anyway(void *arg)
{
	struct daemon *d = arg;
	const struct runtime_state *rt = pipeline_runtime(d->pipeline);
	bool first = !d->waits_longer;
	d->waits_longer = true;
	if (first && (rt->connected || !rt->last_error[0]))
		(void)loop_timer_arm(d->ready_anyway, READY_ANYWAY_MS - NO_RUNTIME_MS);
	else
		now_ready(d);
}

static void status_changed(void *arg)
{
	struct daemon *d = arg;
	d->status_due = false;
	tell_status(d);
	if (d->agent)
		agent_status_changed(d->agent);
}

/* Defers the status until the component that has changed has completed its work. */
static void on_changed(void *arg)
{
	struct daemon *d = arg;
	if (d->agent)
		agent_event(d->agent);
	if (!d->status_due)
		d->status_due = loop_defer(d->loop, status_changed, d) == 0;
}

static void set_debug(const struct daemon *d)
{
	static const char *const all = "*";
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	if (d->forced_debug)
		(void)log_set_debug(&all, 1);
	else
		(void)log_set_debug(core->log.debug.items, core->log.debug.n);
}

static void serve_metrics(struct daemon *d, const struct conf_core *core)
{
	struct err err = ERR_INIT;
	int r = d->metrics ? 0 : metrics_new(d->loop, d->pipeline, "", &d->metrics, &err);
	if (!r)
		r = metrics_set_listen(d->metrics, core->metrics.listen, &err);
	if (d->metrics && d->ctl && !d->map)
		d->map = map_new(d->metrics, d->ctl, d->pipeline);
	if (d->map)
		map_serve(d->map, core->metrics.map);
	pipeline_served(d->pipeline, SERVICE_METRICS, r ? &err : NULL);
}

static void serve_agent(struct daemon *d, const struct conf_core *core)
{
	struct err err = ERR_INIT;
	int r = d->agent ? 0 : agent_new(d->loop, d->pipeline, &d->agent, &err);
	if (!r)
		r = agent_configure(d->agent, core, &err);
	pipeline_served(d->pipeline, SERVICE_AGENT, r ? &err : NULL);
}

static void serve_control(struct daemon *d, const struct conf_core *core)
{
	const char *socket =
		d->options.control_socket ? d->options.control_socket : core->control_socket;
	struct err err = ERR_INIT;
	int r = d->ctl ? ctl_set_socket(d->ctl, socket, &err)
		       : ctl_new(d->loop, d->pipeline, socket, &d->ctl, &err);
	pipeline_served(d->pipeline, SERVICE_CONTROL, r ? &err : NULL);
}

/* Returns the configuration of the connection to the runtime. */
static struct nri_config front_end(const struct daemon *d, const struct conf_core *core)
{
	return (struct nri_config){
		.loop = d->loop,
		.pipeline = d->pipeline,
		.socket = d->options.nri_socket ? d->options.nri_socket : core->runtime.socket,
		.name = core->runtime.name,
		.fallback = core->runtime.fallback,
		.fallback_after_ms = core->runtime.fallback_after_ms,
		.index = core->runtime.index,
		.inherited_fd = -1,
	};
}

static void on_configured(const struct conf *conf, void *arg)
{
	struct daemon *d = arg;
	const struct conf_core *core = conf_core(conf);
	if (!d->nri)
		return; /* the first configuration: nothing to notify */
	const struct nri_config runtime = front_end(d, core);
	(void)nri_set_runtime(d->nri, &runtime);
	set_debug(d);
	serve_agent(d, core);
	if (d->collector)
		collector_configure(d->collector, core);
	serve_metrics(d, core);
	serve_control(d, core);
}

static void rpd_reloaded(const struct reload_result *res, void *arg)
{
	struct daemon *d = arg;
	if (res->code != -ESHUTDOWN)
		now_ready(d);
}

static void reload_by_signal(struct daemon *d)
{
	if (d->ready)
		sd_reloading(d->sd);
	/* While systemd waits for the start, the reload is not reported separately: readiness
	 * follows the synchronization. */
	pipeline_reload(d->pipeline, d->ready ? rpd_reloaded : NULL, d);
}

static void toggle_debug(struct daemon *d)
{
	d->forced_debug = !d->forced_debug;
	set_debug(d);
	log_warning("full debugging is %s", d->forced_debug ? "on" : "off");
}

static void dump_state(struct daemon *d)
{
	struct pipeline_status s;
	const struct ctr *ctr;
	pipeline_status(d->pipeline, &s);
	log_notice("state: policy %s, %u pods, %u containers, %u updates waiting%s", s.policy,
		   s.n_pods, s.n_ctrs, s.n_updates_waiting, s.degraded ? ", degraded" : "");
	for (ctr = cache_ctrs(pipeline_cache(d->pipeline)); ctr; ctr = ctr->next)
		log_notice("state: %s %s: CPUs %s, memory nodes %s%s%s", ctr->full_name, ctr->id,
			   ctr->cur.cpus ? ctr->cur.cpus->text : "-",
			   ctr->cur.mems ? ctr->cur.mems->text : "-",
			   ctr->cur.degraded ? ", degraded: " : "",
			   ctr->cur.degraded ? ctr->cur.degraded->data : "");
}

static void on_signal(int signo, void *arg)
{
	struct daemon *d = arg;
	switch (signo) {
	case SIGHUP:
		reload_by_signal(d);
		return;
	case SIGUSR1:
		toggle_debug(d);
		return;
	case SIGUSR2:
		dump_state(d);
		return;
	default:
		log_notice("stopping");
		sd_stopping(d->sd);
		loop_stop(d->loop);
	}
}

static void on_orphaned(void *arg)
{
	struct daemon *d = arg;
	log_notice("the runtime that started this plugin has closed its connection: exiting");
	d->failed = true;
	loop_stop(d->loop);
}

/* ---- start and end --------------------------------------------------------------------------- */

static struct pipeline_config pipeline_config_of(struct daemon *d)
{
	return (struct pipeline_config){
		.loop = d->loop,
		.config_path = d->options.config,
		.host_root = d->options.host_root,
		.state_dir = d->options.state_dir,
		.run_dir = d->options.control_socket ? d->run_dir : NULL,
		.module_dirs = d->options.module_dirs,
		.n_module_dirs = d->options.n_module_dirs,
		.reset_cache = d->options.reset_cache,
		.fixed_log_level = d->options.log_level != NULL,
		.updates_ready = on_updates_ready,
		.configured = on_configured,
		.changed = on_changed,
		.synchronized = on_synchronized,
		.decided = on_decided,
		.arg = d,
	};
}

static int inherited_fd(struct err *err)
{
	const char *text = getenv("NRI_PLUGIN_SOCKET");
	int64_t fd;
	if (!text)
		return -1;
	if (str_to_i64(text, &fd) || fd < 3 || fd > 1 << 20)
		return err_set(err, -EINVAL, "NRI_PLUGIN_SOCKET=%s is not a descriptor", text);
	int r = wire_adopt((int)fd, err);
	return r ? r : (int)fd;
}

static int start_front_end(struct daemon *d, struct err *err)
{
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	int fd = inherited_fd(err);
	if (fd < -1)
		return fd;
	struct nri_config config = front_end(d, core);
	config.inherited_fd = fd;
	config.orphaned = on_orphaned;
	config.arg = d;
	return nri_new(&config, &d->nri, err);
}

/* Starts parts whose failure must not prevent the placement of containers. */
static void start_onlookers(struct daemon *d)
{
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	struct err err = ERR_INIT;
	serve_agent(d, core);
	serve_control(d, core);
	serve_metrics(d, core);
	d->collector = collector_new(d->loop, d->pipeline, &err);
	if (d->collector)
		collector_configure(d->collector, core);
	else
		log_error("usage of containers is not collected: %s", err.text);
}

static int rpd_start(struct daemon *d, struct err *err)
{
	static const int signos[] = {SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
	(void)signal(SIGPIPE, SIG_IGN);
	d->loop = loop_new();
	d->sd = d->loop ? sd_new(d->loop) : NULL;
	d->ready_anyway = d->loop ? loop_timer_new(d->loop, ready_anyway, d) : NULL;
	if (!d->sd || !d->ready_anyway ||
	    loop_take_signals(d->loop, signos, sizeof signos / sizeof *signos, on_signal, d))
		return err_errno(err, -ENOMEM, "start");
	const struct pipeline_config config = pipeline_config_of(d);
	int r = pipeline_new(&config, &d->pipeline, err);
	if (!r)
		r = start_front_end(d, err);
	if (r)
		return r;
	start_onlookers(d);
	sd_on_feed(d->sd, on_changed, d);
	sd_status(d->sd, "connecting to the runtime");
	return loop_timer_arm(d->ready_anyway, NO_RUNTIME_MS);
}

/* Stops the daemon. Returns the status, or ends the process with it. */
static int rpd_stop(struct daemon *d, int status)
{
	d->metrics = metrics_free(d->metrics);
	d->map = map_free(d->map);
	d->collector = collector_free(d->collector);
	d->ctl = ctl_free(d->ctl);
	d->nri = nri_free(d->nri);
	d->agent = agent_free(d->agent);
	d->pipeline = pipeline_free(d->pipeline);
	if (d->pipeline)
		_exit(status);
	loop_timer_free(d->ready_anyway);
	d->sd = sd_free(d->sd);
	d->loop = loop_free(d->loop);
	return status;
}

/* Returns true if the report contains the text. An error of one line is the first of several
 * problems with the number of further ones. */
static bool rpd_told(const char *report, const char *text)
{
	const char *more = strstr(text, " (and ");
	_free_ char *first = more ? strndup(text, (size_t)(more - text)) : strdup(text);
	return first && strstr(report, first);
}

static int check_config(struct daemon *d)
{
	struct buf report = BUF_INIT;
	struct err err = ERR_INIT;
	const struct pipeline_config config = pipeline_config_of(d);
	int r = pipeline_check(&config, &report, &err);
	fputs(buf_text(&report), stdout);
	if (r && err.text[0] && !rpd_told(buf_text(&report), err.text))
		fprintf(stderr, "%s\n", err.text);
	if (!r)
		printf("%s: good\n", d->options.config);
	buf_fini(&report);
	return r ? EXIT_CONFIG : 0;
}

/* Returns the capabilities to keep. The shipped unit grants none of them, because none is needed
 * there by default. */
static uint64_t rpd_privileges(void)
{
	uint64_t keep =
		/* For files of other users: configured files may be in their folders, and some
		 * files of a container's cgroup belong to them if the container has a user
		 * namespace. */
		PRIVILEGE(CAP_DAC_OVERRIDE) |
		/* For page migration: to find the memory of containers' processes and move it to
		 * other nodes. */
		PRIVILEGE(CAP_SYS_PTRACE);
	/* The kernel requires this capability to set classes of Speed Select, and to make isolated
	 * partitions, for which the administrator sets the variable. */
	bool admin = access(SPEED_SELECT, F_OK) == 0 || getenv("NRI_RPD_PARTITIONS");
	return admin ? keep | PRIVILEGE(CAP_SYS_ADMIN) : keep;
}

int main(int argc, char **argv)
{
	struct daemon d = {0};
	struct err err = ERR_INIT;
	enum log_level level;
	log_init("nri-rpd");
	enum options_result parsed = options_parse(argc, argv, &d.options);
	if (parsed != OPTIONS_RUN)
		return parsed;
	(void)umask(0077); /* files for other users get their mode explicitly */
	if (d.options.log_level && log_level_from_name(d.options.log_level, &level) == 0)
		log_set_level(level);
	if (d.options.control_socket)
		fs_parent(d.options.control_socket, d.run_dir, sizeof d.run_dir);
	int r = privileges_drop(rpd_privileges(), &err);
	if (!r && d.options.check_config)
		return check_config(&d);
	log_info("version %s", NRI_RP_VERSION);
	if (!r)
		r = rpd_start(&d, &err);
	if (r) {
		log_error("%s", err_text(&err, r));
		return rpd_stop(&d, r == -EINVAL || r == -ENOENT ? EXIT_CONFIG : EXIT_FAILURE);
	}
	r = loop_run(d.loop);
	if (r) {
		log_error("the event loop failed: a module may have closed its descriptors");
		crumb_failed(pipeline_crumb(d.pipeline));
	}
	bool failed = r || d.failed;
	return rpd_stop(&d, failed ? EXIT_FAILURE : EXIT_SUCCESS);
}
