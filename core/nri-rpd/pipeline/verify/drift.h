/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else rewrites the CPUs or memory nodes of a container that we pinned, or the amounts
 * that we gave it (amounts.h). The kernel tells: the cgroups of each such container are watched
 * (inotify), so that nothing wakes up as long as nobody writes there. What is found is put back
 * through the runtime, later and later while it goes on, and whoever it may have been is named.
 */
#ifndef PIPELINE_DRIFT_H
#define PIPELINE_DRIFT_H

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
	CULPRIT_KUBELET, /* its static CPU manager */
	CULPRIT_RUNC, /* one that turns bytes around */
	CULPRIT_SYSTEMD,
	CULPRIT_TUNED,
	CULPRIT_CGRULES,
	CULPRIT_RESET, /* somebody who gives all CPUs */
	N_CULPRITS
};
const char *culprit_text(enum culprit c);
const char *culprit_hint(enum culprit c);

#define DRIFT_NAME_MAX 192u

struct drift_stats {
	bool watching;
	unsigned n_watched; /* containers */
	uint64_t found; /* times that a container had other CPUs, nodes or amounts than given */
	uint64_t by[N_CULPRITS];
	char last[N_CULPRITS][DRIFT_NAME_MAX]; /* the last container it was found for */
};
void pipeline_drift(const struct pipeline *p, struct drift_stats *ret);

/* ---- for the pipeline ------------------------------------------------------------------------ */

struct drift {
	int fd; /* of inotify; -1: there is none */
	struct loop_io *io;
	struct watch *watches; /* by descriptor */
	bool missed; /* an event of a watch that is not known yet */
	struct drift_stats stats;
};

/* What others leave that write cpusets. Looked for at the first container of a look that has
 * something else than it should: there may be thousands of both, containers and processes. */
struct drift_traces {
	bool known;
	bool kubelet; /* its CPU manager is a static one */
	enum culprit running; /* CULPRIT_UNKNOWN: nobody known to do so */
};

/* [worker] Watches the directory; 0: it is not watched. */
int drift_watch(int fd, int dir);
/* [worker] Who may have made `found` of `expected`. `traces`: of this look, all zero before the
 * first. `is_all`: it is all CPUs that there are. */
enum culprit drift_blame(const struct fs_root *root, struct drift_traces *traces,
			 const char *cgroups_path, struct rp_ids expected, struct rp_ids found,
			 bool is_all);
/* The set whose bytes are in the opposite order; false: it needs one byte only, or is empty. */
bool drift_swap_bytes(struct rp_ids set, struct rp_idset *ret);

int drift_init(struct pipeline *p);
void drift_fini(struct pipeline *p);
/* The directories that are watched; with cgroup v2 all of them are one. */
enum { DRIFT_CPUSET, DRIFT_CPU, DRIFT_MEMORY, N_DRIFT_DIRS };
/* The watch is the container's from now on. */
void drift_watched(struct pipeline *p, struct ctr *ctr, unsigned dir, int watch);
/* Stops watching a container that is gone or not pinned any more. */
void drift_forget(struct pipeline *p, struct ctr *ctr);
/* Containers that are gone without a word. */
void drift_sweep(struct pipeline *p);
void drift_note(struct pipeline *p, const struct ctr *ctr, enum culprit culprit);

#endif
