/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's cgroup as files: what it has, and what it is to have. Resources are written as
 * CRI has them, which is what both sources keep.
 *
 * Writes are idempotent: what a file says already is not written. They go in an order that the
 * kernel takes, CPUs before memory nodes before the rest, and all of them or none: when one fails,
 * what the files said before is written back.
 */
#ifndef NRI_RP_BRIDGE_CGROUP_FILES_H
#define NRI_RP_BRIDGE_CGROUP_FILES_H

#include <stdbool.h>

#include "core/lib/util/arena.h"
#include "core/lib/util/err.h"
#include "core/lib/util/fs.h"
#include "proto/cri.pb-c.h"

#define CGROUP_PATH_MAX 1024u

/* How a runtime makes cpu.weight of CPU shares: all of them once, and newer ones. */
enum cgroup_curve { CURVE_LINEAR, CURVE_QUADRATIC };

struct cgroup_fs {
	struct fs_root root;
	bool unified; /* cgroup v2 */
	bool migrate; /* cpuset.memory_migrate is set with the memory nodes (v1) */
	enum cgroup_curve curve;
};

/* -ENOENT: nothing is mounted below its sys/fs/cgroup. */
int cgroup_fs_open(struct cgroup_fs *c, const char *root, struct err *err);
void cgroup_fs_close(struct cgroup_fs *c);
/* The folder of a cgroup, named from the top of its hierarchy without a leading slash; below the
 * root. False: too long. */
bool cgroup_folder(const struct cgroup_fs *c, const char *controller, const char *cgroup,
		   char ret[CGROUP_PATH_MAX]);

uint64_t cgroup_weight(enum cgroup_curve curve, uint64_t shares);
/* The shares that have this weight; several have: the least. */
uint64_t cgroup_shares(enum cgroup_curve curve, uint64_t weight);

/*
 * What the files say; 0 and "" where they say nothing. CPUs and memory nodes are told when they are
 * others than those of the cgroup around it. -ENOENT: it has gone.
 */
int cgroup_read(const struct cgroup_fs *c, struct arena *a, const char *cgroup,
		Cri__Resources *ret);
/*
 * `cgroup` is to have what is set in `wanted`; `top`: the cgroup from which on the ones around it
 * may be widened, its own or that of a parent. *ret_written: how many files said something else;
 * NULL is fine. -ENOENT without a word in err: it has gone.
 */
int cgroup_write(const struct cgroup_fs *c, struct arena *a, const char *top, const char *cgroup,
		 const Cri__Resources *wanted, unsigned *ret_written, struct err *err);
/* The runtime was asked for these shares, and its files say so; with v2 they show the curve. */
bool cgroup_has_shares(struct cgroup_fs *c, const char *cgroup, int64_t shares);
/* The first process that is in it; 0: none, or it has gone. */
uint32_t cgroup_process(const struct cgroup_fs *c, const char *cgroup);
/* No process is in it or below. */
bool cgroup_is_empty(const struct cgroup_fs *c, const char *cgroup);

#endif
