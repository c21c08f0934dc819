/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline itself, which the files of all its rooms share. */
#ifndef PIPELINE_INTERNAL_H
#define PIPELINE_INTERNAL_H

#include "core/nri-rpd/pipeline/reload/proposal.h"
#include "core/nri-rpd/pipeline/node/speedselect.h"
#include "core/nri-rpd/pipeline/reload/recover.h"
#include "core/nri-rpd/pipeline/reload/undo.h"
#include "core/nri-rpd/pipeline/observe/conditions.h"
#include "core/nri-rpd/pipeline/verify/drift.h"
#include "core/nri-rpd/pipeline/observe/events.h"
#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/verify/verify.h"
#include "core/nri-rpd/pipeline/node/cluster.h"
#include "core/nri-rpd/pipeline/node/feed.h"
#include "core/nri-rpd/pipeline/pipeline.h"
#include "core/nri-rpd/pipeline/wait/admit.h"
#include "core/nri-rpd/pipeline/controllers/controllers.h"
#include "core/nri-rpd/pipeline/request/decide.h"
#include "core/nri-rpd/pipeline/wait/devices.h"
#include "core/nri-rpd/pipeline/wait/hold.h"
#include "core/nri-rpd/pipeline/state/persist.h"
#include "core/nri-rpd/pipeline/wait/plugins.h"
#include "core/lib/util/reclog.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"

/* Creations that were refused, since one was not; by different containers. */
struct refusals {
	unsigned n, who[REFUSED_IN_A_ROW]; /* hashes of their names */
	char last[ERR_TEXT_MAX]; /* why */
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
	bool state_may_come; /* that of the state may be usable later */
	struct hotplug *hotplug;

	struct conf *conf;
	uint64_t conf_generation;
	char config_error[ERR_TEXT_MAX]; /* of the last reload, or start; "" when it was accepted */
	char *config_problems; /* all that is wrong then, lines; NULL with no error */
	/* what is in force was kept, and in force at that time; 0: it is of the files */
	uint64_t kept_ns;
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

	struct hold hold;
	/* the running request */
	enum request request;
	uint64_t request_ns;
	struct txn *txn;
	/* puts back what the running request changed outside of its transaction; NULL: nothing */
	void (*undo_request)(struct pipeline *p, void *arg);
	void *undo_request_arg;

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
	struct runtime_facts told; /* of the one that has synchronised last */
	struct pipeline_stats stats;
	struct usage_stats usage;
	struct devices *devices; /* NULL: the kubelet is not asked */
	struct plugins plugins; /* plugins.h */
	struct noderes *noderes; /* noderes.c */
	struct evictions *evictions; /* evict.c */
	struct adjustments *adjustments; /* adjust.c: of p->conf; NULL: none */
	uint64_t started_ns;
	/* the restored decisions are those of another policy than the configured one */
	bool other_policy;
	bool sync_failed;
	/* the policy has not placed the containers of the runtime: all that have no CPUs are
	 * confined (confine.c) */
	bool confine_unpinned;
	bool stopping; /* no trial is started any more */
	/* Perhaps a container runs that nobody has pinned; perhaps one is confined (confine.c).
	 * Only ever too true. */
	bool loose, confining;
	struct refusals refusals;
	char unserved[N_SERVICES][CONDITION_TEXT_MAX]; /* why; "" */
	bool warned_kubelet;
	uint32_t sync_mark;

	struct undo undo;
	struct recovery recovery;
	struct conf_files pushed; /* pushed.h */
	struct feed_counts feed; /* feed.h */
	struct admit_counts admit;
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

#endif
