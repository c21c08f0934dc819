/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdt.so: cache ways and memory bandwidth of containers, by the kernel's resctrl file system.
 *
 *	machine.c	capabilities: levels, masks, ids, from info/ and the root group's schemata
 *	parse.c		the section: partitions and classes with their shares, as written
 *	resolve.c	shares → masks of this machine, and the schemata text of each class
 *	groups.c	[worker] directories and schemata of resctrl; the record of groups
 *	assign.c	[worker] all tasks of a container into a group; monitoring groups
 *	monitor.c	[worker] counters of groups and monitoring groups
 *	rdt.c		the module: classes of containers, hooks, figures, metrics
 *
 * Groups are directories nri-rp.CLASS. The module creates, writes and removes only these. Of groups
 * without a class it removes only those in the record, which is saved with the daemon's state (with
 * `force`: all with the prefix).
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/ctl_life.h>

#define RDT_PREFIX "nri-rp."
#define RDT_ROOT_CLASS "system/default"
#define RDT_IDS_MAX 128u /* largest number of cache ids of a level */
/* largest number of classes in all partitions; hardware has 4 to 64 classes */
#define RDT_CLASSES_MAX 128u
#define RDT_NAME_MAX 128u /* limit of the name of a class or partition, with its NUL */
#define RDT_PATH_MAX 512u
#define RDT_SCHEMATA_MAX 16384u

/* ---- machine --------------------------------------------------------------------------------- */

enum rdt_level { RDT_L2, RDT_L3, RDT_N_LEVELS };
enum rdt_part { RDT_UNIFIED, RDT_CODE, RDT_DATA, RDT_N_PARTS };

struct rdt_cache {
	bool present, cdp;
	uint64_t mask; /* mask of all ways of the cache */
	uint32_t width, min_bits;
	uint32_t n_ids, ids[RDT_IDS_MAX];
};

struct rdt_machine {
	char root[RDT_PATH_MAX]; /* mount point of resctrl */
	struct rdt_cache cache[RDT_N_LEVELS];
	struct {
		bool present, mbps; /* mbps: the unit is MBps instead of percent */
		uint32_t min, n_ids, ids[RDT_IDS_MAX];
	} mb;
	uint32_t num_closids; /* number of classes that the hardware supports; 0: unknown */
	bool monitors;
};

/* Reads the capabilities. -RP_ENOTSUP: there is no resctrl, fail() has the reason; another -errno:
 * it cannot be read. */
int32_t rdt_machine_read(const struct modhost *h, struct rdt_machine *ret);
const char *rdt_level_name(enum rdt_level level);

/* ---- shares ---------------------------------------------------------------------------------- */

enum rdt_form { RDT_NOTHING, RDT_PERCENT, RDT_MASK };

struct rdt_share {
	enum rdt_form form;
	uint32_t low, high; /* percent; low is 0 and high the value unless a range was configured */
	bool range;
	uint64_t mask;
};

struct rdt_entry {
	bool all;
	uint64_t ids[RDT_IDS_MAX / 64];
	struct rdt_share part[RDT_N_PARTS]; /* shares of a cache, by part */
	uint32_t percent, mbps; /* shares of bandwidth; UINT32_MAX: not configured */
	rp_cfg node;
};

struct rdt_alloc { /* a key …Allocation */
	bool given;
	struct rdt_entry *entries;
	uint32_t n;
	rp_cfg node;
};

#define RDT_MB RDT_N_LEVELS
struct rdt_shares {
	struct rdt_alloc alloc[RDT_N_LEVELS + 1]; /* allocations by level, and RDT_MB */
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
	char *schemata; /* text for the group's schemata, set by rdt_resolve() */
	int64_t max_claims; /* number of claims that may have the class; 0: none */
};

enum rdt_monitoring {
	RDT_MONITOR_OFF,
	RDT_MONITOR_CLASSES,
	RDT_MONITOR_CONTAINERS,
	RDT_MONITOR_PODS
};

struct rdt_config {
	bool discovery, force, qos_default;
	bool optional[RDT_N_LEVELS + 1];
	enum rdt_monitoring monitoring;
	struct rdt_partition *partitions;
	uint32_t n_partitions;
	struct rdt_class *classes;
	uint32_t n_classes;
};

/* Reads the section. Errors go through fail_at(). After an error *ret contains what was read
 * before, which the caller frees with rdt_config_fini(). */
int32_t rdt_config_read(const struct modhost *h, rp_cfg cfg, struct rdt_config *ret);
void rdt_config_fini(struct rdt_config *c);
/* Returns the class with this name, or NULL. */
const struct rdt_class *rdt_config_class(const struct rdt_config *c, const char *name);
bool rdt_is_root(const char *class);

/* Parses the text of a share. Returns 0 or -RP_EINVAL, without a message. */
int32_t rdt_share_parse(const char *text, bool range_allowed, struct rdt_share *ret);

/* Sets the schemata of all classes. -RP_EINVAL: the configuration is not possible; -RP_ENOTSUP:
 * this machine lacks a capability. */
int32_t rdt_resolve(const struct modhost *h, struct rdt_config *c, const struct rdt_machine *m);

/* ---- claims (claims.c) ----------------------------------------------------------------------- */

#define RDT_CLAIMS_MAX 256 /* default of maxClaims */

/* Returns true if a class with this name can be a device. */
bool rdt_claims_good_name(const char *class);
/* Reports the classes that pods can claim. Returns 0. */
int32_t rdt_claims_devices(const struct rdt_config *c, const struct rp_devices_sink *sink);
/* Stages the class of a device for a claim. -RP_ENOENT and -RP_ENOSPC, with a message. */
int32_t rdt_claims_allocate(const struct modhost *h, const struct rdt_config *c, rp_txn txn,
			    rp_ctr claim, const char *device);
/* Fails with a message if a claim would lose its class under this configuration. */
int32_t rdt_claims_check(const struct modhost *h, const struct rdt_config *c);

/* ---- groups: [worker] ------------------------------------------------------------------------ */

/* Wanted state of a group, passed from the main thread to the worker. */
struct rdt_want {
	char name[RDT_NAME_MAX]; /* name of the class */
	char *schemata; /* text for the group's schemata; NULL: this module does not write them */
};

struct rdt_group {
	char name[RDT_NAME_MAX];
	bool there, right; /* there: the directory exists; right: the schemata are as wanted */
	char why[CTL_TEXT_MAX]; /* reason if one of the two is false */
};

struct rdt_groups {
	const struct modhost *h;
	char root[RDT_PATH_MAX];
	bool discovery;
	struct rdt_group *list;
	uint32_t n;
	uint32_t n_writes, n_failures;
};

/* Writes the path of a class's group: the root group for "", and without the prefix if another
 * program manages the groups (discovery). */
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
	/* groups of the record that are not wanted; on return the groups that still exist */
	struct rdt_names owned;
	bool force, discovery;
	char root[RDT_PATH_MAX];
	struct rdt_names usable; /* on return: groups in which containers can begin */
	uint32_t n_made; /* groups that became usable */
	uint32_t n_failed;
	char text[CTL_TEXT_MAX]; /* the first failure, or groups that were left unchanged */
};

/* Removes groups that are no longer wanted, creates missing ones, and writes schemata that
 * differ. */
void rdt_groups_set_up(struct rdt_groups *g, struct rdt_setup *s);
void rdt_groups_fini(struct rdt_groups *g);
/* Returns true if `have` contains all lines of `want`, compared by number and not by notation. */
bool rdt_schemata_equal(const char *have, const char *want);

/* ---- containers: [worker] -------------------------------------------------------------------- */

struct rdt_assign {
	struct ctl_item item;
	char class[RDT_NAME_MAX]; /* name of the container's class; "": the root group */
	char monitor[RDT_NAME_MAX]; /* name of the monitoring group; "": none */
	/* class with a monitoring group to be removed; equal to `class`: none */
	char former[RDT_NAME_MAX];
	bool known; /* the class is configured */
	/* The class was chosen by default: without a group its containers use the root group, and
	 * that is no failure. */
	bool mild;
	bool shared; /* other containers of the pod use the former monitoring group: keep it */
	bool gone; /* the container has ended: remove its monitoring group too */
	uint32_t n_moved;
};

void rdt_assign_run(struct rdt_groups *g, struct rdt_assign *a);

/* The monitoring data of a group and cache. */
struct rdt_reading {
	char class[RDT_NAME_MAX], monitor[RDT_NAME_MAX];
	uint32_t cache_id;
	bool has[3]; /* whether the reading has occupancy, local traffic, total traffic */
	uint64_t value[3]; /* monitored amounts, in bytes */
};

struct rdt_readings {
	struct rdt_reading *list;
	uint32_t n, cap;
};

/* Reads the counters of all groups of the module; files without a value are skipped. */
void rdt_monitor_read(const struct rdt_groups *g, struct rdt_readings *ret);
/* Removes monitoring groups with the module's prefix that are not in `keep`. */
void rdt_monitor_sweep(const struct rdt_groups *g, const struct rdt_names *keep);
