/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.so: when the kernel begins to reclaim a container's memory, and whether it may swap.
 *
 *	config.c	the section
 *	qos.c		what a container's class and annotations come to
 *	apply.c		[worker] values into files of a cgroup
 *	memory.c	the module
 *
 * On cgroup v2 values go to the runtime with the container's creation, so that they are there before its first instruction; what
 * changes later, and everything on v1, is written here.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>

#include "modules/lib/ctl_file.h"
#include "modules/lib/ctl_queue.h"
#include "modules/lib/ctl_table.h"

#define MEMORY_CLASSES_MAX 256u
#define MEMORY_FILES_MAX 32u
#define MEMORY_FILE_MAX 64u /* bytes of a file's name, with its NUL */
#define MEMORY_VALUE_MAX 64u
#define MEMORY_PAGE 4096

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
};

int32_t memory_config_read(const struct modhost *h, rp_cfg cfg, struct memory_config **ret);
void memory_config_free(struct memory_config *c);

struct memory_value {
	char file[MEMORY_FILE_MAX], text[MEMORY_VALUE_MAX];
};

struct memory_values {
	struct memory_value list[MEMORY_FILES_MAX];
	uint32_t n;
	char class[CTL_CLASS_MAX]; /* "": none */
	char why[CTL_TEXT_MAX]; /* why it cannot be */
};

/* What a container is to get; -RP_EINVAL and ret->why when that cannot be. v1: the files of cgroup v1 that come closest. */
int32_t memory_values_of(const struct modhost *h, const struct memory_config *c, rp_ctr ctr,
			 bool v1, struct memory_values *ret);

struct memory_item {
	struct ctl_item item;
	char *ref;
	struct memory_values values;
	uint32_t n_writes;
};

void memory_apply(const struct modhost *h, struct memory_item *item);

#endif
