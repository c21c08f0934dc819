/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a start. Containers run on this node and are not protected without a daemon,
 * so a node that has ever had a configuration gets one:
 *
 *   files    the files
 *   kept     else the last good configuration, if the files are wrong or name an unusable module
 *   lenient  else the better of both without the required controllers that cannot be loaded
 *   none     else policy none, with the files' settings of the daemon itself
 *   nothing  else no policy: not even none can be loaded
 *
 * A start fails only with wrong files on a node without a last good configuration. Recovery from
 * safe mode is automatic (recover.h). Each candidate is tried in a child first. A module is
 * unusable if it dies there, or has died three times in ten minutes.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/reload/advice.h"
#include "core/nri-rpd/pipeline/reload/apply.h"
#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/nri-rpd/pipeline/reload/pushed.h"
#include "core/nri-rpd/pipeline/reload/report.h"
#include "core/nri-rpd/pipeline/internal.h"
#include "core/lib/util/cleanup.h"
#include "core/lib/util/log.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/pipeline/node/frequencies.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/reload/startup.h"
#include "core/nri-rpd/pipeline/state/state.h"
#include "core/nri-rpd/store/blobs.h"

#define LOG_SOURCE "config"
#define SAFE_TEXT "policy: none\ncontrollers: []\nstrict: false\n"

/* Candidates for a start, read once. */
struct first {
	struct config_text files;
	struct config_text kept;
	bool has_kept;
	bool had_one; /* the node has been configured before, or that is unknown */
	uint64_t kept_ns;
};

/* Logs the errors of a configuration, unless there is only one, which the caller reports. */
static void tell_errors(const struct conf_errors *errs)
{
	for (unsigned i = 0; errs->n_errors > 1 && i < errs->n_items; i++)
		if (!errs->items[i].warning)
			log_error("%s", errs->items[i].text);
}

/* ---- directories ----------------------------------------------------------------------------- */

static int take_dirs(struct pipeline *p, const struct config_text *text, struct conf_errors *errs)
{
	struct conf *conf;
	*errs = text->problems;
	int r = conf_parse_files(&text->files, text->code, NULL, &conf, errs);
	if (r)
		return r;
	const struct conf_core *core = conf_core(conf);
	if (!p->cfg.state_dir)
		(void)snprintf(p->state_dir, sizeof p->state_dir, "%s", core->cache_dir);
	if (!p->cfg.run_dir)
		fs_parent(core->control_socket, p->run_dir, sizeof p->run_dir);
	conf_free(conf);
	return 0;
}

static void default_dirs(struct pipeline *p)
{
	const struct pipeline_config *cfg = &p->cfg;
	(void)snprintf(p->reloads.dir, sizeof p->reloads.dir, "%s",
		       cfg->state_dir ? cfg->state_dir : CONF_DEFAULT_STATE_DIR);
	(void)snprintf(p->state_dir, sizeof p->state_dir, "%s", p->reloads.dir);
	(void)snprintf(p->run_dir, sizeof p->run_dir, "%s",
		       cfg->run_dir ? cfg->run_dir : CONF_DEFAULT_RUN_DIR);
	(void)snprintf(p->reloads.run_dir, sizeof p->reloads.run_dir, "%s", p->run_dir);
}

static int read_kept_of(struct first *f, const char *dir, struct kept *ret)
{
	struct err err = ERR_INIT;
	int r = kept_read(dir, ret, &err);
	f->had_one |= r != -ENOENT;
	if (r && r != -ENOENT)
		log_warning("the last working configuration cannot be read: %s", err.text);
	return r;
}

static void read_kept(struct pipeline *p, struct first *f)
{
	struct kept kept = {0}, run = {0};
	int r = read_kept_of(f, p->reloads.dir, &kept),
	    s = read_kept_of(f, p->reloads.run_dir, &run);
	f->has_kept = !r || !s;
	if (!r && !s && kept_sum(&kept.files) == kept_sum(&run.files))
		p->reloads.saved_sum = kept_sum(&kept.files);
	const struct kept *later = !s && (r || run.wall_ns > kept.wall_ns) ? &run : &kept;
	f->kept.files = later->files;
	f->kept_ns = later->wall_ns;
	conf_files_fini(later == &run ? &kept.files : &run.files);
}

int first_read(struct pipeline *p, struct err *err)
{
	struct first *f = calloc(1, sizeof *f);
	if (!f)
		return err_errno(err, -ENOMEM, "start");
	p->reloads.startup = f;
	default_dirs(p);
	pushed_load(p);
	config_read(p->config_path, &p->reloads.pushed, &f->files);
	read_kept(p, f);
	return 0;
}

int first_dirs(struct pipeline *p, struct err *err)
{
	struct conf_errors errs;
	struct first *f = p->reloads.startup;
	int r = p->cfg.state_dir && p->cfg.run_dir ? 0 : take_dirs(p, &f->files, &errs);
	if (!r)
		return 0;
	if (f->had_one) {
		(void)take_dirs(p, &f->kept, &errs);
		return 0;
	}
	if (err)
		tell_errors(&errs);
	return conf_errors_to_err(&errs, r == -ENOMEM ? r : -EINVAL, err);
}

void first_forget(struct pipeline *p)
{
	if (!p->reloads.startup)
		return;
	conf_files_fini(&p->reloads.startup->files.files);
	conf_files_fini(&p->reloads.startup->kept.files);
	free(p->reloads.startup);
	p->reloads.startup = NULL;
}

/* ---- attempt and activation of a candidate --------------------------------------------------- */

static int startup_run(struct pipeline *p, void *arg, struct buf *out, struct err *err)
{
	return config_try(p, arg, out, err);
}

static bool is_end_of_child(const struct trial_result *t)
{
	return t->outcome != TRIAL_DONE && t->outcome != TRIAL_REFUSED;
}

/* Returns true if the machine may have ended the child: it was killed, for lack of memory for
 * example, or used up its time outside of any module. */
static bool startup_may_be_chance(const struct trial_result *t)
{
	return (t->outcome == TRIAL_CRASHED && t->status == SIGKILL) ||
	       (t->outcome == TRIAL_TIMED_OUT && !*t->module);
}

/* Tries a candidate in a child, once more if chance may have ended the first one. 0: good.
 * -ECANCELED: a module has ended the child. -ENOMEM: the attempt was not possible. Other:
 * refused. */
static int try_first(struct pipeline *p, struct conf *conf, bool real, struct err *err)
{
	struct proposal proposal = {.conf = conf, .first = real};
	const struct attempt_spec spec = {.what = "the configuration was tried",
					  .fn = startup_run,
					  .arg = &proposal,
					  .log = real ? TRIAL_LOG_HELD : TRIAL_LOG_LIVE};
	struct trial_result t;
	struct report report = {0};
	int r = attempt_wait(p, &spec, &t, err);
	if (!r && startup_may_be_chance(&t)) {
		log_warning("%s; trying once more", t.err.text);
		trial_result_fini(&t);
		r = attempt_wait(p, &spec, &t, err);
	}
	if (r)
		/* the configuration was not judged; a restarted process may succeed */
		return -ENOMEM;
	if (t.outcome != TRIAL_DONE) {
		*err = t.err;
		r = is_end_of_child(&t) || t.code >= 0 ? -ECANCELED : t.code;
	} else if (report_read(t.data, t.size, &report, err)) {
		trial_tell_held(&t);
		r = -ECANCELED;
	} else {
		speedselect_took(p, report.message);
		frequencies_took(p->env.topo, report.message);
		report_fini(&report);
	}
	trial_result_fini(&t);
	return r;
}

/* Records the configured policy, and whether an earlier run had another one. */
static void note_policies(struct pipeline *p, const struct conf *conf)
{
	size_t len;
	const char *former = store_note(p->store, STORE_NOTE_POLICY, &len);
	const char *policy = conf_core(conf)->policy;
	p->requests.other_policy = former && !str_eq(former, policy);
	if (!p->reloads.configured_policy[0])
		(void)snprintf(p->reloads.configured_policy, sizeof p->reloads.configured_policy,
			       "%s", policy);
}

static bool startup_requires(const struct conf *conf)
{
	const struct conf_core *core = conf_core(conf);
	for (unsigned i = 0; i < core->n_controllers; i++)
		if (core->controllers[i].mode == CONF_REQUIRED)
			return true;
	return false;
}

static int put_in_force(struct pipeline *p, const struct config_text *text,
			struct conf_errors *errs, struct err *err)
{
	struct conf *conf;
	int r = config_parse(p, text, &conf, errs, err);
	if (r)
		return r == -ENOMEM ? r : -EINVAL;
	if (p->reloads.lenient && !startup_requires(conf)) {
		conf_free(conf); /* without required controllers it equals the strict candidate */
		return err_set(err, -EINVAL, "no controller is required");
	}
	for (unsigned i = 0; i < errs->n_items; i++)
		log_warning("%s", errs->items[i].text);
	pipeline_device_nodes(p, conf, true);
	struct buf advice = BUF_INIT;
	config_advise(conf, p->env.topo, &advice);
	for (const char *line = buf_text(&advice); *line; line += strcspn(line, "\n") + 1)
		log_warning("%.*s", (int)strcspn(line, "\n") - (int)strlen(CONF_WARNING),
			    line + strlen(CONF_WARNING));
	buf_fini(&advice);
	note_policies(p, conf);
	r = try_first(p, conf, true, err);
	if (!r)
		r = apply_config(p, conf, NULL, err);
	if (r)
		conf_free(conf);
	return r;
}

/* ---- policy none ----------------------------------------------------------------------------- */

/* Parses a text without its modules: settings of the daemon itself (sockets, metrics, intervals)
 * remain. */
static int parse_safe(struct pipeline *p, const struct config_text *text, struct conf **ret,
		      struct err *err)
{
	struct config_text safe = *text;
	struct conf_errors errs;
	unsigned n = safe.code ? 0 : safe.files.n_sources;
	_free_ struct conf_source *sources = calloc(n + 1, sizeof *sources);
	if (!sources)
		return err_errno(err, -ENOMEM, "safe mode");
	if (n)
		memcpy(sources, safe.files.sources, n * sizeof *sources);
	sources[n] = (struct conf_source){
		.name = "safe mode", .text = SAFE_TEXT, .len = strlen(SAFE_TEXT)};
	safe.files = (struct conf_files){sources, n + 1};
	safe.code = 0;
	conf_errors_init(&safe.problems);
	return config_parse(p, &safe, ret, &errs, err);
}

static int take_none(struct pipeline *p, const struct first *f, struct err *err)
{
	static const struct config_text nothing;
	const struct config_text *const texts[] = {&f->files, &f->kept, &nothing};
	struct conf *conf = NULL;
	int r = -EINVAL;
	for (unsigned i = 0; r && i < sizeof texts / sizeof texts[0]; i++) {
		*err = (struct err)ERR_INIT;
		r = parse_safe(p, texts[i], &conf, err);
	}
	if (r)
		return r;
	note_policies(p, conf);
	r = apply_config(p, conf, NULL, err);
	if (r && r != -ENOMEM) {
		log_error("even the policy none cannot be used: %s", err->text);
		p->reloads.without_policy = true;
		r = apply_config(p, conf, NULL, err);
	}
	if (r)
		conf_free(conf);
	else
		log_notice("running with policy none: containers keep their CPUs");
	p->reloads.without_policy = false;
	return r;
}

/* ---- choice of a candidate ------------------------------------------------------------------- */

/* Returns true if a module or a requested property of the node is at fault, and not the text.
 * `missing`: a module that is not installed counts, too. */
static bool is_module_fault(int r, bool missing)
{
	return r == -ECANCELED || r == -ELIBBAD || (missing && r == -ENOENT);
}

static void enter_safe_mode(struct pipeline *p, const struct err *why)
{
	if (p->reloads.safe_mode_reason[0])
		return; /* the first cause is the one to repair */
	(void)snprintf(p->reloads.safe_mode_reason, sizeof p->reloads.safe_mode_reason, "%s",
		       why->text);
	log_error("safe mode: %s", why->text);
	pipeline_event(p, EV_CONFIG, "safe mode: %s", why->text);
}

static bool same_text(const struct config_text *a, const struct config_text *b)
{
	bool same = !a->code && !b->code && a->files.n_sources == b->files.n_sources;
	for (unsigned i = 0; same && i < a->files.n_sources; i++) {
		const struct conf_source *s = &a->files.sources[i], *t = &b->files.sources[i];
		same = str_eq(s->name, t->name) && s->len == t->len &&
		       memcmp(s->text, t->text, s->len) == 0;
	}
	return same;
}

/* Activates a replacement for the files at a start: the last good configuration, or either of both
 * without the controllers that do not start. `why`: error of the files. `wrong` true: the text of
 * the files is invalid; false: a module cannot be used. */
static int take_another(struct pipeline *p, struct first *f, bool wrong, const struct err *why,
			struct err *err)
{
	bool same = f->has_kept && same_text(&f->files, &f->kept);
	const struct {
		bool makes_sense, kept, lenient;
	} rungs[] = {
		{f->has_kept && !same, true, false},
		{!wrong, false, true},
		{f->has_kept && (wrong || !same), true, true},
	};
	if (!wrong || same)
		enter_safe_mode(p, why);
	for (unsigned i = 0; i < sizeof rungs / sizeof rungs[0]; i++) {
		struct err again = ERR_INIT;
		struct conf_errors errs;
		if (!rungs[i].makes_sense)
			continue;
		p->reloads.lenient = rungs[i].lenient;
		int r = put_in_force(p, rungs[i].kept ? &f->kept : &f->files, &errs, &again);
		if (r == -ENOMEM)
			return err_set(err, r, "%s", again.text);
		if (r) {
			enter_safe_mode(p, &again);
			continue;
		}
		p->reloads.saved_ns = rungs[i].kept ? f->kept_ns : 0;
		log_notice("running with %s%s",
			   rungs[i].kept ? "the last working configuration" : "the files",
			   rungs[i].lenient ? ", without the controllers that do not start" : "");
		return 0;
	}
	enter_safe_mode(p, why);
	return take_none(p, f, err);
}

static void refuse_files(struct pipeline *p, const struct conf_errors *errs, const struct err *why)
{
	struct buf problems = BUF_INIT;
	conf_errors_print(errs, &problems);
	config_refused(p, buf_text(&problems), why);
	buf_fini(&problems);
	log_error("%s is invalid: %s", p->config_path, why->text);
	pipeline_event(p, EV_CONFIG, "refused at start: %s", why->text);
}

/* Starts with the previous configuration, because the files were undone or never confirmed. */
static int start_undone(struct pipeline *p, struct first *f, struct err *err)
{
	struct conf_errors errs;
	struct err why = ERR_INIT;
	(void)err_set(&why, -ECANCELED,
		      "it was undone, or not confirmed in time: edit it and reload, or reload to "
		      "activate it again");
	conf_errors_init(&errs);
	refuse_files(p, &errs, &why);
	p->reloads.undo.undone = true;
	return take_another(p, f, true, &why, err);
}

static int start_with(struct pipeline *p, struct first *f, struct err *err)
{
	struct conf_errors errs;
	if (f->has_kept && !same_text(&f->files, &f->kept) && !f->files.code &&
	    undo_rejects(p, &f->files.files))
		return start_undone(p, f, err);
	int r = put_in_force(p, &f->files, &errs, err);
	bool wrong = !is_module_fault(r, f->had_one);
	if (!r || r == -ENOMEM)
		return r;
	if (wrong && !f->had_one) {
		tell_errors(&errs);
		/* without an earlier configuration every failure is an error of the files */
		return -EINVAL;
	}
	const struct err why = *err;
	if (wrong)
		refuse_files(p, &errs, &why);
	*err = (struct err)ERR_INIT;
	return take_another(p, f, wrong, &why, err);
}

int config_first(struct pipeline *p, struct err *err)
{
	struct first *f = p->reloads.startup;
	int r = start_with(p, f, err);
	p->reloads.lenient = false;
	if (!r && !p->reloads.error[0] && !p->reloads.safe_mode_reason[0])
		config_accepted(p, &f->files.files);
	if (!r)
		config_in_force(p);
	if (!r)
		recover_begin(p, f->files.code ? NULL : &f->files.files);
	first_forget(p);
	return r;
}

int config_check(struct pipeline *p, struct buf *report, struct err *err)
{
	struct conf_errors errs;
	struct conf *conf;
	int r = config_parse(p, &p->reloads.startup->files, &conf, &errs, err);
	conf_errors_print(&errs, report);
	if (r)
		return r;
	config_advise(conf, p->env.topo, report);
	state_look(p, p->state_dir, report);
	note_policies(p, conf);
	r = try_first(p, conf, false, err);
	conf_free(conf);
	return r;
}
