/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a machine as a tree with sys/ and proc/. */
#pragma once

#include "core/lib/machines/machine.h"

/* Writes the tree, or updates one that was written for the same machine with other CPUs offline. */
int machine_write(const struct machine *m, const char *dir, struct err *err);
