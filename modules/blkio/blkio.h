/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blkio.so: block I/O of containers by class: weights and throttles, of devices that are named by
 * patterns.
 *
 *	config.c	the section: classes, each a list of entries
 *	devices.c	[worker] patterns → the disks that there are now
 *	apply.c		[worker] a class → blkio.* of cgroup v1, io.* of v2; what is not wanted any
 *                      more is reset; read back
 *	blkio.c		the module: which class a container has, what to do when
 *
 * Without classes of its own the section only passes class names on to the runtime, whose own file
 * has the classes then.
 *
 * io.max takes one device a write, and what a runtime writes for a container is one write a file:
 * so nothing of this goes through the runtime.
 */
#ifndef BLKIO_H
#define BLKIO_H

#include <stdbool.h>

#include "modules/lib/ctl_file.h"
#include "modules/lib/ctl_queue.h"
#include "modules/lib/ctl_table.h"

#define BLKIO_CLASSES_MAX 256u
#define BLKIO_WEIGHT_MIN 10u
#define BLKIO_WEIGHT_MAX 1000u
#define BLKIO_DEVICES_MAX 4096u
#define BLKIO_NOT_SET UINT64_MAX

enum blkio_rate { BLKIO_RBPS, BLKIO_WBPS, BLKIO_RIOPS, BLKIO_WIOPS, BLKIO_N_RATES };

struct blkio_entry {
	char **devices; /* patterns; none: the default weight */
	uint32_t n_devices;
	uint32_t weight; /* 0: not set */
	uint64_t rate[BLKIO_N_RATES]; /* BLKIO_NOT_SET */
};

struct blkio_class {
	char name[CTL_CLASS_MAX];
	struct blkio_entry *entries;
	uint32_t n;
};

/* Shared by the main thread and items under way. */
struct blkio_config {
	uint32_t refs;
	bool enable, qos_default, forward;
	struct blkio_class *classes;
	uint32_t n_classes;
};

int32_t blkio_config_read(const struct modhost *h, rp_cfg cfg, struct blkio_config **ret);
void blkio_config_unref(struct blkio_config *c); /* [main]; NULL is fine */
const struct blkio_class *blkio_config_class(const struct blkio_config *c, const char *name);

/* ---- devices: [worker] ----------------------------------------------------------------------- */

struct blkio_device {
	char name[64]; /* sda; ! stands for / */
	uint32_t major, minor;
	bool weighs; /* its scheduler knows weights */
};

struct blkio_devices {
	struct blkio_device *list;
	uint32_t n;
};

/* The disks (no partitions) that there are. */
int32_t blkio_devices_read(const struct modhost *h, struct blkio_devices *ret);
void blkio_devices_fini(struct blkio_devices *d);
bool blkio_devices_equal(const struct blkio_devices *a, const struct blkio_devices *b);
/* Calls fn for each disk that the pattern names, by its own name or through links; how many. */
uint32_t blkio_match(const struct modhost *h, const struct blkio_devices *d, const char *pattern,
		     void (*fn)(void *arg, const struct blkio_device *device), void *arg);

/* ---- containers: [worker] -------------------------------------------------------------------- */

struct blkio_item {
	struct ctl_item item;
	uint32_t serial;
	char *ref; /* of its cgroup */
	struct blkio_config *config;
	const struct blkio_class *class; /* NULL: back to the kernel's defaults */
	char unknown[CTL_CLASS_MAX]; /* a class that is not configured */
	bool new_devices; /* on return: other disks than last time */
	uint32_t n_writes;
};

struct blkio_worker {
	const struct modhost *h;
	struct blkio_devices last;
};

void blkio_apply(struct blkio_worker *w, struct blkio_item *item);

#endif
