/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the simulated machine beside those of its topology: what a scenario puts there, and what
 * it looks at. */
#ifndef SIM_FILES_H
#define SIM_FILES_H

#include "core/nri-rp-sim/sim.h"
#include "core/lib/util/buf.h"

#define FILES_TEXT_MAX 65536u

/* Paths below the machine's root with their texts; null takes a file away. */
int files_put(struct sim *s, const json_t *map, struct err *err);
/* Symbolic links below it with their targets. */
int files_link(struct sim *s, const json_t *map, struct err *err);
/* A text of the scenario's head, cgroupFiles: what each container's cgroup has in it. */
int files_setup(struct sim *s, const json_t *head, struct err *err);

/* The container's cgroup comes with the files of the head, and goes. Nothing without such a
 * head. */
int files_make_cgroup(struct sim *s, const struct sim_ctr *c, struct err *err);
void files_remove_cgroup(struct sim *s, const struct sim_ctr *c);
/* Files of a container's cgroup. With cgroup v1 they have the controller in front:
 * "blkio/blkio.weight". */
int files_put_cgroup(struct sim *s, const struct sim_ctr *c, const json_t *map, struct err *err);

/* Malloc'd, without the newline at the end. Errors have no text. */
int files_read(const struct sim *s, const char *path, char **ret);
int files_read_cgroup(const struct sim *s, const struct sim_ctr *c, const char *file, char **ret);
/* A variable of the file that the container can read of its placement; "" when there is none. */
void files_exported(const struct sim_ctr *c, const char *key, char *buf, size_t size);

#endif
