/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a start. There is nothing to protect but the daemon's own life: a module that dies in the trial, or has died three
 * times in ten minutes, is left out, and the last configuration known good is used, or the policy none: safe mode.
 */
#include <stdlib.h>
#include <string.h>

#include "core/pipeline/apply.h"
#include "core/pipeline/internal.h"
#include "core/pipeline/report.h"
#include "core/util/cleanup.h"
#include "core/util/log.h"
#include "core/util/str.h"

#define LOG_SOURCE "config"
#define SAFE_POLICY "none"

static int safe_config(struct pipeline *p, const char *name, const char *yaml, struct conf **ret,
		       struct err *err)
{
	struct conf_source source = {.name = name, .text = yaml, .len = strlen(yaml)};
	const struct config_text text = {.files = {&source, 1}};
	struct conf_errors errs;
	return config_parse(p, &text, ret, &errs, err);
}

#define SAFE_TEXT "policy: " SAFE_POLICY "\ncontrollers: []\n"

/* What the files say of the daemon itself (sockets, metrics, intervals) stands, without the modules they name. */
static int safe_files(struct pipeline *p, const struct config_text *text, struct conf **ret)
{
	struct config_text safe = *text;
	struct conf_errors errs;
	struct err err = ERR_INIT;
	unsigned n = safe.files.n_sources;
	_free_ struct conf_source *sources = calloc(n + 1, sizeof *sources);
	if (!sources)
		return -ENOMEM;
	if (n)
		memcpy(sources, safe.files.sources, n * sizeof *sources);
	sources[n] = (struct conf_source){
		.name = "safe mode", .text = SAFE_TEXT, .len = strlen(SAFE_TEXT)};
	safe.files = (struct conf_files){sources, n + 1};
	return config_parse(p, &safe, ret, &errs, &err);
}

static int run(struct pipeline *p, void *arg, struct buf *out, struct err *err)
{
	return config_try(p, arg, out, err);
}

/* 0: tried and good. */
static int try_first(struct pipeline *p, struct conf *conf, bool real, bool *ret_module_fault,
		     struct err *err)
{
	struct proposal proposal = {.conf = conf, .first = real};
	const struct attempt_spec spec = {
		.what = "the configuration was tried", .fn = run, .arg = &proposal, .real = real};
	struct trial_result t;
	struct report report = {0};
	int r = attempt_wait(p, &spec, &t, err);
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
static int safe_mode(struct pipeline *p, const struct config_text *text, const struct err *why,
		     struct err *err)
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
	int r = safe_files(p, text, &conf);
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

static int put_in_force(struct pipeline *p, const struct config_text *text, struct err *err)
{
	struct conf_errors errs;
	struct conf *conf;
	bool fault = false;
	int r = config_parse(p, text, &conf, &errs, err);
	for (unsigned i = 0; !r && i < errs.n_items; i++)
		log_warning("%s", errs.items[i].text);
	if (r)
		return r;
	note_policies(p, conf);
	r = try_and_apply(p, conf, &fault, err);
	if (!r)
		return 0;
	struct err why = *err;
	conf_free(conf);
	if (!fault)
		return r == -ENOMEM ? r
				    : -EINVAL; /* whatever it was: the configuration asked for it */
	*err = (struct err)ERR_INIT;
	r = safe_mode(p, text, &why, err);
	if (r)
		return r;
	size_t len;
	const char *former = store_note(p->store, STORE_NOTE_POLICY, &len);
	p->other_policy = former && !str_eq(former, instance_name(p->policy));
	return 0;
}

int config_first(struct pipeline *p, struct err *err)
{
	struct config_text text;
	config_read(p->config_path, &text);
	int r = put_in_force(p, &text, err);
	config_unread(&text);
	if (!r)
		config_in_force(p);
	return r;
}

static int check(struct pipeline *p, const struct config_text *text, struct buf *report,
		 struct err *err)
{
	struct conf_errors errs;
	struct conf *conf;
	bool fault;
	int r = config_parse(p, text, &conf, &errs, err);
	conf_errors_print(&errs, report);
	if (r)
		return r;
	state_look(p, p->state_dir[0] ? p->state_dir : conf_core(conf)->cache_dir, report);
	note_policies(p, conf);
	r = try_first(p, conf, false, &fault, err);
	conf_free(conf);
	return r;
}

int config_check(struct pipeline *p, struct buf *report, struct err *err)
{
	struct config_text text;
	config_read(p->config_path, &text);
	int r = check(p, &text, report, err);
	config_unread(&text);
	return r;
}
