/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_DIRECTORY_H
#define STORE_DIRECTORY_H

#include "core/nri-rpd/store/internal.h"

/* Opened, its modes put right, locked; of `params` directory, read_only and at_once count. */
int store_dir_open(struct store_dir *d, const struct store_params *params, struct err *err);
void store_dir_close(struct store_dir *d);
void store_dir_path(const struct store_dir *d, const char *name, char ret[STORE_PATH_MAX]);
bool store_dir_has(const struct store_dir *d, const char *name);

/* ret_name is what that file is called now. */
int store_dir_set_aside(const struct store_dir *d, const char *file, enum store_aside how,
			char ret_name[64]);

#endif
