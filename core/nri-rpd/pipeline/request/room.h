/* SPDX-License-Identifier: Apache-2.0 */
/* State that only the request room changes: the running request, and data of later steps of
 * decisions. */
#pragma once

#include "core/nri-rpd/pipeline/observe/observe.h"
#include "core/nri-rpd/pipeline/request/decide.h"

struct adjustments; /* adjust.c */

struct requests {
	enum request kind; /* kind of the running request */
	uint64_t began_ns;
	/* sandbox that the running request ends, or whose container it ends; 0: none */
	rp_pod ended;
	/* restores the values that the running request changed outside of its transaction; NULL:
	 * there are none */
	void (*undo)(struct pipeline *p, void *arg);
	void *undo_arg;
	struct updates updates;
	struct loop_timer *rebalance_timer;
	struct runtime_facts last_synced; /* facts of the runtime that synchronized last */
	struct usage_stats usage;
	/* the restored decisions were made by another policy than the configured one */
	bool other_policy;
	bool sync_failed;
	/* An unpinned container may be running; a confined one may exist (confine.c). False is
	 * certain, true is a possibility. */
	bool maybe_unpinned, maybe_confined;
	bool warned_kubelet;
	uint32_t sync_mark; /* mark of pods and containers listed by the current Synchronize */
	struct adjustments *adjustments; /* adjustments of the active configuration; NULL: none */
};
