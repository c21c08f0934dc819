/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift: other programs that change CPUs, memory nodes or amounts (amounts.h) of containers that
 * the daemon has placed. The cgroups of such containers are watched with inotify, so that no work
 * is done while they are unchanged. A difference is repaired through the runtime, with growing
 * delays while it recurs, and the likely culprit is reported.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/set.h>

#include "core/lib/util/fs.h"
#include "core/lib/util/hash.h"
#include "core/lib/util/loop.h"

struct ctr;
struct pipeline;
struct watch;

enum culprit {
	CULPRIT_UNKNOWN,
	CULPRIT_KUBELET, /* the kubelet, whose CPU manager is static */
	CULPRIT_RUNC, /* runc version that reverses the bytes of sets */
	CULPRIT_SYSTEMD,
	CULPRIT_TUNED,
	CULPRIT_CGRULES,
	CULPRIT_RESET, /* program that sets all CPUs */
	N_CULPRITS
};
const char *culprit_text(enum culprit c);
const char *culprit_hint(enum culprit c);

#define DRIFT_NAME_MAX 192u

struct drift_stats {
	bool watching;
	unsigned n_watched; /* watched cgroup directories */
	uint64_t found; /* number of detected differences */
	uint64_t by[N_CULPRITS];
	char last[N_CULPRITS][DRIFT_NAME_MAX]; /* last container, by culprit */
};
void pipeline_drift(const struct pipeline *p, struct drift_stats *ret);

/* ---- within the pipeline --------------------------------------------------------------------- */

struct drift {
	int fd; /* inotify descriptor; -1: none */
	struct loop_io *io;
	struct watch *watches; /* by watch descriptor */
	bool missed; /* an event was read whose watch is not registered yet */
	struct drift_stats stats;
};

/* Traces of other programs that write cpusets. Searched at the first difference of a check, because
 * there may be thousands of containers and processes. */
struct drift_traces {
	bool known;
	bool kubelet; /* the kubelet uses a static CPU manager */
	enum culprit running; /* running program; CULPRIT_UNKNOWN: none found */
};

/* Watches a directory. Returns 0 if that failed. Runs on the worker. */
int drift_watch(int fd, int dir);
/* Returns the likely culprit of `found` instead of `expected`. Runs on the worker. `traces`: of
 * this check, zeroed before the first call. `is_all`: found are all CPUs. */
enum culprit drift_blame(const struct fs_root *root, struct drift_traces *traces,
			 const char *cgroups_path, struct rp_ids expected, struct rp_ids found,
			 bool is_all);
/* Reverses the bytes of a set. Returns false if the set is empty or fits in one byte. */
bool drift_swap_bytes(struct rp_ids set, struct rp_idset *ret);

int drift_init(struct pipeline *p);
void drift_fini(struct pipeline *p);
/* Watched directories; with cgroup v2 all are the same one. */
enum { DRIFT_CPUSET, DRIFT_CPU, DRIFT_MEMORY, N_DRIFT_DIRS };
/* Assigns a watch to a container. */
void drift_watched(struct pipeline *p, struct ctr *ctr, unsigned dir, int watch);
/* Removes the watches of a container that was removed or is not pinned any more. */
void drift_forget(struct pipeline *p, struct ctr *ctr);
/* Removes watches of containers whose end was not reported. */
void drift_sweep(struct pipeline *p);
/* Counts a difference. */
void drift_note(struct pipeline *p, const struct ctr *ctr, enum culprit culprit);
