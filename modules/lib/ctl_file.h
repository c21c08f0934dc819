/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the kernel for controllers. All functions are [any], except ctl_cgroup_ref(). Paths are
 * below the host's root. */
#ifndef NRI_RP_LIB_CTL_FILE_H
#define NRI_RP_LIB_CTL_FILE_H

#include <nri-rp/lib/host.h>

#define CTL_FILE_MAX (16u << 20)
#define CTL_PATH_MAX 4608u

/* Reads a whole file into memory of malloc(). Returns the length, -errno, or -RP_E2BIG above
 * CTL_FILE_MAX. */
int32_t ctl_read(const struct modhost *h, const char *path, char **ret);
/* Reads a file that contains one number. */
int32_t ctl_read_u64(const struct modhost *h, const char *path, uint64_t *ret);
/* Formats like snprintf. Returns 0, or -RP_E2BIG if the text does not fit. */
int32_t ctl_format(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads a decimal (base 10) or hexadecimal (16, with or without 0x) number at the start of text.
 * Without ret_end it must fill the text, except for a newline. */
int32_t ctl_number(const char *text, int base, uint64_t *ret, const char **ret_end);

/* Returns a reference to a container's cgroup for cgroup_find(), in memory of malloc(). NULL: out
 * of memory, or the cgroup is unknown. [main] */
char *ctl_cgroup_ref(const struct modhost *h, rp_ctr ctr);
/* Returns true if the controllers have separate hierarchies (cgroup v1). */
int ctl_is_v1(const struct modhost *h);

/* Calls `each` for the ids of all threads in a container's cgroup and in the cgroups below it.
 * Returns -errno, or the first result of `each` other than 0, which ends the walk. */
int32_t ctl_each_thread(const struct modhost *h, const char *cgroup,
			int32_t (*each)(void *arg, uint32_t tid), void *arg);
/* Calls `each` for the ids of all processes, like ctl_each_thread(). */
int32_t ctl_each_process(const struct modhost *h, const char *cgroup,
			 int32_t (*each)(void *arg, uint32_t pid), void *arg);

#endif
