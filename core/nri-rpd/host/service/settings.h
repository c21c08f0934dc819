/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_SERVICE_SETTINGS_H
#define HOST_SERVICE_SETTINGS_H

#include "core/nri-rpd/host/instance.h"

/*
 * What the modules set from now on outlives the process, with what was there before, in this file;
 * what the last process has left there is adopted. `origin`: one line of boot and root, with
 * another one the file is void. Only what cannot go on without it is an error.
 */
int settings_open(struct host_env *env, const char *path, const char *origin, struct err *err);

/* The worker has ended. What ended modules have left is put back at once; what cannot be stays in
 * the file. */
void settings_close(struct host_env *env);

/* What ended modules have left is put back, on the worker. */
void settings_put_back(struct host_env *env);

/* All modules have said what they want: what the last process has left and nobody wants is put
 * back, too. */
void settings_release_former(struct host_env *env);

#endif
