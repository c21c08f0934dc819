/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: reload, plan, undo, push from the cluster, and attempts to place pods. Also the
 * shared steps that starts and recoveries use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/conf/conf.h"
#include "core/lib/util/err.h"
#include "proto/trial.pb-c.h"

struct pipeline;

/* ---- configurations (reload.c) --------------------------------------------------------------- */

#define RELOAD_TEXT_MAX 65536u

struct reload_result {
	/* 0: active. -EINVAL: refused, the old configuration stays active. -ESHUTDOWN: the pipeline
	 * stops. Other: failed. */
	int code;
	struct err err;
	const char *warnings; /* warnings as lines; "": none */
	const Trial__Report *report; /* report of the attempt; report_none: there is none */
	uint64_t took_us;
	/* undo: activation time of the previous configuration, by the wall clock; else 0 */
	uint64_t former_ns;
};
typedef void (*reload_done)(const struct reload_result *res, void *arg);

/* Reads the configuration again, tries it in a child and activates it. Calls done (may be NULL)
 * once, later; the outcome is logged in any case. Reloads during a running one share the reload
 * that follows it. */
void pipeline_reload(struct pipeline *p, reload_done done, void *arg);
/* Reloads with a time limit: without pipeline_confirm() within confirm_s seconds the previous
 * configuration returns. -EBUSY: a reload is running. */
int pipeline_reload_until(struct pipeline *p, uint32_t confirm_s, reload_done done, void *arg,
			  struct err *err);
/* Plans a configuration that is passed as text; `name` is used in messages. */
int pipeline_plan_text(struct pipeline *p, const char *name, const char *text, reload_done done,
		       void *arg, struct err *err);
/* Tries the configuration in another file up to the list of moves; activates nothing. */
int pipeline_plan(struct pipeline *p, const char *path, reload_done done, void *arg,
		  struct err *err);
/* Finds where the pods of the manifest in `text` would be placed, and which containers would move.
 * res->code tells why a pod would be refused; res->report then lists the pods before it.
 * Controllers are not asked. `name`: the manifest's file, for messages. */
int pipeline_try(struct pipeline *p, const char *name, const char *text, reload_done done,
		 void *arg, struct err *err);
/*
 * Reloads with configuration sources pushed by the node agent, which replace the previous sources
 * of their kind. Copies the sources, and saves them for later starts once accepted (pushed.h).
 * Adjustments and other configuration come from different objects: pushing one kind leaves the
 * other unchanged. Returns 1 without a call of done if the sources are active already. -EBUSY: a
 * reload is running. -E2BIG: more than CONF_PUSHED_MAX sources.
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

/* Reads the files and appends the pushed ones; ret owns copies. */
void config_read(const char *path, const struct conf_files *pushed, struct config_text *ret);

/* Parses a text. Overwrites `errs`, which also gets the problems of reading; the first error goes
 * to err. */
int config_parse(struct pipeline *p, const struct config_text *text, struct conf **ret,
		 struct conf_errors *errs, struct err *err);

/* Tries a proposal in the child of an attempt, and writes a report (report.h) to out. */
int config_try(struct pipeline *p, const struct proposal *proposal, struct buf *out,
	       struct err *err);

/* Notifies the rest of the daemon of the new configuration, after apply_config(). */
void config_in_force(struct pipeline *p);

/* Saves the active policy's name for later starts. */
void config_keep_policy(struct pipeline *p);

/* Records that the active configuration is that of `files`: saves it as the last good one (NULL:
 * not yet) and clears errors and safe mode. */
void config_accepted(struct pipeline *p, const struct conf_files *files);

/* Saves the files as the last good configuration. The one saved before becomes the former one. */
void config_keep(struct pipeline *p, const struct conf_files *files);

struct kept;

/* Reloads with a previous configuration; takes ownership of its files. `plan`: only
 * tries it. `sum`: checksum of the configuration that is undone, which a start must not activate
 * again; 0: unknown. */
int config_undo(struct pipeline *p, struct kept *former, bool plan, uint64_t sum, reload_done done,
		void *arg, struct err *err);

/* Records that the files were refused. `problems`: lines; "" if err has the complete text. */
void config_refused(struct pipeline *p, const char *problems, const struct err *err);
void config_fini(struct pipeline *p);
/* Tries `files`, and applies them after a success, which ends safe mode. Takes ownership of *files.
 * `last_good_ns`, if not 0: they are the last good configuration, active at that time. */
int config_recover(struct pipeline *p, struct conf_files *files, uint64_t last_good_ns,
		   struct err *err);
