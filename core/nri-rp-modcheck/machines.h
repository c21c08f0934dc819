/* SPDX-License-Identifier: Apache-2.0 */
/* Machines as trees of files below sys/ and proc/: made-up ones, or copies of recorded ones. */
#pragma once

#include "core/nri-rp-modcheck/check.h"

int machines_init(struct machines *m, const char *folder, struct err *err);
void machines_fini(struct machines *m);
/* Writes the machine's tree unless it exists, and sets all its CPUs online. */
int machine_make(struct check_machine *m, struct err *err);
int machine_set_online(const struct check_machine *m, struct rp_ids cpus, struct err *err);
/* Writes a file of the machine; create a folder and its parents. */
int machine_put(const struct check_machine *m, const char *path, const char *text, struct err *err);
int machine_put_dir(const struct check_machine *m, const char *path, struct err *err);
/* Returns the machine with the most CPUs, and the one of medium size. */
struct check_machine *machines_largest(struct machines *m);
struct check_machine *machines_middle(struct machines *m);
