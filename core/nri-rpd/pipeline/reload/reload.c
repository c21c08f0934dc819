/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations: reading, attempts, activation.
 *
 * A reload reads the files, and then does everything in a forked child first, including the calls
 * of modules: crashes, hangs and refusals there do no harm. Afterwards the daemon does the same
 * with the same bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/nri-rpd/host/schemas.h"
#include "core/nri-rpd/pipeline/reload/advice.h"
#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/reload/pushed.h"
#include "core/nri-rpd/pipeline/reload/recover.h"
#include "core/nri-rpd/pipeline/reload/report.h"
#include "core/nri-rpd/pipeline/try/try.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/nri-rpd/pipeline/node/noderes.h"
#include "core/lib/topo/sst.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/lib/util/clock.h"
#include "core/lib/util/worker.h"
#include "core/nri-rpd/pipeline/controllers/life.h"
#include "core/nri-rpd/pipeline/node/frequencies.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/store/blobs.h"

#define LOG_SOURCE "config"

/* ---- text ------------------------------------------------------------------------------------ */

void config_read(const char *path, const struct conf_files *pushed, struct config_text *ret)
{
	conf_errors_init(&ret->problems);
	ret->files = (struct conf_files){NULL, 0};
	ret->code = conf_read_files(path, &ret->files, &ret->problems);
	if (!ret->code)
		ret->code = conf_files_append(&ret->files, pushed->sources, pushed->n_sources);
}

static void reload_warn(const char *text)
{
	log_warning("%s", text);
}

int config_parse(struct pipeline *p, const struct config_text *text, struct conf **ret,
		 struct conf_errors *errs, struct err *err)
{
	struct schemas installed = {p->loader, p->cfg.n_module_dirs != 0, reload_warn};
	const struct conf_schemas schemas = schemas_of(&installed);
	*errs = text->problems;
	int r = conf_parse_files(&text->files, text->code, &schemas, ret, errs);
	if (r)
		return conf_errors_to_err(errs, r, err);
	if (conf_count(conf_root(*ret)))
		return 0;
	*ret = conf_free(*ret);
	return err_set(err, -EINVAL,
		       "%s: the configuration is empty; to place no containers, write policy: none",
		       text->files.sources[0].name);
}

/* ---- after an activation --------------------------------------------------------------------- */

/* Write of the last good configuration, for the disk worker. */
struct keeping {
	struct pipeline *p;
	struct buf data;
	uint64_t sum;
	struct err err;
};

/* Saves the present last good configuration as the former one, unless it equals the new one. */
static void keep_former(const struct keeping *k)
{
	struct err err = ERR_INIT;
	struct kept was = {0};
	struct buf data = BUF_INIT;
	char path[CACHE_PATH_MAX + sizeof FORMER_FILE];
	if (kept_read(k->p->reloads.dir, &was, &err))
		return;
	(void)snprintf(path, sizeof path, "%s/" FORMER_FILE, k->p->reloads.dir);
	if (kept_sum(&was.files) != k->sum && kept_write(&was.files, was.wall_ns, &data) == 0)
		(void)fs_replace(path, buf_text(&data), buf_len(&data), 0600, true, &err);
	buf_fini(&data);
	conf_files_fini(&was.files);
}

static int write_kept_to(struct keeping *k, const char *dir, mode_t mode, struct err *err)
{
	char path[CACHE_PATH_MAX + sizeof KEPT_FILE];
	(void)snprintf(path, sizeof path, "%s/" KEPT_FILE, dir);
	int r = fs_mkdirs(dir, mode, err);
	return r ? r : fs_replace(path, buf_text(&k->data), buf_len(&k->data), 0600, true, err);
}

static int write_kept(void *arg)
{
	struct keeping *k = arg;
	struct err err = ERR_INIT;
	/* Second copy in case the other one is lost. An unusable run-time directory is reported
	 * elsewhere. */
	(void)write_kept_to(k, k->p->reloads.run_dir, 0750, &err);
	keep_former(k);
	return write_kept_to(k, k->p->reloads.dir, 0710, &k->err);
}

static void kept_written(void *arg, int result)
{
	struct keeping *k = arg;
	struct pipeline *p = k->p;
	(void)snprintf(p->reloads.save_error, sizeof p->reloads.save_error, "%s",
		       result ? err_text(&k->err, result) : "");
	if (result) {
		p->reloads.saved_sum = 0;
		log_warning("the active configuration cannot be saved for later starts: %s",
			    p->reloads.save_error);
	}
	buf_fini(&k->data);
	free(k);
}

/*
 * Saves the last good configuration. If the process is killed right after a reload was answered, a
 * start may find the previous configuration, which it uses only if the files are unusable. The
 * first configuration is written synchronously: there is no previous one to fall back on, and a
 * start may wait for the disk.
 */
void config_keep(struct pipeline *p, const struct conf_files *files)
{
	uint64_t sum = kept_sum(files);
	if (sum == p->reloads.saved_sum)
		return;
	struct keeping *k = calloc(1, sizeof *k);
	if (k)
		*k = (struct keeping){.p = p, .sum = sum};
	int r = k ? kept_write(files, clock_wall_ns(), &k->data) : -ENOMEM;
	p->reloads.saved_sum = r ? 0 : sum;
	if (!r && p->reloads.generation > 1)
		r = worker_submit(p->disk, write_kept, kept_written, k);
	else if (!r)
		kept_written(k, write_kept(k));
	if (r) {
		p->reloads.saved_sum = 0;
		(void)snprintf(p->reloads.save_error, sizeof p->reloads.save_error, "no memory");
		if (k)
			buf_fini(&k->data);
		free(k);
	}
}

void config_keep_policy(struct pipeline *p)
{
	const char *policy = p->policy ? instance_name(p->policy) : NULL;
	if (policy)
		(void)store_put_note(p->store, STORE_NOTE_POLICY, policy, strlen(policy));
	persist_later(p);
}

void config_accepted(struct pipeline *p, const struct conf_files *files)
{
	p->reloads.error[0] = '\0';
	free(TAKE(p->reloads.problems));
	p->reloads.saved_ns = 0;
	p->reloads.safe_mode_reason[0] = '\0';
	if (files)
		config_keep(p, files);
}

/* Logs lines, each of which ends with a newline. */
static void log_problems(const char *lines)
{
	for (size_t n; *lines; lines += n + 1) {
		n = strcspn(lines, "\n");
		log_error("%.*s", (int)n, lines);
	}
}

void config_refused(struct pipeline *p, const char *problems, const struct err *err)
{
	struct buf errors = BUF_INIT;
	unsigned n_errors = 0;
	for (size_t n; *problems; problems += n + (problems[n] == '\n')) {
		n = strcspn(problems, "\n");
		if (str_has_prefix(problems, CONF_WARNING))
			continue;
		(void)buf_printf(&errors, "%.*s\n", (int)n, problems);
		n_errors++;
	}
	if (n_errors > 1) /* a single error is in the error's own text */
		log_problems(buf_text(&errors));
	free(p->reloads.problems);
	p->reloads.problems = strdup(n_errors ? buf_text(&errors) : err->text);
	buf_fini(&errors);
	(void)snprintf(p->reloads.error, sizeof p->reloads.error, "%s", err->text);
}

static void take_core(struct pipeline *p)
{
	const struct conf_core *core = conf_core(p->conf);
	if (!p->cfg.fixed_log_level)
		log_set_level(core->log.level);
	(void)log_set_debug(core->log.debug.items, core->log.debug.n);
	log_set_source(core->log.source);
	if (p->cfg.configured)
		p->cfg.configured(p->conf, p->cfg.arg);
}

void config_in_force(struct pipeline *p)
{
	config_keep_policy(p);
	pipeline_arm_rebalance(p);
	pipeline_device_nodes(p, p->conf, false);
	feed_configured(p);
	watch_files_configured(p);
	take_core(p);
}

/* ---- child of an attempt --------------------------------------------------------------------- */

#define SHOWN_MAX 240u /* largest size of a list or map in a change, in bytes */

static int add_change(const struct conf_change *change, void *arg)
{
	struct buf *out = arg;
	bool renews = str_has_prefix(change->path, "runtime.");
	char before[SHOWN_MAX], after[SHOWN_MAX];
	return buf_printf(out, "%s: %s → %s%s\n", change->path,
			  conf_flow(change->before, before, sizeof before),
			  conf_flow(change->after, after, sizeof after),
			  change->restart ? " (after a restart)"
			  : renews	  ? " (reconnects to the runtime)"
					  : "");
}

static int needs_restart(const struct conf_change *change, void *arg)
{
	return change->restart;
}

struct restart {
	struct pipeline *p;
	struct buf *warnings;
};

/* Warns if a restart could not load a module, because the file on disk is not the loaded one any
 * more. */
static int warn_of_restart(struct instance *i, void *arg)
{
	const struct restart *restart = arg;
	struct err err = ERR_INIT;
	if (module_restart(restart->p->loader, instance_module(i), &err))
		(void)buf_printf(restart->warnings,
				 CONF_WARNING "a restart could not use the active module %s: %s\n",
				 instance_name(i), err.text);
	return 0;
}

int config_try(struct pipeline *p, const struct proposal *proposal, struct buf *out,
	       struct err *err)
{
	struct buf warnings = BUF_INIT, changes = BUF_INIT;
	Trial__Report report = TRIAL__REPORT__INIT;
	struct conf *conf = proposal->conf;
	struct conf_errors errs;
	conf_errors_init(&errs);
	sst_forget(p->env.topo); /* read settings that other programs have changed since */
	int r = conf ? 0 : config_parse(p, proposal->text, &conf, &errs, err);
	conf_errors_print(&errs, &warnings);
	if (!r)
		r = apply_config(p, conf, &report, err);
	if (!r && !proposal->first)
		(void)pipeline_each_instance(p, warn_of_restart, &(struct restart){p, &warnings});
	if (!r)
		config_advise(conf, p->env.topo, &warnings);
	for (size_t i = 0; !r && i < report.n_losses; i++)
		(void)buf_printf(&warnings, CONF_WARNING "%s\n", report.losses[i]);
	if (!r && p->conf) {
		(void)conf_diff(p->conf, conf, add_change, &changes);
		report.restart_needed = conf_diff(p->conf, conf, needs_restart, NULL) != 0;
	}
	report.warnings = strdup(buf_text(&warnings));
	report.changes = strdup(buf_text(&changes));
	if (sst_is_read(p->env.topo))
		report.speed_select = speedselect_told(p->env.topo);
	if (!report.warnings || !report.changes ||
	    (sst_is_read(p->env.topo) && !report.speed_select))
		return -ENOMEM;
	/* During later attempts the active configuration may have changed these frequencies, and
	 * would be about to restore them. */
	if (!r && proposal->first)
		frequencies_told(p->env.topo, &report);
	int written = report_write(&report, out);
	return written ? written : r;
}

/* ---- reload, plan and try -------------------------------------------------------------------- */

enum kind { RELOAD, PLAN, TRY };

struct reload {
	struct pipeline *p;
	enum kind kind;
	struct config_text text;
	struct proposal proposal;
	char *manifest, *manifest_name; /* manifest of a TRY */
	struct reload_waiter *waiters;
	struct conf_files pushed; /* pushed files after a success */
	bool pushes;
	uint32_t confirm_s; /* seconds to confirm within; 0: no confirmation */
	bool recovers; /* recovery from safe mode: a failure changes nothing and is not reported */
	/* with `recovers`: activation time of the last good configuration; 0: the files are
	 * tried */
	uint64_t last_good_ns;
	bool undoes;
	uint64_t undone_sum; /* with `undoes`: checksum of that configuration; 0: unknown */
	uint64_t former_ns; /* reload_result.former_ns */
	uint64_t began_us;
};

static void tell_all(const struct reload_waiter *w, const struct reload_result *res)
{
	for (; w; w = w->next)
		if (w->done)
			w->done(res, w->arg);
}

/* Activates in the daemon the configuration that the child has tried successfully. */
static int put_in_force(struct pipeline *p, const struct config_text *text, struct err *err)
{
	struct conf *conf = NULL;
	struct conf_errors errs;
	watchdog_begin(p->watchdog);
	int r = config_parse(p, text, &conf, &errs, err);
	if (!r) {
		r = apply_config(p, conf, NULL, err);
		if (r)
			conf_free(conf);
	}
	watchdog_end(p->watchdog);
	return r;
}

/* Records a successful reload: permanent, awaiting confirmation, or undone. */
static void reload_accepted(struct reload *r)
{
	assert(r->p->reloads.running == r || !r->p->reloads.running);
	struct pipeline *p = r->p;
	if (r->recovers) {
		log_notice("safe mode has ended; its cause was: %s", p->reloads.safe_mode_reason);
		pipeline_event(p, EV_CONFIG, "safe mode has ended: %s can be used again",
			       r->last_good_ns ? "the last working configuration"
					       : "the configuration");
	}
	if (r->last_good_ns) { /* the files are still refused */
		p->reloads.safe_mode_reason[0] = '\0';
		p->reloads.saved_ns = r->last_good_ns;
		return;
	}
	if (r->pushes)
		pushed_take(p, &r->pushed);
	config_accepted(p, r->confirm_s ? NULL : &r->text.files);
	if (r->confirm_s) {
		undo_await(p, &r->text.files, r->confirm_s);
	} else if (r->undoes) {
		undo_done(p, r->undone_sum);
		pipeline_event(p, EV_CONFIG, "undone: the previous configuration is active again");
	} else {
		undo_forget(p);
	}
}

static void reload_conclude(struct reload *r, struct reload_result *res)
{
	struct pipeline *p = r->p;
	if (r->kind != RELOAD)
		return;
	if (!res->code) {
		assert(res->report != &report_none); /* an attempt that succeeded has a report */
		speedselect_took(p, res->report);
		res->code = put_in_force(p, &r->text, &res->err);
	}
	if (res->code && r->recovers) {
		log_debug("safe mode: still %s", res->err.text);
		return;
	}
	p->stats.reloads++;
	if (!res->code) {
		reload_accepted(r);
		(void)snprintf(p->reloads.configured_policy, sizeof p->reloads.configured_policy,
			       "%s", conf_core(p->conf)->policy);
		config_in_force(p);
		log_notice("configuration reloaded: policy %s, %u containers moved",
			   instance_name(p->policy), report_count_moved(res->report));
		pipeline_event(p, EV_CONFIG, "reloaded: policy %s, %u containers moved",
			       instance_name(p->policy), report_count_moved(res->report));
		for (size_t i = 0; i < res->report->n_losses; i++)
			pipeline_event(p, EV_CONFIG, "reloaded: %s", res->report->losses[i]);
		return;
	}
	p->stats.reloads_refused++;
	config_refused(p, res->warnings, &res->err);
	log_error("configuration refused, the previous configuration stays active: %s",
		  res->err.text);
	pipeline_event(p, EV_CONFIG, "refused: %s", res->err.text);
}

static void waiters_free(struct reload_waiter *w)
{
	while (w) {
		struct reload_waiter *next = w->next;
		free(w);
		w = next;
	}
}

static void reload_free(struct reload *r)
{
	if (!r)
		return;
	waiters_free(r->waiters);
	conf_files_fini(&r->text.files);
	conf_files_fini(&r->pushed);
	free(r->manifest);
	free(r->manifest_name);
	free(r);
}

/* Starts one reload for all callers that arrived during the previous one; they are answered in
 * their order. */
static void start_again(struct pipeline *p)
{
	struct reload_waiter *again = p->reloads.waiting;
	p->reloads.waiting = NULL;
	while (again) {
		struct reload_waiter *w = again;
		again = w->next;
		pipeline_reload(p, w->done, w->arg);
		free(w);
		if (p->reloads.running) {
			LL_CONCAT(p->reloads.running->waiters, again);
			return;
		}
	}
}

/* Answers callers of a reload that will not take place. */
static void tell_stopping(const struct reload_waiter *waiters)
{
	struct reload_result res = {.warnings = "", .report = &report_none};
	res.code = err_set(&res.err, -ESHUTDOWN, "nri-rpd is stopping");
	tell_all(waiters, &res);
}

static void reload_stop(struct reload *r)
{
	tell_stopping(r->waiters);
	if (r->p->reloads.running == r)
		r->p->reloads.running = NULL;
	reload_free(r);
}

/* Collects warnings of modules in a dry run: they go into the answer and not to the log. */
struct dry_log {
	const char *told;
	struct buf text;
};

static void add_dry(enum log_level level, const char *text, void *arg)
{
	struct dry_log *d = arg;
	if (level <= LOG_WARNING && !strstr(d->told, text) && !strstr(buf_text(&d->text), text))
		(void)buf_printf(&d->text, CONF_WARNING "%s\n", text);
}

static void reload_tried(void *arg, const struct trial_result *t)
{
	struct reload *r = arg;
	struct pipeline *p = r->p;
	if (!t) {
		reload_stop(r);
		return;
	}
	struct reload_result res = {.code = t->outcome == TRIAL_DONE ? 0
					    : t->code		     ? t->code
								     : -EINVAL,
				    .err = t->err};
	bool reported = t->outcome == TRIAL_DONE || t->outcome == TRIAL_REFUSED;
	struct report report = {0};
	struct err broken = ERR_INIT;
	if (t->outcome == TRIAL_REFUSED && t->code < 0)
		res.code = t->code;
	int e = reported ? report_read(t->data, t->size, &report, &broken) : 0;
	/* the daemon does not repeat the attempt, so log its warnings now */
	if (e && r->kind == RELOAD && !r->recovers)
		trial_tell_held(t);
	if (e && !res.code)
		res.code = err_set(&res.err, e, "%s", broken.text);
	res.report = report.message ? report.message : &report_none;
	struct dry_log dry = {.told = res.report->warnings, .text = BUF_INIT};
	(void)buf_add_str(&dry.text, dry.told);
	if ((r->kind != RELOAD || r->pushes) && t->held)
		log_each_held(t->held, add_dry, &dry);
	res.warnings = buf_text(&dry.text);
	reload_conclude(r, &res);
	res.took_us = clock_us() - r->began_us;
	res.former_ns = r->former_ns;
	tell_all(r->waiters, &res);
	buf_fini(&dry.text);
	report_fini(&report);
	if (p->reloads.running == r)
		p->reloads.running = NULL;
	bool recovers = r->recovers;
	reload_free(r);
	start_again(p);
	if (recovers)
		recover_later(p);
}

static int add_waiter(struct reload_waiter **list, reload_done done, void *arg)
{
	struct reload_waiter *w = malloc(sizeof *w);
	if (!w)
		return -ENOMEM;
	*w = (struct reload_waiter){done, arg, NULL};
	LL_APPEND(*list, w);
	return 0;
}

static int reload_run(struct pipeline *p, void *arg, struct buf *out, struct err *err)
{
	const struct reload *r = arg;
	return r->kind == TRY ? try_pods(p, r->manifest_name, r->manifest, out, err)
			      : config_try(p, &r->proposal, out, err);
}

static struct reload *reload_new(struct pipeline *p, enum kind kind, reload_done done, void *arg)
{
	struct reload *r = calloc(1, sizeof *r);
	if (!r || add_waiter(&r->waiters, done, arg)) {
		reload_free(r);
		return NULL;
	}
	r->p = p;
	r->kind = kind;
	r->began_us = clock_us();
	r->proposal.text = &r->text;
	return r;
}

/* Starts the attempt and takes ownership of r. */
static int reload_start(struct pipeline *p, struct reload *r, struct err *err)
{
	const struct attempt_spec spec = {
		.what = r->kind == TRY ? "the pod was tried" : "the configuration was tried",
		.fn = reload_run,
		.done = reload_tried,
		.arg = r,
		.log = r->kind == RELOAD && !r->recovers ? TRIAL_LOG_HELD : TRIAL_LOG_DRY};
	int e = attempt_start(p, &spec, err);
	if (e) {
		reload_free(r);
		return e;
	}
	if (r->kind == RELOAD)
		p->reloads.running = r;
	return 0;
}

static int reload_begin(struct pipeline *p, const char *path, enum kind kind, uint32_t confirm_s,
			reload_done done, void *arg, struct err *err)
{
	struct reload *r = reload_new(p, kind, done, arg);
	if (!r)
		return err_errno(err, -ENOMEM, "reload");
	r->confirm_s = confirm_s;
	config_read(path, &p->reloads.pushed, &r->text);
	return reload_start(p, r, err);
}

void pipeline_reload(struct pipeline *p, reload_done done, void *arg)
{
	struct reload_result res = {.warnings = "", .report = &report_none};
	if (p->hotplug)
		hotplug_trigger(p->hotplug);
	if (p->reloads.running) {
		if (add_waiter(&p->reloads.waiting, done, arg) == 0)
			return;
		res.code = err_errno(&res.err, -ENOMEM, "reload");
	} else {
		res.code = reload_begin(p, p->config_path, RELOAD, 0, done, arg, &res.err);
	}
	if (!res.code)
		return;
	log_error("the configuration cannot be tried: %s", res.err.text);
	if (done)
		done(&res, arg);
}

int pipeline_reload_until(struct pipeline *p, uint32_t confirm_s, reload_done done, void *arg,
			  struct err *err)
{
	if (p->reloads.running)
		return err_set(err, -EBUSY, "a reload is in progress");
	return reload_begin(p, p->config_path, RELOAD, confirm_s, done, arg, err);
}

int pipeline_push(struct pipeline *p, const struct conf_source *sources, unsigned n,
		  bool adjustments, reload_done done, void *arg, struct err *err)
{
	if (n > CONF_PUSHED_MAX)
		return err_set(err, -E2BIG, "more than %u sections", CONF_PUSHED_MAX);
	if (p->reloads.running)
		return err_set(err, -EBUSY, "a reload is in progress");
	if (!p->reloads.error[0] && pushed_is(p, sources, n, adjustments))
		return 1;
	struct reload *r = reload_new(p, RELOAD, done, arg);
	if (!r || pushed_replace(p, sources, n, adjustments, &r->pushed)) {
		reload_free(r);
		return err_errno(err, -ENOMEM, "a configuration of the cluster");
	}
	r->pushes = true;
	config_read(p->config_path, &r->pushed, &r->text);
	return reload_start(p, r, err);
}

int config_undo(struct pipeline *p, struct kept *former, bool plan, uint64_t sum, reload_done done,
		void *arg, struct err *err)
{
	struct reload *r = reload_new(p, plan ? PLAN : RELOAD, done, arg);
	if (!r) {
		conf_files_fini(&former->files);
		return err_errno(err, -ENOMEM, "undo");
	}
	conf_errors_init(&r->text.problems);
	r->text.files = former->files;
	r->former_ns = former->wall_ns;
	r->undoes = true;
	r->undone_sum = sum;
	return reload_start(p, r, err);
}

int config_recover(struct pipeline *p, struct conf_files *files, uint64_t last_good_ns,
		   struct err *err)
{
	struct reload *r = reload_new(p, RELOAD, NULL, NULL);
	if (!r) {
		conf_files_fini(files);
		return err_errno(err, -ENOMEM, "safe mode");
	}
	conf_errors_init(&r->text.problems);
	r->text.files = *files;
	r->recovers = true;
	r->last_good_ns = last_good_ns;
	return reload_start(p, r, err);
}

int pipeline_plan(struct pipeline *p, const char *path, reload_done done, void *arg,
		  struct err *err)
{
	return reload_begin(p, path, PLAN, 0, done, arg, err);
}

int pipeline_plan_text(struct pipeline *p, const char *name, const char *text, reload_done done,
		       void *arg, struct err *err)
{
	struct reload *r = reload_new(p, PLAN, done, arg);
	if (!r)
		return err_errno(err, -ENOMEM, "plan");
	conf_errors_init(&r->text.problems);
	const struct conf_source source = {.name = name, .text = text, .len = strlen(text)};
	r->text.code = conf_files_append(&r->text.files, &source, 1);
	if (!r->text.code)
		r->text.code = conf_files_append(&r->text.files, p->reloads.pushed.sources,
						 p->reloads.pushed.n_sources);
	return reload_start(p, r, err);
}

int pipeline_try(struct pipeline *p, const char *name, const char *text, reload_done done,
		 void *arg, struct err *err)
{
	struct reload *r = reload_new(p, TRY, done, arg);
	if (r) {
		r->manifest = strdup(text);
		r->manifest_name = strdup(name);
	}
	if (r && r->manifest && r->manifest_name)
		return reload_start(p, r, err);
	reload_free(r);
	return err_errno(err, -ENOMEM, "try");
}

void config_fini(struct pipeline *p)
{
	tell_stopping(p->reloads.waiting);
	waiters_free(p->reloads.waiting);
	p->reloads.waiting = NULL;
	noderes_stop(p);
	while (p->controllers.n)
		controller_free(p->controllers.list[--p->controllers.n]);
	p->policy = instance_free(p->policy);
	p->conf = conf_free(p->conf);
}

DEFINE_GETTER(pipeline_conf, const struct conf *, p->conf)
DEFINE_GETTER(pipeline_conf_generation, uint64_t, p->reloads.generation)
