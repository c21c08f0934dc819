/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.so: when the kernel begins to reclaim a container's memory, whether it may swap, and how
 * much of the fastest memory it may keep.
 *
 *	config.c	the section
 *	qos.c		what a container's class and annotations come to
 *	apply.c		[worker] values into files of a cgroup
 *	pages.c		[worker] a part of a container's pages to other nodes
 *	migrate.c	which containers' pages are on their way, and how fast
 *	memory.c	the module
 *
 * On cgroup v2 values go to the runtime with the container's creation, so that they are there
 * before its first instruction; what changes later, and everything on v1, is written here.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>

#include <nri-rp/controller.h>

#include "modules/lib/ctl_file.h"
#include "modules/lib/ctl_queue.h"
#include "modules/lib/ctl_table.h"

#define MEMORY_CLASSES_MAX 256u
#define MEMORY_FILES_MAX 32u
#define MEMORY_FILE_MAX 64u /* bytes of a file's name, with its NUL */
#define MEMORY_VALUE_MAX 64u
#define MEMORY_PAGE 4096
/* Only some kernels have it; on both versions of cgroups, and -1 is no limit. */
#define MEMORY_TOPTIER_FILE "memory.toptier_soft_limit_in_bytes"

struct memory_class {
	char name[CTL_CLASS_MAX];
	double swap_ratio; /* the part of the limit that may be swapped out */
};

struct memory_config {
	bool enable, qos_default;
	struct memory_class *classes;
	uint32_t n_classes;
	char files[MEMORY_FILES_MAX][MEMORY_FILE_MAX]; /* that annotations may set */
	uint32_t n_files;
	bool migrate;
	uint64_t migrate_rate; /* bytes a second */
};

int32_t memory_config_read(const struct modhost *h, rp_cfg cfg, struct memory_config **ret);
void memory_config_free(struct memory_config *c);

struct memory_value {
	char file[MEMORY_FILE_MAX], text[MEMORY_VALUE_MAX];
};

struct memory_values {
	struct memory_value list[MEMORY_FILES_MAX + 1];
	uint32_t n;
	bool toptier; /* one of them is a limit of the top tier */
	char class[CTL_CLASS_MAX]; /* "": none */
	char why[CTL_TEXT_MAX]; /* why it cannot be */
};

/* What a container is to get; -RP_EINVAL and ret->why when that cannot be. v1: the files of cgroup
 * v1 that come closest. */
int32_t memory_values_of(const struct modhost *h, const struct memory_config *c, rp_ctr ctr,
			 bool v1, struct memory_values *ret);

/* Adds what an adjustment says of the top tier, whatever else is in the way. */
void memory_toptier_of(const struct modhost *h, rp_ctr ctr, struct memory_values *ret);
/* Adds a value, unless there is one for that file. */
void memory_values_add(struct memory_values *v, const char *file, const char *text);

struct memory_item {
	struct ctl_item item;
	uint32_t serial, tier_serial;
	char *ref;
	struct memory_values values;
	uint32_t n_writes;
};

void memory_apply(const struct modhost *h, struct memory_item *item);

/* ---- pages ----------------------------------------------------------------------------------- */

#define MEMORY_MOVE_MAX 8192u /* pages that one step moves at most … */
#define MEMORY_LOOK_MAX 65536u /* … and looks at */
#define MEMORY_EMPTY_MAX                                                                           \
	(UINT64_C(1)                                                                               \
	 << 24) /* after so many in a row that are not there (64 GiB) a mapping is left */

enum memory_move { MEMORY_MOVE_ON, MEMORY_MOVE_DONE, MEMORY_MOVE_TOO_EARLY };

/* One step: pages of a container that are on other nodes, from a place on. */
struct memory_step {
	struct ctl_item
		item; /* about no container: the result is told by whoever makes steps of it */
	uint64_t serial; /* of the migration that it is a step of */
	char *ref;
	struct rp_idset nodes; /* where they ought to be */
	uint32_t pid; /* where to go on: this process … */
	uint64_t addr; /* … from this address on; both are moved on */
	/* pages before it, in the same mapping, that are not there; moved on as well */
	uint64_t n_empty;
	uint32_t budget; /* pages, at most MEMORY_MOVE_MAX */
	enum memory_move outcome;
	uint64_t n_moved, n_shared,
		n_left; /* pages; shared ones stay, left: the kernel would not move them */
	uint32_t n_sparse; /* mappings that were left */
	/* -errno of the last that was left, or of a process that could not be touched */
	int32_t why;
};

void memory_step_run(const struct modhost *h, struct memory_step *s);
/* A line of /proc/PID/maps: where its pages are. False: it makes no sense, or has none that can be
 * moved. */
bool memory_map_line(const char *line, uint64_t *ret_start, uint64_t *ret_end);

#define MEMORY_MOVE_COOKIE UINT64_C(0x9a9e5)

struct memory_migrations;

struct memory_migrations *memory_migrations_new(const struct modhost *h, struct ctl_queue *queue,
						uint32_t kind);
void memory_migrations_free(struct memory_migrations *m);
/* Its memory nodes have changed. -RP_ENOMEM. */
int32_t memory_migrate(struct memory_migrations *m, const struct memory_config *c, rp_ctr ctr);
void memory_migrate_forget(struct memory_migrations *m, rp_ctr ctr);
void memory_migrate_timer(struct memory_migrations *m, const struct memory_config *c);
/* A step has ended; frees it. */
void memory_migrate_done(struct memory_migrations *m, const struct memory_config *c,
			 struct memory_step *s, bool ran);
void memory_migrate_collect(const struct memory_migrations *m, const struct rp_metric_sink *sink);

#endif
