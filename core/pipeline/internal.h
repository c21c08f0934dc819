/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef PIPELINE_INTERNAL_H
#define PIPELINE_INTERNAL_H

#include "core/pipeline/cluster.h"
#include "core/pipeline/conditions.h"
#include "core/pipeline/devices.h"
#include "core/pipeline/drift.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/undo.h"
#include "core/topo/hotplug.h"
#include "core/util/reclog.h"
#include "proto/trial.pb-c.h"

#define CONTROLLERS_MAX 32u
#define PERSIST_DELAY_MS 100u

/* Drawn in controllers_life.c. */
enum controller_life { CONTROLLER_IDLE, CONTROLLER_EARLY, CONTROLLER_RUNS, CONTROLLER_LEAVES };

struct controller {
	struct instance *instance; /* NULL: could not be made */
	char name[RP_NAME_MAX];
	enum conf_mode mode;
	enum controller_life life;
	char error[ERR_TEXT_MAX]; /* why it does not run */
	struct { /* what the configuration says that is being put in force */
		struct rp_plan *plan; /* NULL: committed already, or refused */
		enum conf_mode mode;
		char error[ERR_TEXT_MAX];
	} next;
	struct applied *applied; /* controllers.c: what it said of containers */
	unsigned results[RP_APPLY_FAILED + 1]; /* containers */
};

/* Those that lose CPUs come first, then by age. */
struct update_list {
	struct update *items;
	uint32_t n, cap;
};

struct updates {
	rp_ctr *waiting; /* in order; ctr->in_updates says who is there */
	uint32_t n, cap;
	struct update_list batch; /* that is under way */
	struct update_list reply; /* of the request that is being answered */
	bool outstanding;
	bool single; /* after a failure: one by one, to find out who */
	uint32_t single_left;
	uint32_t backoff_ms;
	struct loop_timer *retry;
	/* All that waits may go on waiting, for this timer (rp_host_cache.may_wait). */
	struct loop_timer *hold;
	uint64_t held_until_ms; /* at the latest; 0: nothing is held */
};

/* Creations that were refused, since one was not; by different containers. */
struct refusals {
	unsigned n, who[REFUSED_IN_A_ROW]; /* hashes of their names */
	char last[ERR_TEXT_MAX]; /* why */
};

struct reload; /* config.c */
struct reload_waiter {
	reload_done done;
	void *arg;
	struct reload_waiter *next;
};

struct pipeline {
	struct pipeline_config cfg;
	char *config_path;
	char state_dir[CACHE_PATH_MAX], run_dir[CACHE_PATH_MAX];
	char kept_dir[CACHE_PATH_MAX], kept_run_dir[CACHE_PATH_MAX]; /* kept.h */
	struct host_env env; /* cache, topo, loop, worker, crumb … */
	struct fs_root root;
	struct worker *disk; /* syncs and clean-ups */
	struct watchdog *watchdog;
	struct loader *loader;
	struct store *store;
	char store_state[ERR_TEXT_MAX];
	char state_error[ERR_TEXT_MAX],
		run_error[ERR_TEXT_MAX]; /* why the directory cannot be used; "" */
	struct hotplug *hotplug;

	struct conf *conf;
	uint64_t conf_generation;
	char config_error[ERR_TEXT_MAX]; /* of the last reload, or start; "" when it was accepted */
	char *config_problems; /* all that is wrong then, lines; NULL with no error */
	uint64_t
		kept_ns; /* what is in force was kept, and in force at that time; 0: it is of the files */
	uint32_t kept_sum; /* of what is kept */
	char keep_error[ERR_TEXT_MAX]; /* why the configuration in force is not kept; "": it is */
	struct first *first; /* at a start only (first.c) */
	bool lenient; /* at a start: required controllers are done without, too */
	bool without_policy; /* at a start: not even the policy none can be loaded */
	struct instance *policy;
	char configured_policy[RP_NAME_MAX];
	char safe_mode_reason[ERR_TEXT_MAX]; /* "": not in safe mode */
	struct controller *controllers[CONTROLLERS_MAX]; /* in the configuration's order */
	unsigned n_controllers;
	struct controller_change *controller_change; /* while a configuration is put in force */
	struct attempt *attempts; /* under way */
	struct reload *reload; /* the one of them that is to come into force; NULL: none */
	struct reload_waiter *reload_again; /* came meanwhile */
	struct machine_change
		*change; /* the machine's last one, while its Speed Select is being read */

	/* the running request */
	enum request request;
	uint64_t request_ns;
	struct txn *txn;

	struct updates updates;
	rp_ctr *to_verify;
	uint32_t n_to_verify, cap_to_verify;
	uint64_t verify_delay_ms, verify_due_ms;
	struct drift drift;
	bool verifying;
	struct loop_timer *verify_timer;
	struct loop_timer *persist_timer, *quiet_timer;
	uint64_t quiet_records; /* the store's count when memory was given back last */
	struct loop_timer *rebalance_timer;
	struct runtime_state runtime;
	struct pipeline_stats stats;
	struct usage_stats usage;
	struct devices *devices; /* NULL: the kubelet is not asked */
	struct noderes *noderes; /* noderes.c */
	struct evictions *evictions; /* evict.c */
	struct adjustments *adjustments; /* adjust.c: of p->conf; NULL: none */
	uint64_t started_ns;
	bool other_policy; /* the restored decisions are those of another policy than the configured one */
	bool sync_failed;
	/* Perhaps a container runs that nobody has pinned; perhaps one is confined (confine.c). Only ever too true. */
	bool loose, confining;
	struct refusals refusals;
	char unserved[N_SERVICES][CONDITION_TEXT_MAX]; /* why; "" */
	bool warned_kubelet;
	uint32_t sync_mark;

	struct undo undo;
	struct conf_files pushed; /* pushed.h */
	struct cluster_state *cluster; /* cluster.h; NULL: nobody has told */
	struct arena *node_arena; /* of env.node */
	uint64_t published_ns;
	struct event events[EVENTS_MAX];
	uint64_t last_event, logged_event; /* logged_event: the last one that is in the log */
	struct reclog event_log;
	bool event_log_ready;
	void (*on_event)(void *arg);
	void *on_event_arg;
};

/* ---- rebalance.c ---- */
/* As the configuration in force says. */
void pipeline_arm_rebalance(struct pipeline *p);
void rebalance_timer(void *arg);
/* Containers that the running transaction moves, or has moved. */
unsigned rebalance_count(const struct pipeline *p);

/* ---- decide.c ---- */

/*
 * Runs fn in a transaction, checks what it staged, and commits. On an error everything is as before, the policy included. What follows a
 * decision is done once: by decide_reply() and then reply_sent() when a request waits, else by decide_settle(). Until then the
 * transaction can be read (decide_touched).
 */
int decide(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err), void *arg,
	   struct err *err);
/* Fills the reply's updates with what the touched containers need, but for the one that is created or stopped. */
void decide_reply(struct pipeline *p, struct reply *reply, const struct ctr *skip);
/* Puts what the touched containers need into the unsolicited queue instead, and closes. */
void decide_settle(struct pipeline *p);
/* After the reply: hooks and data files of the touched containers, but for the created one. Nothing when no decision is open. */
void decide_close(struct pipeline *p, const struct ctr *created);
/* A decision of the policy's own, by the clock or as the machine has changed: settled, and people are told who has moved. */
int decide_event(struct pipeline *p, int (*fn)(struct pipeline *p, void *arg, struct err *err),
		 void *arg, struct err *err);
/* For a caller that stages and checks itself, and then either commits, as decide_event() does, or drops that. */
int decide_begin(struct pipeline *p, struct err *err);
void decide_take_effect(struct pipeline *p);
void decide_drop(struct pipeline *p);
const struct stage *decide_touched(const struct pipeline *p);
/* A container that is given the only memory node that there is was nowhere else before. */
bool moves_memory(const struct pipeline *p, const struct iset *was, const struct iset *now);
/* Checks only: for trials. */
int decide_check(struct pipeline *p, struct err *err);
struct invariants decide_invariants(const struct pipeline *p);
/* The policy has placed all containers, if not when the runtime listed them: what the last process has set of the machine need not wait. */
void sync_recovered(struct pipeline *p);
/* Gives up what a container holds, whatever the policy says about it. The decision is open then. */
void decide_release(struct pipeline *p, struct ctr *ctr);
/* Stages the same within a decision. */
int decide_stage_release(struct pipeline *p, struct ctr *ctr, struct err *err);

/* ---- frequencies.c ---- */
/* In a child: what is known of the snapshot's frequencies; nothing, where memory does not suffice. It is not freed. */
void frequencies_told(const struct topo *t, Trial__Report *report);
/* What a trial has read of the same snapshot need not be read again. What makes no sense is read, all the same, and logged. */
void frequencies_took(struct topo *t, const Trial__Report *report);

/* ---- speedselect.c ---- */
/* In a child: what the snapshot's getters tell; NULL: out of memory. It is not freed. */
Trial__SpeedSelect *speedselect_told(struct topo *t);
/* What a child has told of the same snapshot is what its getters tell. -ESTALE: of another one; -EINVAL, -ENOMEM. */
int speedselect_take(struct topo *t, const Trial__SpeedSelect *m);
/* The same of a trial, if that has asked for it; a failure is logged. */
void speedselect_took(struct pipeline *p, const Trial__Report *report);
/*
 * Where the platform is in use it is read before anybody is told of the changed machine: `then` is called later and takes `now` over. False: it is
 * not, and nothing is done.
 */
bool speedselect_first(struct pipeline *p, struct topo *now, const struct topo_change *change,
		       void (*then)(struct pipeline *p, struct topo *now,
				    const struct topo_change *change));
/* The machine has changed again: what is being read is of no use any more. */
void speedselect_overtaken(struct pipeline *p);

/* ---- confine.c ---- */
/* All CPUs that are nobody's own, as the running transaction leaves them. NULL: out of memory. */
struct iset *unowned_cpus(struct pipeline *p);
/* Keeps containers that nobody has pinned off the CPUs that others own: the last step of a decision, before the invariants. -ENOSPC: the
 * container that is being created would have nowhere to run. */
int confine(struct pipeline *p, struct err *err);
/* Nothing is known of who is pinned and who is confined: a decision has been dropped, or the containers are others. */
void confine_unknown(struct pipeline *p);

/* ---- updates.c ---- */
int updates_init(struct pipeline *p);
void updates_fini(struct pipeline *p);
void updates_add(struct pipeline *p, struct ctr *ctr);
/* Adds what the transaction has changed, which may wait when it only gives and the policy has said so. */
void updates_settle(struct pipeline *p);
/* What the containers are to be told that the decision has touched, but for `skip`: for a reply. What there is no memory for is queued. */
void updates_of_touched(struct pipeline *p, const struct ctr *skip);
/* That was answered, or could not be. */
void updates_told(struct pipeline *p);
void updates_untold(struct pipeline *p);

/* ---- export.c ---- */
/* Makes the data directory of a new container part of the reply. */
void export_created(struct pipeline *p, const struct ctr *ctr, struct reply *reply);
/* Writes the files of those whose data the transaction changed. */
void export_touched(struct pipeline *p, const struct ctr *skip);
void export_removed(struct pipeline *p, const struct ctr *ctr);
/* Removes what is left of containers that are gone, and writes what the others have. */
void export_clean(struct pipeline *p);

/* ---- apply.c ---- */
/* A module in one role, with the state that it kept. -ELIBBAD: the module cannot be used; -ENOENT: it is nowhere; -EINVAL: it is not of
 * that kind, or no module's name. */
int open_instance(struct pipeline *p, const char *name, uint32_t role, struct instance **ret,
		  struct err *err);

/* ---- controllers_life.c: what becomes of controllers when a configuration is put in force ---- */
bool controller_runs(const struct controller *c);
struct controller *controller_free(struct controller *c);
/* The controllers of the configuration, in its order, have looked at their sections: nothing has changed yet. Followed by
 * controllers_abort() or by controllers_switch(), after an error too. */
int controllers_prepare(struct pipeline *p, const struct conf *conf, struct err *err);
/* Required ones that do not run yet are started, those that leave are stopped, and the new list is told of containers from now on. What
 * they put back has to come before what the policy sets. Followed by controllers_abort() or by controllers_take_over(). */
int controllers_switch(struct pipeline *p, const struct conf *conf, struct err *err);
/* All is as it was before. */
void controllers_abort(struct pipeline *p);
void controllers_take_over(struct pipeline *p);

/* ---- controllers.c: what they are told, and what they say ---- */
/* Tells the running controllers that list or machine may have changed. */
void controllers_sync(struct pipeline *p);
void controllers_post_start(struct pipeline *p, struct ctr *ctr);
void controllers_post_stop(struct pipeline *p, struct ctr *ctr);
uint32_t controllers_take(const struct pipeline *p); /* RP_TAKES_… */
void controllers_timer(struct pipeline *p, struct instance *i, uint64_t cookie);
void controllers_reported(struct pipeline *p, struct instance *i, rp_ctr ctr, uint32_t result,
			  const char *text);
/* Forgets what they said of a container that is gone, or of all (0). */
void controllers_forget(struct pipeline *p, rp_ctr ctr);
void controllers_forget_all(struct controller *c);

/* ---- verify.c ---- */
int verify_init(struct pipeline *p);
void verify_fini(struct pipeline *p); /* the worker has ended before */
/* Somebody ought to look whether the kernel has what the runtime was told. */
void verify_later(struct pipeline *p, struct ctr *ctr);
/* The same where nobody has to be waited for: a container that starts has its cgroup. */
void verify_soon(struct pipeline *p, struct ctr *ctr);
/* At all that run and are pinned. */
void verify_all(struct pipeline *p);

/* ---- request.c ---- */
/* A pod that a request is about and nobody has told of before. */
int request_adopt_pod(struct pipeline *p, const struct pod_desc *desc, struct pod **ret,
		      struct err *err);

/* ---- conditions.c ---- */
void conditions_created(struct pipeline *p);
void conditions_refused(struct pipeline *p, const char *ctr, const char *why);

/* ---- persist.c ---- */
/* Notes what the transaction changed; before a reply when live containers are among it, later otherwise. */
void persist_txn(struct pipeline *p);
void persist_now(struct pipeline *p);
void persist_later(struct pipeline *p);
void persist_timer(void *arg);
void persist_quiet(void *arg);
/* The module's saved state is given back to it. */
void persist_load(struct pipeline *p, struct instance *i);

/* ---- events.c ---- */
/* Takes over what the last process has left in the log of the state directory; that there is none is no failure. */
void events_open(struct pipeline *p);
/* Writes what is not in the log yet. */
void events_log(struct pipeline *p);
void events_close(struct pipeline *p);
/* Tells of containers that the decision has degraded. */
void events_degraded(struct pipeline *p);

/* ---- state.c ---- */
/* Opens the store and fills the cache with what it has. Without a directory that can be used there is none. */
int state_open(struct pipeline *p, struct err *err);
/* What the last process has set of the machine; its directory is there. */
int state_open_settings(struct pipeline *p, struct err *err);
/* The state, as far as a check needs it: what is in dir stays as it is and nothing is ever written; what is not used is told in report. */
void state_look(struct pipeline *p, const char *dir, struct buf *report);

/* ---- config.c ---- */

/* What the files of a configuration say, read once: who tries it and who puts it in force parse the same bytes. */
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
/* That was done with what the files say: it is kept for later starts, and nothing is wrong with them any more. */
void config_accepted(struct pipeline *p, const struct conf_files *files);
/* It is what later starts use when they cannot use the files; what was kept before is the former one. */
void config_keep(struct pipeline *p, const struct conf_files *files);
/* As a reload, with other text; *files is taken over. `sum`: of what is in force and not to come back by itself. */
int config_undo(struct pipeline *p, struct conf_files *files, uint32_t sum, reload_done done,
		void *arg, struct err *err);
/* The files are not what is in force. `problems`: lines, "" when err says all. */
void config_refused(struct pipeline *p, const char *problems, const struct err *err);
void config_fini(struct pipeline *p);

/* ---- first.c ---- */
/* Reads what there is to start with. */
int first_read(struct pipeline *p, struct err *err);
/* Says where the directories are. Fails when that cannot be known, nor what else to start with. */
int first_dirs(struct pipeline *p, struct err *err);
void first_forget(struct pipeline *p);
int config_first(struct pipeline *p, struct err *err);
/* Reads and tries it, in a child; problems and warnings go to report. */
int config_check(struct pipeline *p, struct buf *report, struct err *err);

#endif
