/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the simulated machine outside of its topology: written and read by scenarios. */
#pragma once

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/buf.h"

#define FILES_TEXT_MAX 65536u

/* Writes files from a map of paths below the machine's root to texts; null removes a file. */
int files_put(struct sim *s, const json_t *map, struct err *err);
/* Creates symbolic links from a map of paths to targets. */
int files_link(struct sim *s, const json_t *map, struct err *err);
/* Reads `cgroupFiles` of the scenario's head: the files of each container's cgroup. */
int files_setup(struct sim *s, const json_t *head, struct err *err);

/* Creates and remove the container's cgroup with the files of cgroupFiles. Does nothing if the head
 * has none. */
int files_make_cgroup(struct sim *s, const struct sim_ctr *c, struct err *err);
void files_remove_cgroup(struct sim *s, const struct sim_ctr *c);
/* Writes files of a container's cgroup. With cgroup v1 their names begin with the controller:
 * "blkio/blkio.weight". */
int files_put_cgroup(struct sim *s, const struct sim_ctr *c, const json_t *map, struct err *err);

/* Reads a file, malloc'd, without the final newline. On errors no text is returned. */
int files_read(const struct sim *s, const char *path, char **ret);
int files_read_cgroup(const struct sim *s, const struct sim_ctr *c, const char *file, char **ret);
/* Reads a variable of the file in which nri-rpd exports the placement to the container; "" if it is
 * missing. */
void files_exported(const struct sim_ctr *c, const char *key, char *buf, size_t size);
