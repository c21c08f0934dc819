/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File with the published entries (nodeResources.file), for users without an agent or a cluster.
 * JSON; the whole file is replaced after a change.
 */
#pragma once

#include "core/nri-rpd/noderes/result.h"
#include "core/lib/util/err.h"

struct pipeline;

/* State of the file; all zeros: no file is configured. */
struct outcome {
	const char *path; /* text of the configuration; NULL: none */
	char *written; /* content of the file; NULL: not known */
	bool writing;
	char error[ERR_TEXT_MAX]; /* error logged last */
};

/* Sets the path. The next outcome_put() writes in any case. */
void outcome_configure(struct outcome *o, const char *path);
/* Writes the file on the disk worker if its content changes. During a write does nothing; the next
 * call catches up. */
void outcome_put(struct pipeline *p, struct outcome *o, const struct nr_result *stands);
void outcome_fini(struct outcome *o);
