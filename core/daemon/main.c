/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nri-rpd: wiring only. The pipeline decides, the front end talks to the runtime, the control socket and the metrics look on; here they
 * are made, told about each other's news, and taken down in the reverse order.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/agent/agent.h"
#include "core/ctl/ctl.h"
#include "core/daemon/options.h"
#include "core/daemon/sd.h"
#include "core/metrics/collector.h"
#include "core/metrics/metrics.h"
#include "core/pipeline/pipeline.h"
#include "core/runtime/nri.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"
#include "core/wire/sock.h"

#define LOG_SOURCE "nri-rpd"
#define EXIT_USAGE 2
#define EXIT_CONFIG 78
#define READY_ANYWAY_MS 20000u /* systemd is told that we run, synchronized or not */

struct daemon {
	struct options options;
	struct loop *loop;
	struct sd *sd;
	struct pipeline *pipeline;
	struct nri *nri;
	struct agent *agent;
	struct ctl *ctl;
	struct metrics *metrics;
	struct collector *collector;
	struct loop_signal *signals[6];
	struct loop_timer *ready_anyway;
	bool ready, forced_debug, failed;
};

/* ---- news ------------------------------------------------------------------------------------------------------------- */

static void on_updates_ready(void *arg)
{
	nri_updates_ready(((struct daemon *)arg)->nri);
}

static void on_devices_ready(void *arg)
{
	nri_devices_ready(((struct daemon *)arg)->nri);
}

static void on_synchronized(void *arg)
{
	struct daemon *d = arg;
	const struct runtime_state *s = pipeline_runtime(d->pipeline);
	char status[160];
	(void)snprintf(status, sizeof status, "connected to %s %s", s->name, s->version);
	if (d->ready)
		sd_status(d->sd, "%s", status);
	else
		sd_ready(d->sd, status);
	d->ready = true;
	loop_timer_disarm(d->ready_anyway);
}

static void ready_anyway(void *arg)
{
	struct daemon *d = arg;
	const struct runtime_state *s = pipeline_runtime(d->pipeline);
	char status[ERR_TEXT_MAX + 32];
	(void)snprintf(status, sizeof status, "waiting for the runtime: %.200s", s->last_error);
	d->ready = true;
	sd_ready(d->sd, status);
}

static void on_configured(const struct conf *conf, void *arg)
{
	struct daemon *d = arg;
	const struct conf_core *core = conf_core(conf);
	struct err err = ERR_INIT;
	if (d->nri)
		(void)nri_set_runtime(d->nri,
				      d->options.nri_socket ? d->options.nri_socket
							    : core->runtime.socket,
				      core->runtime.name, core->runtime.index);
	if (d->agent && agent_configure(d->agent, core, &err))
		log_warning("%s", err.text);
	if (d->collector)
		collector_configure(d->collector, core);
	if (d->metrics && metrics_set_listen(d->metrics, core->metrics.listen, &err))
		log_warning("%s", err.text);
	if (d->ctl && !d->options.control_socket &&
	    ctl_set_socket(d->ctl, core->control_socket, &err))
		log_warning("%s", err.text);
}

static void reloaded(const struct reload_result *res, void *arg)
{
	struct daemon *d = arg;
	if (res->code == -ESHUTDOWN)
		return;
	if (res->code)
		sd_ready(d->sd, "running; the last reload was refused, see the log");
	else
		sd_ready(d->sd, "running");
}

static void toggle_debug(struct daemon *d)
{
	static const char *const all = "*";
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	d->forced_debug = !d->forced_debug;
	if (d->forced_debug)
		(void)log_set_debug(&all, 1);
	else
		(void)log_set_debug(core->log.debug.items, core->log.debug.n);
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
		sd_reloading(d->sd);
		pipeline_reload(d->pipeline, reloaded, d);
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

/* ---- life ------------------------------------------------------------------------------------------------------------- */

struct dirs {
	char state[CACHE_PATH_MAX], run[CACHE_PATH_MAX];
};

static void parent_of(const char *path, char *ret, size_t size)
{
	const char *slash = strrchr(path, '/');
	int len = slash > path ? (int)(slash - path) : slash ? 1 : 0;
	(void)snprintf(ret, size, "%.*s", len, len ? path : ".");
	if (!len)
		(void)snprintf(ret, size, ".");
}

/* Where the state and the breadcrumb are has to be known before the configuration can be read with its modules. */
static int find_dirs(const struct options *o, struct dirs *ret)
{
	struct conf *conf = NULL;
	struct conf_errors errs;
	struct buf text = BUF_INIT;
	conf_errors_init(&errs);
	int r = o->state_dir && o->control_socket ? 0 : conf_load(o->config, NULL, &conf, &errs);
	if (r) {
		conf_errors_print(&errs, &text);
		fprintf(stderr, "%s", buf_text(&text));
		buf_fini(&text);
		return r;
	}
	(void)snprintf(ret->state, sizeof ret->state, "%s",
		       o->state_dir ? o->state_dir : conf_core(conf)->cache_dir);
	parent_of(o->control_socket ? o->control_socket : conf_core(conf)->control_socket, ret->run,
		  sizeof ret->run);
	conf_free(conf);
	return 0;
}

static struct pipeline_config pipeline_config_of(struct daemon *d, const struct dirs *dirs)
{
	return (struct pipeline_config){
		.loop = d->loop,
		.config_path = d->options.config,
		.host_root = d->options.host_root,
		.state_dir = dirs->state,
		.run_dir = dirs->run,
		.module_dirs = d->options.module_dirs,
		.n_module_dirs = d->options.n_module_dirs,
		.reset_cache = d->options.reset_cache,
		.fixed_log_level = d->options.log_level != NULL,
		.updates_ready = on_updates_ready,
		.configured = on_configured,
		.synchronized = on_synchronized,
		.devices_ready = on_devices_ready,
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
		return err_set(err, -EINVAL, "NRI_PLUGIN_SOCKET=%s is no descriptor", text);
	int r = wire_adopt((int)fd, err);
	return r ? r : (int)fd;
}

static int start_signals(struct daemon *d)
{
	static const int signos[] = {SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
	(void)signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < sizeof signos / sizeof *signos; i++) {
		d->signals[i] = loop_signal_new(d->loop, signos[i], on_signal, d);
		if (!d->signals[i])
			return -ENOMEM;
	}
	return 0;
}

static int start_front_end(struct daemon *d, struct err *err)
{
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	int fd = inherited_fd(err);
	if (fd < -1)
		return fd;
	const struct nri_config config = {
		.loop = d->loop,
		.pipeline = d->pipeline,
		.socket = d->options.nri_socket ? d->options.nri_socket : core->runtime.socket,
		.name = core->runtime.name,
		.index = core->runtime.index,
		.inherited_fd = fd,
		.orphaned = on_orphaned,
		.arg = d,
	};
	return nri_new(&config, &d->nri, err);
}

/* Neither is worth not placing containers for. */
static void start_onlookers(struct daemon *d)
{
	const struct conf_core *core = conf_core(pipeline_conf(d->pipeline));
	const char *socket =
		d->options.control_socket ? d->options.control_socket : core->control_socket;
	struct err err = ERR_INIT;
	if (agent_new(d->loop, d->pipeline, &d->agent, &err) ||
	    agent_configure(d->agent, core, &err))
		log_error("no agent: %s", err.text);
	err = (struct err)ERR_INIT;
	if (ctl_new(d->loop, d->pipeline, socket, &d->ctl, &err))
		log_error("no control socket: %s", err.text);
	err = (struct err)ERR_INIT;
	if (metrics_new(d->loop, d->pipeline, "", &d->metrics, &err) ||
	    metrics_set_listen(d->metrics, core->metrics.listen, &err))
		log_error("no metrics: %s; the next reload tries again", err.text);
	err = (struct err)ERR_INIT;
	d->collector = collector_new(d->loop, d->pipeline, &err);
	if (d->collector)
		collector_configure(d->collector, core);
	else
		log_error("no figures of containers: %s", err.text);
}

static int start(struct daemon *d, const struct dirs *dirs, struct err *err)
{
	d->loop = loop_new();
	d->sd = d->loop ? sd_new(d->loop) : NULL;
	d->ready_anyway = d->loop ? loop_timer_new(d->loop, ready_anyway, d) : NULL;
	if (!d->sd || !d->ready_anyway || start_signals(d))
		return err_errno(err, -ENOMEM, "start");
	const struct pipeline_config config = pipeline_config_of(d, dirs);
	int r = pipeline_new(&config, &d->pipeline, err);
	if (!r)
		r = start_front_end(d, err);
	if (r)
		return r;
	start_onlookers(d);
	sd_status(d->sd, "connecting to the runtime");
	return loop_timer_arm(d->ready_anyway, READY_ANYWAY_MS);
}

/* Returns the status, or ends the process with it. */
static int stop(struct daemon *d, int status)
{
	d->metrics = metrics_free(d->metrics);
	d->collector = collector_free(d->collector);
	d->ctl = ctl_free(d->ctl);
	d->nri = nri_free(d->nri);
	d->agent = agent_free(d->agent);
	d->pipeline = pipeline_free(d->pipeline);
	if (d->pipeline)
		_exit(status);
	for (unsigned i = 0; i < sizeof d->signals / sizeof *d->signals; i++)
		if (d->signals[i])
			loop_signal_free(d->signals[i]);
	loop_timer_free(d->ready_anyway);
	d->sd = sd_free(d->sd);
	d->loop = loop_free(d->loop);
	return status;
}

/* An error for one line is the first of several problems, and how many more there are. */
static bool told(const char *report, const char *text)
{
	const char *more = strstr(text, " (and ");
	_free_ char *first = more ? strndup(text, (size_t)(more - text)) : strdup(text);
	return first && strstr(report, first);
}

static int check_config(struct daemon *d)
{
	struct buf report = BUF_INIT;
	struct err err = ERR_INIT;
	struct dirs dirs = {"", ""};
	if (d->options.state_dir)
		(void)snprintf(dirs.state, sizeof dirs.state, "%s", d->options.state_dir);
	const struct pipeline_config config = pipeline_config_of(d, &dirs);
	int r = pipeline_check(&config, &report, &err);
	fputs(buf_text(&report), stdout);
	if (r && err.text[0] && !told(buf_text(&report), err.text))
		fprintf(stderr, "%s\n", err.text);
	if (!r)
		printf("%s: good\n", d->options.config);
	buf_fini(&report);
	return r ? EXIT_CONFIG : 0;
}

int main(int argc, char **argv)
{
	struct daemon d = {0};
	struct err err = ERR_INIT;
	struct dirs dirs;
	enum log_level level;
	log_init("nri-rpd");
	switch (options_parse(argc, argv, &d.options)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_WRONG:
		return EXIT_USAGE;
	default:
		break;
	}
	(void)umask(0022);
	if (d.options.log_level && log_level_from_name(d.options.log_level, &level) == 0)
		log_set_level(level);
	if (d.options.check_config)
		return check_config(&d);
	if (find_dirs(&d.options, &dirs))
		return EXIT_CONFIG;
	log_info("nri-rpd %s", NRI_RP_VERSION);
	int r = start(&d, &dirs, &err);
	if (r) {
		log_error("%s", err_text(&err, r));
		return stop(&d, r == -EINVAL || r == -ENOENT ? EXIT_CONFIG : EXIT_FAILURE);
	}
	r = loop_run(d.loop);
	bool failed = r || d.failed;
	return stop(&d, failed ? EXIT_FAILURE : EXIT_SUCCESS);
}
