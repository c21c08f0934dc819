/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not as it should be: one table, a row a condition. The daemon is degraded while any of
 * them holds. nri-rpctl status and doctor, the health check, the metrics and the unit's status text
 * all read it.
 */
#ifndef PIPELINE_CONDITIONS_H
#define PIPELINE_CONDITIONS_H

#include <stdbool.h>

#include "core/lib/util/err.h"

struct pipeline;

#define CONDITION_TEXT_MAX (ERR_TEXT_MAX + 512)
#define CONDITIONS_MAX 32u /* rows */
#define REFUSED_IN_A_ROW 5u /* different containers, and none created in between */

enum severity {
	SEVERITY_DEGRADED, /* something is not done that ought to be */
	SEVERITY_UNHEALTHY, /* containers may not be placed as they ought to be: not ready */
};

struct condition {
	const char *id; /* for programs: "config-refused" */
	const char *about; /* what the doctor calls this part of the daemon */
	enum severity severity;
	const char *hint; /* what to do */
	const char *text; /* what is wrong */
};

/* Calls fn (may be NULL) for each that holds, in the order in which to mend them; how many there
 * are. A row may hold several times. */
unsigned conditions_each(const struct pipeline *p, void (*fn)(const struct condition *c, void *arg),
			 void *arg);
/* The rows, for who shows those that do not hold, too: NULL past the last. Without text. */
const struct condition *condition_row(unsigned i);

/* What of the daemon serves others. */
enum service { SERVICE_CONTROL, SERVICE_METRICS, SERVICE_AGENT, N_SERVICES };
/* A service works as configured from now on (err NULL), or fails for a reason. */
void pipeline_served(struct pipeline *p, enum service s, const struct err *err);

void conditions_created(struct pipeline *p);
void conditions_refused(struct pipeline *p, const char *ctr, const char *why);

#endif
