/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of previous runs: opens the store at a start and restores the cache from it. Also reads a
 * copy of the state for the check of a configuration.
 */
#pragma once

#include "core/nri-rpd/pipeline/state/persist.h"

/* Opens the store and restores the cache. If the directory is unusable, the daemon runs without a
 * store. Fails if another instance uses the directory (-EBUSY) or memory is short. */
int state_open(struct pipeline *p, struct err *err);

/* Tries to open the store again, if the error at the start may be temporary. */
void state_open_late(struct pipeline *p);

/* Opens the record of settings that the previous process made on the node. The run-time directory
 * has to exist. */
int state_open_settings(struct pipeline *p, struct err *err);

/* Restores the state in dir for a check of a configuration. Changes nothing in dir; ignored parts
 * are listed in report. */
void state_look(struct pipeline *p, const char *dir, struct buf *report);
