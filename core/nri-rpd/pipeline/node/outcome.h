/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands on the Node, as a file (nodeResources.file): for whoever has no agent, or no cluster,
 * and wants to do something with it. JSON, replaced as a whole whenever it has changed.
 */
#ifndef PIPELINE_OUTCOME_H
#define PIPELINE_OUTCOME_H

#include "core/nri-rpd/noderes/result.h"
#include "core/lib/util/err.h"

struct pipeline;

/* All zeros: there is no such file. */
struct outcome {
	const char *path; /* the configuration's text; NULL: none */
	char *written; /* what it has; NULL: nobody knows */
	bool writing;
	char error[ERR_TEXT_MAX]; /* that was logged */
};

void outcome_configure(struct outcome *o, const char *path);
/* Written on the worker, if it is another than before. What changes during that waits for the next
 * call. */
void outcome_put(struct pipeline *p, struct outcome *o, const struct nr_result *stands);
void outcome_fini(struct outcome *o);

#endif
