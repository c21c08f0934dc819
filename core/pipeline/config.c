/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations: reading, trying, putting in force.
 *
 * A reload reads the file in a forked child first, modules and all: what crashes, hangs or refuses there has done no harm. Only then does the
 * daemon do the same. At the start there is nothing to protect but the daemon's own life: a module that dies in the trial, or has died
 * three times in ten minutes, is left out, and the last configuration known good is used, or the policy none: safe mode.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "core/pipeline/apply.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/report.h"
#include "core/pipeline/try.h"
#include "core/topo/sst.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "config"
#define SAFE_POLICY "none"

/* ---- schemas: what the loader knows ---------------------------------------------------------------------------------- */

static void schemas_begin(void *ctx, const char *const *path, unsigned n_path)
{
	struct pipeline *p = ctx;
	struct err err = ERR_INIT;
	if (p->cfg.n_module_dirs || !n_path)
		return;
	if (loader_set_paths(p->loader, path, n_path, &err))
		log_warning("modules.path: %s", err.text);
}

static enum conf_found schemas_find(void *ctx, const char *module, const struct rp_schema **ret)
{
	struct pipeline *p = ctx;
	struct err err = ERR_INIT;
	struct module *m;
	*ret = NULL;
	int r = loader_open(p->loader, module, &m, &err);
	if (r == -ENOENT || r == -EINVAL)
		return CONF_NO_MODULE;
	if (r || module_schema(p->loader, m, ret, &err)) {
		log_warning("%s; its section is not checked", err.text);
		return CONF_NO_SCHEMA;
	}
	return *ret ? CONF_SCHEMA : CONF_NO_SCHEMA;
}

struct kind_search {
	struct pipeline *p;
	const char *kind;
	const char *found;
};

static int match_kind(const struct loader_item *item, void *arg)
{
	struct kind_search *s = arg;
	const struct rp_schema *schema;
	if (item->err || item->hidden || !item->facts ||
	    !(item->facts->note.kinds & RP_KIND_POLICY))
		return 0;
	if (schemas_find(s->p, item->name, &schema) != CONF_SCHEMA || !schema->cr_kind ||
	    !str_eq(schema->cr_kind, s->kind))
		return 0;
	struct module *m = loader_get(s->p->loader, item->name);
	s->found = m ? m->name : NULL;
	return s->found != NULL;
}

static const char *schemas_of_kind(void *ctx, const char *kind)
{
	struct kind_search s = {ctx, kind, NULL};
	struct pipeline *p = ctx;
	(void)loader_list(p->loader, match_kind, &s);
	return s.found;
}

/* The first error goes to err. */
static int read_config(struct pipeline *p, const char *path, struct conf **ret,
		       struct conf_errors *errs, struct err *err)
{
	const struct conf_schemas schemas = {p, schemas_begin, schemas_find, schemas_of_kind};
	conf_errors_init(errs);
	int r = conf_load(path, &schemas, ret, errs);
	if (r)
		(void)conf_errors_to_err(errs, r, err);
	return r;
}

/* ---- after it is in force -------------------------------------------------------------------------------------------- */

static void remember(struct pipeline *p)
{
	struct buf text = BUF_INIT;
	const char *policy = instance_name(p->policy);
	(void)store_put_note(p->store, STORE_NOTE_POLICY, policy, strlen(policy));
	if (!p->safe_mode_reason[0] && conf_show(p->conf, 0, &text) == 0)
		(void)store_put_note(p->store, STORE_NOTE_CONFIG, buf_text(&text), buf_len(&text));
	buf_fini(&text);
	persist_later(p);
}

static void take_core(struct pipeline *p)
{
	const struct conf_core *core = conf_core(p->conf);
	if (!p->cfg.fixed_log_level)
		log_set_level(core->log.level);
	(void)log_set_debug(core->log.debug.items, core->log.debug.n);
	if (p->cfg.configured)
		p->cfg.configured(p->conf, p->cfg.arg);
}

static void in_force(struct pipeline *p)
{
	p->config_error[0] = '\0';
	remember(p);
	pipeline_arm_rebalance(p);
	take_core(p);
}

/* ---- trials ---------------------------------------------------------------------------------------------------------- */

struct trial_job {
	struct pipeline *p;
	const char *path; /* NULL: the configuration is there already */
	struct conf *conf;
	bool real; /* what goes well is done by the daemon then, and says all that it has to say once more */
};

static int add_change(const struct conf_change *change, void *arg)
{
	struct buf *out = arg;
	return buf_printf(
		out, "%s: %s → %s%s\n", change->path, conf_text(change->before, "(not set)"),
		conf_text(change->after, "(not set)"), change->restart ? " (after a restart)" : "");
}

static int needs_restart(const struct conf_change *change, void *arg)
{
	(void)arg;
	return change->restart;
}

/* In the child. What it allocates dies with it. */
static int try_config(void *arg, struct buf *out, struct err *err)
{
	struct trial_job *job = arg;
	struct pipeline *p = job->p;
	struct buf warnings = BUF_INIT, changes = BUF_INIT;
	Trial__Report report = TRIAL__REPORT__INIT;
	struct conf *conf = job->conf;
	struct conf_errors errs;
	int r;
	conf_errors_init(&errs);
	p->env.trial = true;
	p->env.worker = NULL;
	p->store = store_abandon(p->store); /* modules get what they had saved, as they will */
	sst_forget(p->env.topo); /* what others have set up since is seen */
	r = conf ? 0 : read_config(p, job->path, &conf, &errs, err);
	for (unsigned i = 0; i < errs.n_items; i++)
		(void)buf_printf(&warnings, "%s\n", errs.items[i].text);
	if (!r)
		r = apply_config(p, conf, &report, err);
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
	/* later on what is in force may have set some of what is read here, and be about to put it back */
	if (!r && job->real && !p->conf)
		frequencies_told(p->env.topo, &report);
	int written = report_write(&report, out);
	return written ? written : r;
}

static int try_manifest(void *arg, struct buf *out, struct err *err)
{
	const struct trial_job *job = arg;
	return try_pod(job->p, job->path, out, err);
}

static struct trial_spec trial_of(struct pipeline *p, struct trial_job *job)
{
	return (struct trial_spec){
		.what = "the configuration was tried",
		.fn = try_config,
		.arg = job,
		.hold_log = job->real,
		.limits = TRIAL_LIMITS_DEFAULT,
		.loop = p->env.loop,
		.crumb = p->env.crumb,
		.watchdog = p->watchdog,
		/* modules look at the machine when they check their sections */
		.keep_fds = {p->root.fd, topo_root_fd(p->env.topo)},
		.n_keep_fds = 2,
	};
}

/* ---- reload and plan ------------------------------------------------------------------------------------------------- */

struct reload {
	struct pipeline *p;
	char *path;
	bool plan; /* nothing is put in force */
	struct trial_job job;
	struct reload_waiter *waiters;
	uint64_t began_us;
	struct trial *trial;
	struct reload *prev, *next; /* under way */
};

static void tell_all(const struct reload_waiter *w, const struct reload_result *res)
{
	for (; w; w = w->next)
		if (w->done)
			w->done(res, w->arg);
}

/* The daemon does what the child has shown to work. */
static int put_in_force(struct pipeline *p, struct err *err)
{
	struct conf *conf;
	struct conf_errors errs;
	watchdog_begin(p->watchdog);
	int r = read_config(p, p->config_path, &conf, &errs, err);
	if (!r) {
		r = apply_config(p, conf, NULL, err);
		if (r)
			conf_free(conf);
	}
	watchdog_end(p->watchdog);
	return r;
}

static void conclude(struct reload *r, const struct report *report, struct reload_result *res)
{
	struct pipeline *p = r->p;
	if (!r->plan && !res->code) {
		speedselect_took(p, report->message);
		res->code = put_in_force(p, &res->err);
	}
	if (r->plan)
		return;
	p->stats.reloads++;
	if (!res->code) {
		p->safe_mode_reason[0] = '\0';
		(void)snprintf(p->configured_policy, sizeof p->configured_policy, "%s",
			       conf_core(p->conf)->policy);
		in_force(p);
		log_notice("configuration reloaded: policy %s, %u containers moved",
			   instance_name(p->policy), res->n_moves);
		pipeline_event(p, EV_CONFIG, "reloaded: policy %s, %u containers moved",
			       instance_name(p->policy), res->n_moves);
		return;
	}
	p->stats.reloads_refused++;
	(void)snprintf(p->config_error, sizeof p->config_error, "%s", res->err.text);
	log_error("configuration refused, the one before stays in force: %s", res->err.text);
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
	free(r->path);
	free(r);
}

static void start_again(struct pipeline *p)
{
	struct reload_waiter *again = p->reload_again;
	p->reload_again = NULL;
	while (again) {
		struct reload_waiter *w = again;
		again = w->next;
		pipeline_reload(p, w->done, w->arg);
		free(w);
	}
}

static void tried(void *arg, const struct trial_result *t)
{
	struct reload *r = arg;
	struct pipeline *p = r->p;
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
	if (e)
		trial_tell_held(t); /* nobody is going to do the same, and say it */
	if (e && !res.code)
		res.code = err_set(&res.err, e, "%s", broken.text);
	if (report.message) {
		res.warnings = report.message->warnings;
		res.changes = report.message->changes;
		res.restart_needed = report.message->restart_needed;
		res.moves = report.moves;
		res.n_moves = report.n_moves;
	}
	if (!res.warnings)
		res.warnings = res.changes = "";
	conclude(r, &report, &res);
	res.took_us = clock_us() - r->began_us;
	tell_all(r->waiters, &res);
	report_fini(&report);
	DL_DELETE(p->reloads, r);
	if (p->reload == r)
		p->reload = NULL;
	reload_free(r);
	start_again(p);
}

static int add_waiter(struct reload_waiter **list, reload_done done, void *arg)
{
	struct reload_waiter *w = malloc(sizeof *w);
	if (!w)
		return -ENOMEM;
	*w = (struct reload_waiter){done, arg, *list};
	*list = w;
	return 0;
}

enum kind { RELOAD, PLAN, TRY };

static int begin(struct pipeline *p, const char *path, enum kind kind, reload_done done, void *arg,
		 struct err *err)
{
	struct reload *r = calloc(1, sizeof *r);
	if (!r || !(r->path = strdup(path)) || add_waiter(&r->waiters, done, arg)) {
		reload_free(r);
		return err_errno(err, -ENOMEM, "reload");
	}
	r->p = p;
	r->plan = kind != RELOAD;
	r->began_us = clock_us();
	r->job = (struct trial_job){p, r->path, NULL, kind == RELOAD};
	struct trial_spec spec = trial_of(p, &r->job);
	if (kind == TRY) {
		spec.what = "the pod was tried";
		spec.fn = try_manifest;
	}
	int e = trial_start(&spec, tried, r, &r->trial, err);
	if (e) {
		reload_free(r);
		return e;
	}
	DL_APPEND(p->reloads, r);
	if (kind == RELOAD)
		p->reload = r;
	return 0;
}

void pipeline_reload(struct pipeline *p, reload_done done, void *arg)
{
	struct reload_result res = {.warnings = "", .changes = ""};
	if (p->hotplug)
		hotplug_trigger(p->hotplug);
	if (p->reload) {
		if (add_waiter(&p->reload_again, done, arg) == 0)
			return;
		res.code = err_errno(&res.err, -ENOMEM, "reload");
	} else {
		res.code = begin(p, p->config_path, RELOAD, done, arg, &res.err);
	}
	if (!res.code)
		return;
	log_error("the configuration cannot be tried: %s", res.err.text);
	if (done)
		done(&res, arg);
}

int pipeline_plan(struct pipeline *p, const char *path, reload_done done, void *arg,
		  struct err *err)
{
	return begin(p, path, PLAN, done, arg, err);
}

int pipeline_try(struct pipeline *p, const char *path, reload_done done, void *arg, struct err *err)
{
	return begin(p, path, TRY, done, arg, err);
}

/* ---- the first one --------------------------------------------------------------------------------------------------- */

static int safe_config(struct pipeline *p, const char *name, const char *text, struct conf **ret,
		       struct err *err)
{
	const struct conf_schemas schemas = {p, schemas_begin, schemas_find, schemas_of_kind};
	const struct conf_source source = {.name = name, .text = text, .len = strlen(text)};
	struct conf_errors errs;
	conf_errors_init(&errs);
	int r = conf_parse(&source, 1, &schemas, ret, &errs);
	if (r)
		(void)conf_errors_to_err(&errs, r, err);
	return r;
}

#define SAFE_TEXT "policy: " SAFE_POLICY "\ncontrollers: []\n"

/* What the files say of the daemon itself (sockets, metrics, intervals) stands, without the modules they name. */
static int safe_files(struct pipeline *p, struct conf **ret)
{
	const struct conf_schemas schemas = {p, schemas_begin, schemas_find, schemas_of_kind};
	struct conf_files files;
	struct conf_errors errs;
	conf_errors_init(&errs);
	int r = conf_read_files(p->config_path, &files, &errs);
	if (r)
		return r;
	struct conf_source *sources = calloc(files.n_sources + 1, sizeof *sources);
	if (sources) {
		memcpy(sources, files.sources, files.n_sources * sizeof *sources);
		sources[files.n_sources] = (struct conf_source){
			.name = "safe mode", .text = SAFE_TEXT, .len = strlen(SAFE_TEXT)};
		r = conf_parse(sources, files.n_sources + 1, &schemas, ret, &errs);
	} else {
		r = -ENOMEM;
	}
	free(sources);
	conf_files_fini(&files);
	return r;
}

/* 0: tried and good. */
static int try_first(struct pipeline *p, struct conf *conf, bool real, bool *ret_module_fault,
		     struct err *err)
{
	struct trial_job job = {p, NULL, conf, real};
	struct trial_spec spec = trial_of(p, &job);
	struct trial_result t;
	struct report report = {0};
	int r = trial_run(&spec, &t, err);
	if (r)
		return r;
	*ret_module_fault = t.outcome != TRIAL_DONE && t.outcome != TRIAL_REFUSED;
	if (t.outcome != TRIAL_DONE) {
		*err = t.err;
		r = t.outcome == TRIAL_REFUSED && t.code < 0 ? t.code : -ECANCELED;
	} else if (report_read(t.data, t.size, &report, err)) {
		trial_tell_held(&t);
		*ret_module_fault = true;
		r = -ECANCELED;
	} else {
		speedselect_took(p, report.message);
		frequencies_took(p->env.topo, report.message);
		report_fini(&report);
	}
	trial_result_fini(&t);
	return r;
}

static int try_and_apply(struct pipeline *p, struct conf *conf, bool *ret_module_fault,
			 struct err *err)
{
	int r = try_first(p, conf, true, ret_module_fault, err);
	if (!r)
		r = apply_config(p, conf, NULL, err);
	if (r == -ECANCELED)
		*ret_module_fault = true;
	return r;
}

/* The last configuration known good, if it is another one; else the policy that does nothing. */
static int safe_mode(struct pipeline *p, const struct err *why, struct err *err)
{
	size_t len;
	bool fault = false;
	struct conf *conf;
	struct err again = ERR_INIT;
	const char *last = store_note(p->store, STORE_NOTE_CONFIG, &len);
	(void)snprintf(p->safe_mode_reason, sizeof p->safe_mode_reason, "%s", why->text);
	log_error("safe mode: %s", why->text);
	if (last && safe_config(p, "last known good configuration", last, &conf, &again) == 0) {
		if (try_and_apply(p, conf, &fault, &again) == 0) {
			log_notice("running with the last configuration known good");
			return 0;
		}
		conf_free(conf);
	}
	int r = safe_files(p, &conf);
	if (r)
		r = safe_config(p, "safe mode", SAFE_TEXT, &conf, err);
	if (!r) {
		r = apply_config(p, conf, NULL, err);
		if (r)
			conf_free(conf);
	}
	if (!r)
		log_notice("running with policy " SAFE_POLICY ": containers keep what they have");
	return r;
}

/* The policy that is configured, and that of an earlier run. */
static void note_policies(struct pipeline *p, const struct conf *conf)
{
	size_t len;
	const char *former = store_note(p->store, STORE_NOTE_POLICY, &len);
	const char *policy = conf_core(conf)->policy;
	(void)snprintf(p->configured_policy, sizeof p->configured_policy, "%s", policy);
	p->other_policy = former && !str_eq(former, policy);
}

int config_first(struct pipeline *p, struct err *err)
{
	struct conf_errors errs;
	struct conf *conf;
	bool fault = false;
	int r = read_config(p, p->config_path, &conf, &errs, err);
	for (unsigned i = 0; !r && i < errs.n_items; i++)
		log_warning("%s", errs.items[i].text);
	if (r)
		return r;
	note_policies(p, conf);
	r = try_and_apply(p, conf, &fault, err);
	if (r) {
		struct err why = *err;
		conf_free(conf);
		if (!fault)
			return r == -ENOMEM
				       ? r
				       : -EINVAL; /* whatever it was: the configuration asked for it */
		*err = (struct err)ERR_INIT;
		r = safe_mode(p, &why, err);
		if (r)
			return r;
		size_t len;
		const char *former = store_note(p->store, STORE_NOTE_POLICY, &len);
		p->other_policy = former && !str_eq(former, instance_name(p->policy));
	}
	in_force(p);
	return 0;
}

int config_check(struct pipeline *p, struct buf *report, struct err *err)
{
	struct conf_errors errs;
	struct conf *conf;
	bool fault;
	int r = read_config(p, p->config_path, &conf, &errs, err);
	conf_errors_print(&errs, report);
	if (r)
		return r;
	state_look(p, p->state_dir[0] ? p->state_dir : conf_core(conf)->cache_dir, report);
	note_policies(p, conf);
	r = try_first(p, conf, false, &fault, err);
	conf_free(conf);
	return r;
}

void config_fini(struct pipeline *p)
{
	struct reload_result stopping = {.warnings = "", .changes = ""};
	stopping.code = err_set(&stopping.err, -ESHUTDOWN, "nri-rpd is stopping");
	while (p->reloads) {
		struct reload *r = p->reloads;
		DL_DELETE(p->reloads, r);
		trial_cancel(r->trial);
		tell_all(r->waiters, &stopping);
		reload_free(r);
	}
	p->reload = NULL;
	tell_all(p->reload_again, &stopping);
	waiters_free(p->reload_again);
	p->reload_again = NULL;
	for (unsigned i = p->n_controllers; i-- > 0;) {
		controller_fini(&p->controllers[i]);
	}
	p->n_controllers = 0;
	p->policy = instance_free(p->policy);
	p->conf = conf_free(p->conf);
}

const struct conf *pipeline_conf(const struct pipeline *p)
{
	return p->conf;
}

uint64_t pipeline_conf_generation(const struct pipeline *p)
{
	return p->conf_generation;
}
