/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.so: memory settings of containers: the amount from which the kernel reclaims, the
 * permission to swap, and the amount of the fastest memory tier.
 *
 *	config.c	the section
 *	qos.c		values from a container's class and annotations
 *	apply.c		[worker] values into files of a cgroup
 *	pages.c		[worker] migration of a part of a container's pages
 *	migrate.c	the containers whose pages are migrated, and the rate
 *	memory.c	the module
 *
 * On cgroup v2 values are sent to the runtime at creation, so that they are effective before the
 * container's first instruction. Later changes, and all values on v1, are written here.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/ctl_life.h>

#define MEMORY_CLASSES_MAX 256u
#define MEMORY_FILES_MAX 32u
#define MEMORY_FILE_MAX 64u /* limit of a file name, with its NUL */
#define MEMORY_VALUE_MAX 64u
#define MEMORY_PAGE 4096
/* Present only in some kernels, with both versions of cgroups; -1 means no limit. */
#define MEMORY_TOPTIER_FILE "memory.toptier_soft_limit_in_bytes"

struct memory_class {
	char name[CTL_CLASS_MAX];
	double swap_ratio; /* part of the memory limit that may be swapped out */
};

struct rp_plan {
	CTL_PLAN;
	bool v1; /* true: the cgroup tree is v1 */
	bool qos_default;
	struct memory_class *classes;
	uint32_t n_classes;
	char files[MEMORY_FILES_MAX][MEMORY_FILE_MAX]; /* files that annotations may set */
	uint32_t n_files;
	bool migrate;
	uint64_t migrate_rate; /* speed limit of migrations, in bytes per second */
};

int32_t memory_config_read(const struct modhost *h, rp_cfg cfg, struct rp_plan *ret);
void memory_config_fini(struct rp_plan *p);

struct memory_value {
	char file[MEMORY_FILE_MAX], text[MEMORY_VALUE_MAX];
};

struct memory_values {
	struct memory_value list[MEMORY_FILES_MAX + 1];
	uint32_t n;
	bool toptier; /* `list` contains a top-tier limit */
	char class[CTL_CLASS_MAX]; /* class of the container; "": none */
	char why[CTL_TEXT_MAX]; /* why the values are not possible */
};

/* Determines the values of a container. -RP_EINVAL with ret->why: they are not possible. On cgroup
 * v1 the nearest equivalent files are used. */
int32_t memory_values_of(const struct modhost *h, const struct rp_plan *c,
			 const struct rp_ctr_info *info, struct memory_values *ret);

/* Adds the top-tier limit of an adjustment, also if the other values are not possible. */
void memory_toptier_of(const struct modhost *h, rp_ctr ctr, struct memory_values *ret);
/* Adds a value, unless the file has one already. */
void memory_values_add(struct memory_values *v, const char *file, const char *text);

struct memory_item {
	struct ctl_item item;
	uint32_t tier_serial;
	struct memory_values values;
};

void memory_apply(const struct modhost *h, struct memory_item *item);

/* ---- pages ----------------------------------------------------------------------------------- */

#define MEMORY_MOVE_MAX 8192u /* largest number of pages that one step moves */
#define MEMORY_LOOK_MAX 65536u /* largest number of pages that one step checks */
#define MEMORY_EMPTY_MAX                                                                           \
	(UINT64_C(1)                                                                               \
	 << 24) /* after so many absent pages in a row (64 GiB) a step leaves a mapping */

enum memory_move { MEMORY_MOVE_ON, MEMORY_MOVE_DONE, MEMORY_MOVE_TOO_EARLY };

/* A step of a migration: moves pages of a container to its memory nodes, from a position on. */
struct memory_step {
	/* with ctr 0: migrate.c reports the results, not the queue */
	struct ctl_item item;
	uint64_t serial; /* number of the migration */
	struct rp_idset nodes; /* target nodes of the migration */
	uint32_t pid; /* position of the step: process */
	uint64_t addr; /* position of the step: address; memory_step_run() advances both */
	/* number of absent pages directly before the position in its mapping; memory_step_run()
	 * updates it */
	uint64_t n_empty;
	uint32_t budget; /* pages to move, at most MEMORY_MOVE_MAX */
	enum memory_move outcome;
	/* pages; shared ones are not moved, n_left: refused by the kernel */
	uint64_t n_moved, n_shared, n_left;
	uint32_t n_sparse; /* mappings left because of absent pages */
	/* -errno of the last refused page, or of an inaccessible process */
	int32_t why;
};

void memory_step_run(const struct modhost *h, struct memory_step *s);
/* Parses a line of /proc/PID/maps and stores the range of its pages. False: malformed, or
  * pages that cannot be moved. */
bool memory_map_line(const char *line, uint64_t *ret_start, uint64_t *ret_end);

#define MEMORY_MOVE_COOKIE UINT64_C(0x9a9e5)

struct memory_migrations;

struct memory_migrations *memory_migrations_new(struct rp_instance *inst, const struct modhost *h,
						uint32_t kind);
void memory_migrations_free(struct memory_migrations *m);
/* Starts or restarts the migration of a container whose memory nodes have changed. -RP_ENOMEM. */
int32_t memory_migrate(struct memory_migrations *m, const struct rp_plan *c, rp_ctr ctr);
void memory_migrate_forget(struct memory_migrations *m, rp_ctr ctr);
void memory_migrate_timer(struct memory_migrations *m, const struct rp_plan *c);
/* Handles the end of a step. */
void memory_migrate_done(struct memory_migrations *m, const struct rp_plan *c,
			 const struct memory_step *s, bool ran);
void memory_migrate_collect(const struct memory_migrations *m, const struct rp_metric_sink *sink);
