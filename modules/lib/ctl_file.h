/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the kernel as controllers use them. All functions [any]; paths are below the host's
 * root. */
#ifndef NRI_RP_LIB_CTL_FILE_H
#define NRI_RP_LIB_CTL_FILE_H

#include "modules/lib/host.h"

#define CTL_FILE_MAX (16u << 20)
#define CTL_PATH_MAX 4608u

/* The whole file, malloc'd; -errno, -RP_E2BIG above CTL_FILE_MAX. Returns the length. */
int32_t ctl_read(const struct modhost *h, const char *path, char **ret);
/* A number that is all of the file. */
int32_t ctl_read_u64(const struct modhost *h, const char *path, uint64_t *ret);
/* What a negative result means, in words. */
const char *ctl_why(int32_t code);
/* snprintf: 0, or -RP_E2BIG when it does not fit. */
int32_t ctl_format(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A decimal (base 10) or hexadecimal (16, with or without 0x) number at the start of text; ret_end
 * may be NULL: it has to be all of it then, but for a newline. */
int32_t ctl_number(const char *text, int base, uint64_t *ret, const char **ret_end);

/* What stands for a container's cgroup, for cgroup_find(); malloc'd, NULL: out of memory, or it is
 * not known. [main] */
char *ctl_cgroup_ref(const struct modhost *h, rp_ctr ctr);
/* Has each controller a hierarchy of its own? */
int ctl_is_v1(const struct modhost *h);

/* Calls each for the ids of all threads in a container's cgroup and those below it. -errno; a
 * result of each other than 0 ends it. */
int32_t ctl_each_thread(const struct modhost *h, const char *cgroup,
			int32_t (*each)(void *arg, uint32_t tid), void *arg);
/* The same for processes. */
int32_t ctl_each_process(const struct modhost *h, const char *cgroup,
			 int32_t (*each)(void *arg, uint32_t pid), void *arg);

#endif
