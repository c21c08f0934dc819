/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blkio.so: block I/O of containers by class: weights and throttles of devices, which are selected
 * by patterns.
 *
 *	config.c	the section: classes, each a list of entries
 *	devices.c	[worker] patterns → existing disks
 *	apply.c		[worker] a class → blkio.* of cgroup v1, io.* of v2; resets old values and
 *			reads new ones back
 *	blkio.c		the module: classes of containers, hooks
 *
 * Without classes, the section only passes class names to the runtime, whose own file then defines
 * the classes.
 *
 * The module does not use the runtime to write values: io.max takes one device per write, and a
 * runtime makes only one write per file.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>
#include <nri-rp/lib/ctl_life.h>

#define BLKIO_CLASSES_MAX 256u
#define BLKIO_WEIGHT_MIN 10u
#define BLKIO_WEIGHT_MAX 1000u
#define BLKIO_DEVICES_MAX 4096u
#define BLKIO_NOT_SET UINT64_MAX

enum blkio_rate { BLKIO_RBPS, BLKIO_WBPS, BLKIO_RIOPS, BLKIO_WIOPS, BLKIO_N_RATES };

struct blkio_entry {
	char **devices; /* patterns; none: the entry sets the default weight */
	uint32_t n_devices;
	uint32_t weight; /* weight of the class for the disk; 0: not set */
	/* limits by kind of rate; 0: no limit, which overrides earlier entries; BLKIO_NOT_SET: the
	 * entry has none */
	uint64_t rate[BLKIO_N_RATES];
};

struct blkio_class {
	char name[CTL_CLASS_MAX];
	struct blkio_entry *entries;
	uint32_t n;
};

struct rp_plan {
	CTL_PLAN;
	struct blocks memory; /* memory of the classes */
	bool qos_default, forward;
	struct blkio_class *classes;
	uint32_t n_classes;
};

int32_t blkio_config_read(const struct modhost *h, rp_cfg cfg, struct rp_plan *ret);
void blkio_config_fini(struct rp_plan *p);
const struct blkio_class *blkio_config_class(const struct rp_plan *p, const char *name);

/* ---- devices: [worker] ----------------------------------------------------------------------- */

struct blkio_device {
	char name[64]; /* name of the disk, such as sda; '!' replaces '/' */
	uint32_t major, minor;
	bool weighs; /* the scheduler supports weights */
};

struct blkio_devices {
	struct blkio_device *list;
	uint32_t n;
};

/* Reads the existing disks, without partitions. */
int32_t blkio_devices_read(const struct modhost *h, struct blkio_devices *ret);
void blkio_devices_fini(struct blkio_devices *d);
bool blkio_devices_equal(const struct blkio_devices *a, const struct blkio_devices *b);
/* Calls fn for each disk that the pattern matches, by its name or through links. Returns their
 * number. */
uint32_t blkio_match(const struct modhost *h, const struct blkio_devices *d, const char *pattern,
		     void (*fn)(void *arg, const struct blkio_device *device), void *arg);

/* ---- containers: [worker] -------------------------------------------------------------------- */

struct blkio_item {
	struct ctl_item item;
	const struct blkio_class *class; /* class to apply; NULL: restore the kernel's defaults */
	char unknown[CTL_CLASS_MAX]; /* name of a class that is not configured */
	bool new_devices; /* the disks differ from the disks of the previous item; set by run() */
};

struct blkio_worker {
	const struct modhost *h;
	struct blkio_devices last;
};

void blkio_apply(struct blkio_worker *w, struct blkio_item *item);
