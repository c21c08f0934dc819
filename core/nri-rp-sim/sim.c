/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a node, sets it up, waits, and removes it. */
#include "core/lib/machines/tree.h"
#include "core/lib/machines/shipped.h"
#include "core/nri-rp-sim/sim.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/daemon.h"
#include "core/nri-rp-sim/files.h"
#include "core/nri-rp-sim/model.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/str.h"

#define REQUEST_TIMEOUT_MS 2000
#define REGISTRATION_TIMEOUT_MS 5000
#define PROBLEMS_MAX 1000u
#define DEPTH_MAX 32u

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait_is_over(void *arg)
{
	struct sim *s = arg;
	s->wait_over = true;
	loop_stop(s->loop);
}

/* Ends all waits on SIGINT or SIGTERM; clean-up follows as usual. */
static void on_interrupt(int signo, void *arg)
{
	struct sim *s = arg;
	s->interrupted = true;
	loop_stop(s->loop);
}

void sim_wake(struct sim *s)
{
	loop_stop(s->loop);
}

int sim_wait(struct sim *s, bool (*over)(struct sim *s, void *arg), void *arg, uint64_t timeout_ms)
{
	int r = 0;
	s->wait_over = false;
	if (timeout_ms != UINT64_MAX)
		r = loop_timer_arm(s->wait_timer, timeout_ms);
	while (!r && !(over && over(s, arg))) {
		if (s->wait_over || s->interrupted)
			r = s->interrupted ? -EINTR : -ETIMEDOUT;
		else
			r = loop_run(s->loop);
	}
	loop_timer_disarm(s->wait_timer);
	return r;
}

/* ---- events ---------------------------------------------------------------------------------- */

void sim_event(struct sim *s, const char *what, json_t *details)
{
	doc_put_text(details, "event", what);
	if (s->on_event)
		s->on_event(details, s->on_event_arg);
	else
		json_decref(details);
}

void sim_problem(struct sim *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	s->n_problems++;
	if (json_array_size(s->problems) < PROBLEMS_MAX) {
		json_t *copy = json_string(text);
		(void)json_array_append_new(s->problems,
					    copy ? copy : json_string("(text that is not UTF-8)"));
	}
	json_t *details = json_object();
	doc_put_text(details, "what", text);
	sim_event(s, "problem", details);
}

/* ---- the work folder ------------------------------------------------------------------------- */

static void remove_tree(int dir, const char *name, unsigned depth)
{
	if (unlinkat(dir, name, 0) == 0 || depth == DEPTH_MAX)
		return;
	_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int again = fd >= 0 ? dup(fd) : -1;
	_closedir_ DIR *d = again >= 0 ? fdopendir(again) : NULL;
	for (struct dirent *e; d && (e = readdir(d));)
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			remove_tree(fd, e->d_name, depth + 1);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

static void sim_join(char *ret, const char *dir, const char *name)
{
	(void)snprintf(ret, PATH_MAX, "%.*s/%s", PATH_MAX - 64, dir, name);
}

static int make_work(struct sim *s, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	if (s->options.work) {
		int r = fs_mkdirs(s->options.work, 0700, err);
		if (r)
			return r;
		if (!realpath(s->options.work, s->work))
			return err_errno(err, -errno, "%s", s->options.work);
	} else {
		(void)snprintf(s->work, sizeof s->work, "%.*s/nri-rp-sim-XXXXXX", PATH_MAX - 64,
			       tmp && *tmp == '/' ? tmp : "/tmp");
		if (!mkdtemp(s->work))
			return err_errno(err, -errno, "cannot make a folder %s", s->work);
		s->remove_work = !s->options.keep;
	}
	sim_join(s->root, s->work, "machine");
	sim_join(s->state, s->work, "state");
	sim_join(s->config, s->work, "rp.conf");
	sim_join(s->log, s->work, "nri-rpd.log");
	sim_join(s->control, s->work, "control.sock");
	sim_join(s->socket, s->work, "run/nri.sock");
	char run[PATH_MAX];
	sim_join(run, s->work, "run");
	int r = fs_mkdirs(run, 0700, err);
	return r ? r : fs_mkdirs(s->state, 0700, err);
}

/* ---- life ------------------------------------------------------------------------------------ */

int sim_new(const struct sim_options *options, struct sim **ret, struct err *err)
{
	static const int signos[] = {SIGINT, SIGTERM};
	struct sim *s = calloc(1, sizeof *s);
	if (!s)
		return err_errno(err, -ENOMEM, "simulation");
	s->options = *options;
	s->release = release_latest();
	s->request_timeout_ms = REQUEST_TIMEOUT_MS;
	s->registration_timeout_ms = REGISTRATION_TIMEOUT_MS;
	s->loop = loop_new();
	s->wait_timer = s->loop ? loop_timer_new(s->loop, wait_is_over, s) : NULL;
	s->updates = json_array();
	s->problems = json_array();
	int r = s->wait_timer && s->updates && s->problems &&
				!loop_take_signals(s->loop, signos, 2, on_interrupt, s)
			? 0
			: err_errno(err, -ENOMEM, "simulation");
	if (!r)
		r = make_work(s, err);
	if (!r)
		r = daemon_new(s, err);
	if (r)
		sim_free(s);
	else
		*ret = s;
	return r;
}

struct sim *sim_free(struct sim *s)
{
	if (!s)
		return NULL;
	s->on_event = NULL;
	if (s->loop)
		conn_close(s);
	daemon_free(s);
	while (s->pods)
		model_free_pod(s, s->pods);
	topo_free(s->topo);
	json_decref(s->machine);
	json_decref(s->cgroup_files);
	json_decref(s->lie);
	json_decref(s->updates);
	json_decref(s->problems);
	loop_timer_free(s->wait_timer);
	loop_free(s->loop);
	if (s->remove_work)
		remove_tree(AT_FDCWD, s->work, 0);
	free(s);
	return NULL;
}

/* ---- setup ----------------------------------------------------------------------------------- */

int sim_look(struct sim *s, struct err *err)
{
	_topo_ struct topo *topo = NULL;
	struct fs_root root;
	int r = fs_root_open(&root, s->root, err);
	if (r)
		return r;
	r = topo_read(&root, &topo, err);
	fs_root_close(&root);
	if (!r && topo_hides_memory(topo)) {
		_topo_ struct topo *hiding = TAKE(topo);
		(void)topo_set_device_nodes(hiding, "none");
		r = topo_reread(hiding, &topo, err);
	}
	if (r)
		return r;
	topo_free(s->topo);
	s->topo = TAKE(topo);
	return 0;
}

struct rp_ids sim_memory(const struct sim *s)
{
	struct rp_ids memory = topo_ids(s->topo, RP_NODES_MEMORY);
	return rp_ids_empty(memory) ? topo_ids(s->topo, RP_NODES_ONLINE) : memory;
}

static int write_machine(struct sim *s, struct err *err)
{
	struct machine m;
	int r = machine_from(s->machine, &m, err);
	if (r)
		return r;
	r = machine_write(&m, s->root, err);
	machine_fini(&m);
	return r;
}

static int setup_machine(struct sim *s, const json_t *head, struct err *err)
{
	_json_ json_t *name = s->options.machine ? json_string(s->options.machine) : NULL;
	_json_ json_t *usual = json_string("n4c16");
	const json_t *which = name ? name : json_object_get(head, "machine");
	if (!which)
		which = usual;
	int r = machine_describe(which, &s->machine, err);
	if (r == -EISDIR) {
		if (!realpath(json_string_value(which), s->root))
			return err_errno(err, -errno, "machine");
	} else if (!r) {
		r = write_machine(s, err);
		if (r)
			return r;
	} else {
		return r;
	}
	return sim_look(s, err);
}

static int setup_names(struct sim *s, const json_t *head, struct err *err)
{
	const char *nri = "0.12", *runtime, *cgroups;
	struct args *a = ARGS(head, err);
	char buf[ARG_NUMBER_MAX];
	const char *text = arg_scalar(json_object_get(head, "nri"), buf);
	if (text)
		nri = text;
	(void)arg_text(a, "runtime", "containerd", &runtime);
	int r = arg_text(a, "cgroups", "systemd", &cgroups);
	if (!r)
		r = release_find(s->options.nri ? s->options.nri : nri, &s->release, err);
	if (r)
		return r;
	runtime = s->options.runtime ? s->options.runtime : runtime;
	cgroups = s->options.cgroups ? s->options.cgroups : cgroups;
	if (!str_eq(runtime, "containerd") && !str_eq(runtime, "cri-o"))
		return err_set(err, -EINVAL, "runtime: expected containerd or cri-o");
	if (!str_eq(cgroups, "systemd") && !str_eq(cgroups, "cgroupfs"))
		return err_set(err, -EINVAL, "cgroups: expected systemd or cgroupfs");
	s->runtime = str_eq(runtime, "cri-o") ? RUNTIME_CRIO : RUNTIME_CONTAINERD;
	s->cgroups = str_eq(cgroups, "cgroupfs") ? CGROUPS_FS : CGROUPS_SYSTEMD;
	return 0;
}

int sim_setup(struct sim *s, const json_t *head, struct err *err)
{
	int64_t parts, request, registration;
	struct args a = {head, err, setup_names(s, head, err)};
	(void)arg_int(&a, "syncParts", (int64_t)s->options.sync_parts, 0, 1000000, &parts);
	(void)arg_bool(&a, "requirePlugin", false, &s->require_plugin);
	(void)arg_amount(&a, "requestTimeout", ARG_MS, REQUEST_TIMEOUT_MS, &request);
	int r = arg_amount(&a, "registrationTimeout", ARG_MS, REGISTRATION_TIMEOUT_MS,
			   &registration);
	if (!r)
		r = setup_machine(s, head, err);
	if (!r)
		r = files_setup(s, head, err);
	if (r)
		return r;
	s->sync_parts = (unsigned)(s->options.sync_parts ? s->options.sync_parts : (uint64_t)parts);
	s->request_timeout_ms = (uint64_t)request;
	s->registration_timeout_ms = (uint64_t)registration;
	return 0;
}
