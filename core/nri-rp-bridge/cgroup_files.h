/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the resources of a container in the files of its cgroup (v1 and v2). Resources
 * are CRI messages, the form that both sources store.
 *
 * Writes are idempotent: a file that already has the value is not written. The order is one that
 * the kernel accepts: CPUs, memory nodes, then the rest. If one write fails, the files written
 * before it get their previous values back.
 */
#pragma once

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"
#include "proto/cri.pb-c.h"

#define CGROUP_PATH_MAX 1024u

/* Formulas by which runtimes convert CPU shares to cpu.weight: older runtimes use the linear one,
 * newer ones the quadratic one. */
enum cgroup_curve { CURVE_LINEAR, CURVE_QUADRATIC };

struct cgroup_fs {
	struct fs_root root;
	bool unified; /* true: cgroup v2 */
	bool migrate; /* set cpuset.memory_migrate together with the memory nodes (v1) */
	enum cgroup_curve curve;
};

/* Finds the cgroup file systems below `root`. -ENOENT: nothing is mounted at its sys/fs/cgroup. */
int cgroup_fs_open(struct cgroup_fs *c, const char *root, struct err *err);
void cgroup_fs_close(struct cgroup_fs *c);
/* Writes the folder of a cgroup, relative to the root, to `ret`. `cgroup` is its path from the top
 * of its hierarchy, without a leading slash. False: the path is too long. */
bool cgroup_folder(const struct cgroup_fs *c, const char *controller, const char *cgroup,
		   char ret[CGROUP_PATH_MAX]);

uint64_t cgroup_weight(enum cgroup_curve curve, uint64_t shares);
/* Returns the smallest number of shares that converts to this weight. */
uint64_t cgroup_shares(enum cgroup_curve curve, uint64_t weight);

/*
 * Reads the resources from the files; 0 and "" mean that a file does not limit the resource. With
 * cgroup v1, CPUs and memory nodes are set only if they differ from those of the parent cgroup.
 * -ENOENT: the cgroup was removed.
 */
int cgroup_read(const struct cgroup_fs *c, struct arena *a, const char *cgroup,
		Cri__Resources *ret);
/*
 * Writes the resources that are set in `wanted` to the files of `cgroup`. `top`: the topmost cgroup
 * whose CPU and memory node sets may be widened for it; `cgroup` itself or one of its ancestors.
 * *ret_written: number of files that had another value; ret_written may be NULL. -ENOENT with an
 * empty err: the cgroup was removed.
 */
int cgroup_write(const struct cgroup_fs *c, struct arena *a, const char *top, const char *cgroup,
		 const Cri__Resources *wanted, unsigned *ret_written, struct err *err);
/* Returns true if the cgroup's files correspond to `shares`, the CPU shares requested from the
 * runtime. With cgroup v2 this also detects the conversion formula and sets c->curve. */
bool cgroup_has_shares(struct cgroup_fs *c, const char *cgroup, int64_t shares);
/* Returns the pid of the first process in the cgroup; 0: no process, or the cgroup was removed. */
uint32_t cgroup_process(const struct cgroup_fs *c, const char *cgroup);
/* Returns true if neither the cgroup nor a cgroup below it has a process. With cgroup v1 each child
 * cgroup is treated as having a process. */
bool cgroup_is_empty(const struct cgroup_fs *c, const char *cgroup);
