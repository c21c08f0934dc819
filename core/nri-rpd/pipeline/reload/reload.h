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
/* What is in force stays. -ENOENT: nothing awaits that. */
int pipeline_confirm(struct pipeline *p, struct err *err);
unsigned pipeline_unconfirmed_s(const struct pipeline *p); /* that are left; 0: nothing awaits it */
/* As a reload, with the configuration that was in force before; a second one leads back again.
 * res->code is -EAGAIN when there is none. */
int pipeline_undo(struct pipeline *p, reload_done done, void *arg, struct err *err);
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

#endif
