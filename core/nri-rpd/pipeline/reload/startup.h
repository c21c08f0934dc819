/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_RELOAD_STARTUP_H
#define PIPELINE_RELOAD_STARTUP_H

#include "core/nri-rpd/pipeline/reload/proposal.h"

/* Reads what there is to start with. */
int first_read(struct pipeline *p, struct err *err);

/* Says where the directories are. Fails when that cannot be known, nor what else to start with.
 * Without err nothing is logged: who only checks a configuration tells all of it later. */
int first_dirs(struct pipeline *p, struct err *err);
void first_forget(struct pipeline *p);
int config_first(struct pipeline *p, struct err *err);

/* Reads and tries it, in a child; problems and warnings go to report. */
int config_check(struct pipeline *p, struct buf *report, struct err *err);

#endif
