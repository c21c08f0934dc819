/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a start: chooses and activates one, from the files or the last good
 * configuration down to policy none (order in startup.c).
 */
#pragma once

#include "core/nri-rpd/pipeline/reload/proposal.h"

/* Reads the files, the pushed files and the last good configuration. Fails only if memory is short
 * (-ENOMEM). */
int first_read(struct pipeline *p, struct err *err);

/* Sets the state and run-time directories. Fails if the files cannot be parsed and there is no last
 * good configuration. Without err nothing is logged: config_check() reports all problems later. */
int first_dirs(struct pipeline *p, struct err *err);
/* Frees the result of first_read(). */
void first_forget(struct pipeline *p);
/* Activates the first usable configuration. Returns -EINVAL if the files are wrong and this node
 * never had a configuration. */
int config_first(struct pipeline *p, struct err *err);

/* Parses the files and tries them in a child. Problems and warnings go to report. */
int config_check(struct pipeline *p, struct buf *report, struct err *err);
