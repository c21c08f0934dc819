/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdt.so: cache ways and memory bandwidth of containers by the kernel's resctrl file system.
 *
 *	machine.c	what there is: levels, masks, ids, from info/ and the root group's schemata
 *	parse.c		the section: partitions and classes with their shares, as written
 *	resolve.c	shares → masks of this machine, the schemata text of every class
 *	groups.c	[worker] directories and schemata of resctrl, and which of them are ours
 *	assign.c	[worker] all tasks of a container into a group; monitoring groups
 *	rdt.c		the module: which class a container has, what to do when
 *
 * Groups are directories nri-rp.CLASS. Only those are ever made, written or removed, and of those
 * that no class has any more only what is in the record that is kept with the daemon's state (or
 * everything with the prefix when `force` is set).
 */
#ifndef RDT_H
#define RDT_H

#include <stdbool.h>

#include "modules/lib/ctl_file.h"
#include "modules/lib/ctl_queue.h"
#include "modules/lib/ctl_table.h"

#define RDT_PREFIX "nri-rp."
#define RDT_ROOT_CLASS "system/default"
#define RDT_IDS_MAX 128u /* cache ids of a level */
#define RDT_CLASSES_MAX 128u /* of all partitions; hardware has 4 to 64 */
#define RDT_NAME_MAX 128u /* bytes of a class or partition name, with its NUL */
#define RDT_PATH_MAX 512u
#define RDT_SCHEMATA_MAX 16384u

/* ---- the machine ----------------------------------------------------------------------------- */

enum rdt_level { RDT_L2, RDT_L3, RDT_N_LEVELS };
enum rdt_part { RDT_UNIFIED, RDT_CODE, RDT_DATA, RDT_N_PARTS };

struct rdt_cache {
	bool present, cdp;
	uint64_t mask; /* all ways */
	uint32_t width, min_bits;
	uint32_t n_ids, ids[RDT_IDS_MAX];
};

struct rdt_machine {
	char root[RDT_PATH_MAX]; /* the mount point */
	struct rdt_cache cache[RDT_N_LEVELS];
	struct {
		bool present, mbps; /* mbps: the unit is MBps */
		uint32_t min, n_ids, ids[RDT_IDS_MAX];
	} mb;
	uint32_t num_closids; /* 0: not known */
	bool monitors;
};

/* -RP_ENOTSUP: no resctrl, fail() says why; another -errno: it cannot be read. */
int32_t rdt_machine_read(const struct modhost *h, struct rdt_machine *ret);
const char *rdt_level_name(enum rdt_level level);

/* ---- shares ---------------------------------------------------------------------------------- */

enum rdt_form { RDT_NOTHING, RDT_PERCENT, RDT_MASK };

struct rdt_share {
	enum rdt_form form;
	uint32_t low, high; /* percent; low 0 and high N unless a range was given */
	bool range;
	uint64_t mask;
};

struct rdt_entry {
	bool all;
	uint64_t ids[RDT_IDS_MAX / 64];
	struct rdt_share part[RDT_N_PARTS]; /* of a cache */
	uint32_t percent, mbps; /* of bandwidth; UINT32_MAX: not given */
	rp_cfg node;
};

struct rdt_alloc { /* one key …Allocation */
	bool given;
	struct rdt_entry *entries;
	uint32_t n;
	rp_cfg node;
};

#define RDT_MB RDT_N_LEVELS
struct rdt_shares {
	struct rdt_alloc alloc[RDT_N_LEVELS + 1]; /* by level, then RDT_MB */
};

struct rdt_partition {
	char name[RDT_NAME_MAX];
	struct rdt_shares shares;
	rp_cfg node;
};

struct rdt_class {
	char name[RDT_NAME_MAX];
	uint32_t partition;
	struct rdt_shares shares;
	rp_cfg node;
	char *schemata; /* by rdt_resolve */
};

enum rdt_monitoring { RDT_MONITOR_OFF, RDT_MONITOR_CLASSES, RDT_MONITOR_CONTAINERS };

struct rdt_config {
	bool enable, discovery, force, qos_default;
	bool optional[RDT_N_LEVELS + 1];
	enum rdt_monitoring monitoring;
	struct rdt_partition *partitions;
	uint32_t n_partitions;
	struct rdt_class *classes;
	uint32_t n_classes;
};

/* Errors go through fail_at(). What was read before an error is in *ret all the same:
 * rdt_config_fini. */
int32_t rdt_config_read(const struct modhost *h, rp_cfg cfg, struct rdt_config *ret);
void rdt_config_fini(struct rdt_config *c);
/* The class of a configuration, or NULL. */
const struct rdt_class *rdt_config_class(const struct rdt_config *c, const char *name);
bool rdt_is_root(const char *class);

/* Text of a share, for tests and messages of its own; `who` is what is being read. */
int32_t rdt_share_parse(const char *text, bool range_allowed, struct rdt_share *ret);

/* Fills every class's schemata. -RP_EINVAL: it cannot be; -RP_ENOTSUP: this machine has no such
 * thing. */
int32_t rdt_resolve(const struct modhost *h, struct rdt_config *c, const struct rdt_machine *m);

/* ---- groups: [worker] ------------------------------------------------------------------------ */

/* What the kernel ought to have, handed from the main thread to the worker. */
struct rdt_want {
	char name[RDT_NAME_MAX]; /* class */
	char *schemata; /* NULL: not ours to write */
};

struct rdt_group {
	char name[RDT_NAME_MAX];
	bool there, right; /* the directory; its schemata */
	char why[CTL_TEXT_MAX]; /* when one of the two is missing */
};

struct rdt_groups {
	const struct modhost *h;
	char root[RDT_PATH_MAX];
	bool discovery;
	struct rdt_group *list;
	uint32_t n;
	uint32_t n_writes, n_failures;
};

/* The directory of a class's group: the root group for "", the class's name as it is when groups
 * are others' (discovery). */
int32_t rdt_group_dir(const struct rdt_groups *g, const char *class, char *buf, size_t size);
const struct rdt_group *rdt_group_of(const struct rdt_groups *g, const char *class);

struct rdt_names {
	char (*list)[RDT_NAME_MAX];
	uint32_t n;
};
int32_t rdt_names_add(struct rdt_names *names, const char *name);
bool rdt_names_has(const struct rdt_names *names, const char *name);
void rdt_names_fini(struct rdt_names *names);

struct rdt_setup {
	struct rdt_want *want;
	uint32_t n_want;
	struct rdt_names
		owned; /* the record, without what is wanted; on return what of it is still there */
	bool force, discovery;
	char root[RDT_PATH_MAX];
	uint32_t n_made; /* groups that were not usable before and are now */
	uint32_t n_failed;
	char text[CTL_TEXT_MAX]; /* the first failure, or what was left alone */
};

/* Removes what nobody wants any more, makes what is missing, writes what differs. */
void rdt_groups_set_up(struct rdt_groups *g, struct rdt_setup *s);
void rdt_groups_fini(struct rdt_groups *g);
/* Are the lines of `want` what `have` says? Numbers count, not how they are written. */
bool rdt_schemata_equal(const char *have, const char *want);

/* ---- containers: [worker] -------------------------------------------------------------------- */

struct rdt_assign {
	struct ctl_item item;
	char *ref; /* of its cgroup */
	char class[RDT_NAME_MAX]; /* "": the root group */
	char monitor[RDT_NAME_MAX]; /* name of the monitoring group; "": none */
	char former[RDT_NAME_MAX]; /* class whose monitoring group is given up; = class: none */
	bool known; /* false: the class is not configured */
	/* nobody asked for the class: without a group it is the root group's, and that is no
	 * failure */
	bool mild;
	bool gone; /* the container has ended: its monitoring group goes, too */
	uint32_t n_moved;
};

void rdt_assign_run(struct rdt_groups *g, struct rdt_assign *a);

/* One line of monitoring data. */
struct rdt_reading {
	char class[RDT_NAME_MAX], monitor[RDT_NAME_MAX];
	uint32_t cache_id;
	bool has[3]; /* occupancy, local, total */
	uint64_t value[3]; /* bytes */
};

struct rdt_readings {
	struct rdt_reading *list;
	uint32_t n, cap;
};

/* Reads what all groups of ours have; a file that has nothing to say is left out. */
void rdt_monitor_read(const struct rdt_groups *g, struct rdt_readings *ret);
/* Removes monitoring groups with our prefix that are in none of `keep`. */
void rdt_monitor_sweep(const struct rdt_groups *g, const struct rdt_names *keep);

#endif
