/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pipeline: what all rooms of the pipeline share, and the state of each room (room.h).
 * Private to the pipeline. Other code uses pipeline.h and the headers of the rooms.
 */
#pragma once

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
#include "core/lib/util/getter.h"
#include "core/lib/util/reclog.h"
#include "core/nri-rpd/pipeline/observe/status.h"
#include "core/nri-rpd/pipeline/request/rebalance.h"
#include "core/nri-rpd/pipeline/controllers/room.h"
#include "core/nri-rpd/pipeline/node/room.h"
#include "core/nri-rpd/pipeline/observe/room.h"
#include "core/nri-rpd/pipeline/reload/room.h"
#include "core/nri-rpd/pipeline/request/room.h"
#include "core/nri-rpd/pipeline/state/room.h"
#include "core/nri-rpd/pipeline/verify/room.h"
#include "core/nri-rpd/pipeline/wait/room.h"

struct pipeline {
	/* shared by all rooms */
	struct pipeline_config cfg;
	char *config_path;
	char state_dir[CACHE_PATH_MAX], run_dir[CACHE_PATH_MAX];
	struct host_env env; /* cache, topology, loop, worker, breadcrumb … */
	struct fs_root root;
	struct worker *disk; /* worker for fsync and clean-ups */
	struct watchdog *watchdog;
	struct loader *loader;
	struct store *store;
	struct hotplug *hotplug;
	struct conf *conf; /* the active configuration */
	struct instance *policy;
	struct txn *txn; /* the open transaction; NULL: none */
	struct runtime_state runtime;
	struct pipeline_stats stats;

	/* state of the rooms, each changed by its room's files only */
	struct requests requests;
	struct controllers controllers;
	struct waits wait;
	struct saved_state state;
	struct reloads reloads;
	struct verifier verify;
	struct observer observe;
	struct node_room node;
};

/* Returns false in a trial and after pipeline_new_alone(): nothing outside of the process is
 * changed, and nothing is recorded for users. */
static inline bool pipeline_records(const struct pipeline *p)
{
	return !p->env.trial && !p->cfg.alone;
}

/* Defines a function that reads a property of a pipeline. */
#define DEFINE_GETTER(name, type, ...)                                                             \
	DEFINE_GETTER_OF(name, type, const struct pipeline *p, __VA_ARGS__)
/* Defines a step of a decision, for decide(), by one expression. */
#define DECISION_STEP(name, ...)                                                                   \
	static int name(struct pipeline *p, void *arg, struct err *err)                            \
	{                                                                                          \
		return __VA_ARGS__;                                                                \
	}
/* Evaluates a call of modules, with an int as its result, within the time limit of the watchdog. */
#define WATCHED(p, call)                                                                           \
	__extension__({                                                                            \
		watchdog_begin((p)->watchdog);                                                     \
		int watched_ = (call);                                                             \
		watchdog_end((p)->watchdog);                                                       \
		watched_;                                                                          \
	})
