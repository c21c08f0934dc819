/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried before it comes into force: the text of a configuration, and what has been made of
 * it. */
#ifndef PIPELINE_CONFIG_PROPOSAL_H
#define PIPELINE_CONFIG_PROPOSAL_H

#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/instance.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/buf.h"

struct reload; /* config.c */
struct reload_waiter {
	reload_done done;
	void *arg;
	struct reload_waiter *next;
};

/* ---- config.c ---- */

/* What the files of a configuration say, read once: who tries it and who puts it in force parse the
 * same bytes. */
struct config_text {
	struct conf_files files;
	int code; /* not all can be read, and problems has the reason */
	struct conf_errors problems;
};

/* What an attempt is about: a text, or what has been made of one already. */
struct proposal {
	const struct config_text *text;
	struct conf *conf;
	bool first; /* nothing is in force yet, and this comes into force when it is good */
};

/* The files, and after them what was pushed: copies. */
void config_read(const char *path, const struct conf_files *pushed, struct config_text *ret);
void config_unread(struct config_text *r);
/* `errs` is overwritten, and has what cannot be read, too; the first error goes to err. */
int config_parse(struct pipeline *p, const struct config_text *text, struct conf **ret,
		 struct conf_errors *errs, struct err *err);
/* In the child of an attempt: a report (report.h) of what would come of it goes to out. */
int config_try(struct pipeline *p, const struct proposal *proposal, struct buf *out,
	       struct err *err);
/* After apply_config(). */
void config_in_force(struct pipeline *p);
/* Which policy is in force, for a later start. */
void config_keep_policy(struct pipeline *p);
/* That was done with what the files say: it is kept for later starts, and nothing is wrong with
 * them any more. */
void config_accepted(struct pipeline *p, const struct conf_files *files);
/* It is what later starts use when they cannot use the files; what was kept before is the former
 * one. */
void config_keep(struct pipeline *p, const struct conf_files *files);
/* As a reload, with other text; *files is taken over. `sum`: of what is in force and not to come
 * back by itself. */
int config_undo(struct pipeline *p, struct conf_files *files, uint32_t sum, reload_done done,
		void *arg, struct err *err);
/* Tries `files`, and applies them when the trial passes: safe mode is over then. Takes *files over.
 * `last_good_ns`: not 0: they are the last good configuration, active at that time. */
int config_recover(struct pipeline *p, struct conf_files *files, uint64_t last_good_ns,
		   struct err *err);
/* The files are not what is in force. `problems`: lines, "" when err says all. */
void config_refused(struct pipeline *p, const char *problems, const struct err *err);
void config_fini(struct pipeline *p);

/* ---- first.c ---- */
/* Reads what there is to start with. */
int first_read(struct pipeline *p, struct err *err);
/* Says where the directories are. Fails when that cannot be known, nor what else to start with.
 * Without err nothing is logged: who only checks a configuration tells all of it later. */
int first_dirs(struct pipeline *p, struct err *err);
void first_forget(struct pipeline *p);
int config_first(struct pipeline *p, struct err *err);
/* Reads and tries it, in a child; problems and warnings go to report. */
int config_check(struct pipeline *p, struct buf *report, struct err *err);

/* ---- apply.c ---- */
/* A module in one role, with the state that it kept. -ELIBBAD: the module cannot be used; -ENOENT:
 * it is nowhere; -EINVAL: it is not of that kind, or no module's name. */
int open_instance(struct pipeline *p, const char *name, uint32_t role, struct instance **ret,
		  struct err *err);

#endif
