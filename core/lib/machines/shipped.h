/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of machines that come with the programs. */
#pragma once

#include "core/lib/machines/machine.h"

struct shipped_machine {
	const char *name;
	const char *text, *end;
};
extern const struct shipped_machine shipped_machines[];
extern const unsigned n_shipped_machines;
/* Returns a shipped description as a new reference. -ENOENT. */
int machine_shipped(const char *name, json_t **ret, struct err *err);

/*
 * Returns the description NAME, FILE.yaml, or a map, as a new reference. A directory (which is a
 * recorded tree) is no description: -EISDIR.
 */
int machine_describe(const json_t *which, json_t **ret, struct err *err);
