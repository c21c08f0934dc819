/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions that degrade the daemon: one table with one row for each condition. The daemon is
 * degraded while any of them holds. Readers are nri-rpctl status and doctor, the health check, the
 * metrics and the unit's status text.
 */
#pragma once

#include <stdbool.h>

#include "core/lib/util/err.h"

struct pipeline;

#define CONDITION_TEXT_MAX (ERR_TEXT_MAX + 512)
#define CONDITIONS_MAX 32u /* limit of rows */
#define REFUSED_IN_A_ROW 5u /* different containers, with no creation in between */

enum severity {
	SEVERITY_DEGRADED, /* a function of the daemon is not available */
	SEVERITY_UNHEALTHY, /* containers may be placed wrongly: the daemon is not ready */
};

struct condition {
	const char *id; /* identifier for programs, as "config-refused" */
	const char *about; /* part of the daemon in the doctor's report */
	enum severity severity;
	const char *hint; /* remedy for the problem */
	const char *text; /* text of the problem */
	bool unplaced; /* new containers are not placed as configured */
};

/* Calls fn (may be NULL) for each condition that holds, in the order of repair, and returns their
 * number. A row may hold several times. */
unsigned conditions_each(const struct pipeline *p, void (*fn)(const struct condition *c, void *arg),
			 void *arg);
/* Returns row i without text, for reports that include conditions that do not hold; NULL beyond the
 * last. */
const struct condition *condition_row(unsigned i);

/* Returns the id of the first condition by which new containers are not placed as configured; "":
 * they are placed. Visits no containers. */
const char *conditions_unplaced(const struct pipeline *p);

/* Services of the daemon for other programs. */
enum service { SERVICE_CONTROL, SERVICE_METRICS, SERVICE_AGENT, N_SERVICES };
/* Records that a service works as configured (err NULL), or why it does not. */
void pipeline_served(struct pipeline *p, enum service s, const struct err *err);

/* Records the success or refusal of a creation, for the condition of consecutive refusals. */
void conditions_created(struct pipeline *p);
void conditions_refused(struct pipeline *p, const char *ctr, const char *why);
/* Returns the number of different containers refused since the last creation, up to
 * REFUSED_IN_A_ROW. */
unsigned conditions_refusals(const struct pipeline *p);
