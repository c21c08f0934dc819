/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the machine that modules have set (nri-rp.host.settings/1): the log of their previous
 * values, and restoring them.
 */
#pragma once

#include "core/nri-rpd/host/instance.h"

/*
 * Opens the log in which previous values of files that modules set outlive the process, and adopts
 * the records of the previous process. `origin`: one line of boot and root; a log of another origin
 * is void. Only errors that prevent going on without the log are returned.
 */
int settings_open(struct host_env *env, const char *path, const char *origin, struct err *err);

/* Restores at once the settings of ended modules. Call it after the worker has ended. Files that
 * cannot be restored stay in the log. */
void settings_close(struct host_env *env);

/* Restores the settings of ended modules on the worker. */
void settings_put_back(struct host_env *env);

/* Restores also the settings of the previous process that no module has claimed. Call it after all
 * modules have made their claims. */
void settings_release_former(struct host_env *env);
