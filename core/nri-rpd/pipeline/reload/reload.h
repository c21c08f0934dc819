/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: put in force, taken back, planned and tried. */
#ifndef PIPELINE_CONFIG_CONFIG_H
#define PIPELINE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/conf/conf.h"
#include "core/lib/util/err.h"

struct pipeline;

/* ---- configurations (config.c) --------------------------------------------------------------- */

#define RELOAD_TEXT_MAX 65536u

struct move {
	const char *ctr; /* namespace/pod/container */
	const char *from_cpus, *to_cpus, *from_mems, *to_mems;
	const char *note; /* "", or why it is degraded */
	const char
		*why; /* of a container of a pod that is tried: the explanation, lines; else "" */
	bool moved; /* its CPUs or memory nodes change; else it is listed for its note */
};

/* An adjustment that cannot be meant for a container that runs. */
struct conflict {
	const char *adjustment, *ctr, *text;
};

struct reload_result {
	/* 0: in force; -EINVAL: refused, the old one stays in force; -ESHUTDOWN: the pipeline ends;
	 * another: failed */
	int code;
	struct err err;
	const char *warnings; /* lines, "" */
	const char *changes; /* keys that changed, lines */
	const char *classes; /* of containers that controllers would give others, or have, lines */
	bool restart_needed; /* some of them only count after a restart */
	const struct move *moves; /* containers that are moved */
	unsigned n_moves;
	const struct conflict *conflicts; /* of those that have been refused for that */
	unsigned n_conflicts;
	uint64_t took_us;
};
typedef void (*reload_done)(const struct reload_result *res, void *arg);

/* Reads the configuration again, tries it in a child, puts it in force. done (may be NULL) is
 * called once, later; the outcome is logged in any case. Reloads that come meanwhile are served by
 * one that follows. */
void pipeline_reload(struct pipeline *p, reload_done done, void *arg);
/* The same; after so many seconds without pipeline_confirm() the one before comes back. -EBUSY: a
 * reload is under way. */
int pipeline_reload_until(struct pipeline *p, uint32_t confirm_s, reload_done done, void *arg,
			  struct err *err);
/* As pipeline_plan, for a text; `name` is for messages. */
int pipeline_plan_text(struct pipeline *p, const char *name, const char *text, reload_done done,
		       void *arg, struct err *err);
/* The same up to the list of moves for another file; nothing is put in force. */
int pipeline_plan(struct pipeline *p, const char *path, reload_done done, void *arg,
		  struct err *err);
/* Where would the pods of the manifest in `text` go, and who would move for them? res->code is why
 * one would be refused; res->moves has those before it even so. Controllers are not asked. `name`
 * is that of the manifest's file, for messages. */
int pipeline_try(struct pipeline *p, const char *name, const char *text, reload_done done,
		 void *arg, struct err *err);
/*
 * As a reload, with these sources of the node agent's instead of those that it pushed before; they
 * are copied. What is accepted is kept for later starts (pushed.h). Adjustments and the rest of a
 * configuration come from different objects: one is pushed, the other one stays. 1: that is what is
 * in force, and done is not called; -EBUSY: a reload is under way; -E2BIG: more than
 * CONF_PUSHED_MAX.
 */
int pipeline_push(struct pipeline *p, const struct conf_source *sources, unsigned n,
		  bool adjustments, reload_done done, void *arg, struct err *err);
const struct conf *pipeline_conf(const struct pipeline *p);
uint64_t pipeline_conf_generation(const struct pipeline *p);

struct buf;
struct conf_errors;
struct conf_files;
struct config_text;
struct proposal;

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

/* The files are not what is in force. `problems`: lines, "" when err says all. */
void config_refused(struct pipeline *p, const char *problems, const struct err *err);
void config_fini(struct pipeline *p);
/* Tries `files`, and applies them when the trial passes: safe mode is over then. Takes *files over.
 * `last_good_ns`: not 0: they are the last good configuration, active at that time. */
int config_recover(struct pipeline *p, struct conf_files *files, uint64_t last_good_ns,
		   struct err *err);

#endif
