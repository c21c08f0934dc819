/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: its owner and modes, the lock against other instances, and quarantined
 * files.
 */
#pragma once

#include "core/nri-rpd/store/internal.h"

/* Opens the directory, corrects its modes and locks it. Uses dir, read_only and at_once of
 * `params`. */
int store_dir_open(struct store_dir *d, const struct store_params *params, struct err *err);
/* Releases the lock and closes the directory. */
void store_dir_close(struct store_dir *d);
void store_dir_path(const struct store_dir *d, const char *name, char ret[STORE_PATH_MAX]);
bool store_dir_has(const struct store_dir *d, const char *name);

/* Moves a file to store.old or quarantines it (`how`). *ret_name: its new name. Returns 0 or a
 * negative errno. */
int store_dir_set_aside(const struct store_dir *d, const char *file, enum store_aside how,
			char ret_name[64]);
