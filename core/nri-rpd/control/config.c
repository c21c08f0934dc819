/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on configurations. Commands that need a trial are answered when the trial has ended. */

#include "core/nri-rpd/control/internal.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/lib/util/number.h"
#include "core/nri-rpd/control/commands.h"
#include "core/nri-rpd/control/config.h"
#include "core/nri-rpd/control/document.h"
#include "core/nri-rpd/control/server.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/reload/undo.h"

/* ---- the outcome ----------------------------------------------------------------------------- */

static void put_moves(struct json *j, const struct reload_result *res)
{
	json_karr(j, "moves");
	for (size_t i = 0; i < res->report->n_moves; i++) {
		const Trial__Move *m = res->report->moves[i];
		json_obj(j);
		json_kstr(j, "container", m->ctr);
		put_text(j, "from_cpus", m->from_cpus);
		put_text(j, "to_cpus", m->to_cpus);
		put_text(j, "from_mems", m->from_mems);
		put_text(j, "to_mems", m->to_mems);
		json_kbool(j, "moved", m->moved);
		put_text(j, "exclusive", m->exclusive);
		put_text(j, "note", m->note);
		if (*m->why)
			put_lines(j, "why", m->why);
		json_end_obj(j);
	}
	json_end_arr(j);
}

/* Returns true if the error is a fault of the configuration and not of the attempt to try it. */
static bool is_refusal(int code)
{
	static const int ours[] = {-ENOMEM, -EAGAIN, -EPROTO, -EIO, -EMFILE, -ENFILE, -ESHUTDOWN};
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (code == ours[i])
			return false;
	return code != 0;
}

static int exit_of(int code)
{
	if (!code)
		return CTL_OK;
	return is_refusal(code) ? CTL_CONFIG : CTL_FAILED;
}

/* Writes the result of a job. The map gets no keys and values of files. */
static void put_outcome(struct buf *out, const struct pipeline *p, const struct job *job,
			const struct reload_result *res)
{
	const bool plan = job->plan, closed = !job->pod && job->flags & CTL_FLAG_PUBLIC;
	static const char *const refused[] = {"failed", "refused"};
	struct json j;
	json_init(&j, out);
	json_obj(&j);
	json_kstr(&j, "outcome",
		  res->code ? refused[is_refusal(res->code)]
		  : plan    ? "accepted"
			    : "in force");
	put_text(&j, "error",
		 !res->code ? NULL
		 : closed   ? "the configuration is refused: see nri-rpctl config check"
			    : err_text(&res->err, res->code));
	put_lines(&j, "problems", closed ? NULL : res->warnings);
	put_lines(&j, "changes", closed ? NULL : res->report->changes);
	put_lines(&j, "classes", closed ? NULL : res->report->classes);
	json_kbool(&j, "restart_needed", res->report->restart_needed);
	put_moves(&j, res);
	if (res->former_ns)
		put_time(&j, "restores", res->former_ns);
	json_kuint(&j, "unconfirmed_s", plan ? 0 : pipeline_unconfirmed_s(p));
	json_kuint(&j, "took_us", res->took_us);
	json_kuint(&j, "generation", pipeline_conf_generation(p));
	json_end_obj(&j);
}

static void config_done(const struct reload_result *res, void *arg)
{
	struct job *job = arg;
	struct buf out = BUF_INIT;
	if (job->ctl)
		put_outcome(&out, job->ctl->pipeline, job, res);
	job_end(job, &out, job->pod && res->code ? CTL_FAILED : exit_of(res->code));
	buf_fini(&out);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Returns the result of a command that starts a trial: `r` is 0 if the trial was started. */
static enum call_result trial_begun(struct call *call, struct job *job, int r, struct err *err)
{
	if (!r)
		return CALL_LATER;
	job_drop(job, &call->ctl->jobs);
	return call_fail(call, CTL_FAILED, "%s", err_text(err, r));
}

/* Runs reload. Argument: seconds in which the new configuration has to be confirmed. */
enum call_result run_reload(struct call *call)
{
	struct err err = ERR_INIT;
	uint64_t confirm_s = 0;
	bool until = call->req->n_args != 0;
	if (until && (str_to_u64(call->req->args[0], &confirm_s) || !confirm_s ||
		      confirm_s > CTL_CONFIRM_MAX_S))
		return call_fail(call, CTL_USAGE,
				 "expected a time from 1 to %u seconds, found \"%s\"",
				 CTL_CONFIRM_MAX_S, call->req->args[0]);
	struct job *job = job_new(call, &call->ctl->jobs);
	if (!job)
		return call_fail(call, CTL_FAILED, "too many requests are already waiting");
	if (until)
		return trial_begun(
			call, job,
			pipeline_reload_until(call->p, (uint32_t)confirm_s, config_done, job, &err),
			&err);
	pipeline_reload(call->p, config_done, job);
	return CALL_LATER;
}

/* Creates the job of a trial; NULL: the call has failed. */
static struct job *trial_job(struct call *call, bool pod)
{
	struct ctl *ctl = call->ctl;
	if (ctl->n_plans >= CTL_PLANS_MAX) {
		(void)call_fail(call, CTL_FAILED,
				"%u configurations or pods are already being tried", ctl->n_plans);
		return NULL;
	}
	struct job *job = job_new(call, &ctl->jobs);
	if (!job) {
		(void)call_fail(call, CTL_FAILED, "too many requests are already waiting");
		return NULL;
	}
	job->plan = true;
	job->pod = pod;
	job->flags = call->req->flags;
	ctl->n_plans++;
	return job;
}

enum call_result run_undo(struct call *call)
{
	const bool dry = call->req->flags & CTL_FLAG_DRY_RUN;
	struct err err = ERR_INIT;
	struct pipeline_status s;
	pipeline_status(call->p, &s);
	/* A refused configuration has changed nothing, so there is nothing to undo. */
	if (s.config_error && *s.config_error && !s.config_undone &&
	    !pipeline_unconfirmed_s(call->p) &&
	    !(call->req->flags & (CTL_FLAG_YES | CTL_FLAG_DRY_RUN)))
		return call_fail(call, CTL_FAILED,
				 "%s was refused and has changed nothing, so there is nothing to "
				 "undo; nri-rpctl undo --yes goes back to the configuration before "
				 "the active one (policy %s)",
				 s.config_path, s.policy);
	struct job *job = dry ? trial_job(call, false) : job_new(call, &call->ctl->jobs);
	if (!job)
		return dry ? CALL_DONE
			   : call_fail(call, CTL_FAILED, "too many requests are already waiting");
	return trial_begun(call, job, pipeline_undo(call->p, dry, config_done, job, &err), &err);
}

enum call_result run_confirm(struct call *call)
{
	struct err err = ERR_INIT;
	int r = pipeline_confirm(call->p, &err);
	if (r)
		return call_fail(call, CTL_FAILED, "%s", err_text(&err, r));
	json_obj(&call->j);
	json_kuint(&call->j, "confirmed", pipeline_conf_generation(call->p));
	json_end_obj(&call->j);
	return CALL_DONE;
}

static enum call_result plan_file(struct call *call, const char *path)
{
	struct err err = ERR_INIT;
	struct job *job = trial_job(call, false);
	if (!job)
		return CALL_DONE;
	return trial_begun(call, job, pipeline_plan(call->p, path, config_done, job, &err), &err);
}

/* Tries a file that a client names, whose working directory differs from the daemon's. */
static enum call_result plan_given(struct call *call, const char *path)
{
	if (path[0] != '/')
		return call_fail(call, CTL_USAGE, "%s: an absolute path is needed", path);
	return plan_file(call, path);
}

/* Tries a configuration that the client has sent as text. The argument is its name for messages. */
static enum call_result plan_text(struct call *call)
{
	struct err err = ERR_INIT;
	struct job *job = trial_job(call, false);
	if (!job)
		return CALL_DONE;
	return trial_begun(call, job,
			   pipeline_plan_text(call->p, call->req->args[0], call->req->text,
					      config_done, job, &err),
			   &err);
}

enum call_result run_plan(struct call *call)
{
	if (*call->req->text)
		return plan_text(call);
	return plan_given(call, call->req->args[0]);
}

enum call_result run_try(struct call *call)
{
	struct err err = ERR_INIT;
	struct job *job = trial_job(call, true);
	if (!job)
		return CALL_DONE;
	int r = pipeline_try(call->p, call->req->args[0], call->req->text, config_done, job, &err);
	return trial_begun(call, job, r, &err);
}

enum call_result run_config_check(struct call *call)
{
	struct pipeline_status s;
	if (call->req->n_args)
		return run_plan(call);
	pipeline_status(call->p, &s);
	return plan_file(call, s.config_path);
}

enum call_result run_config_show(struct call *call)
{
	struct pipeline_status s;
	struct buf text = BUF_INIT;
	unsigned flags = (call->req->flags & CTL_FLAG_ORIGIN ? CONF_SHOW_ORIGIN : 0) |
			 (call->req->flags & CTL_FLAG_DEFAULTS ? CONF_SHOW_DEFAULTS : 0);
	pipeline_status(call->p, &s);
	int r = conf_show(pipeline_conf(call->p), flags, &text);
	if (r) {
		buf_fini(&text);
		return call_fail(call, CTL_FAILED, "out of memory");
	}
	json_obj(&call->j);
	json_kstr(&call->j, "path", s.config_path);
	json_kuint(&call->j, "generation", s.config_generation);
	json_kstr(&call->j, "yaml", buf_text(&text));
	json_end_obj(&call->j);
	buf_fini(&text);
	return CALL_DONE;
}
