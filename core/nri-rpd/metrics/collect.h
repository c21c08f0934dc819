/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of metrics that fill a scrape. */
#ifndef METRICS_COLLECT_H
#define METRICS_COLLECT_H

#include "core/nri-rpd/metrics/expo.h"
#include "core/nri-rpd/pipeline/pipeline.h"

void collect_host(struct expo *e, struct pipeline *p);
void collect_process(struct expo *e);
void collect_system(struct expo *e, struct pipeline *p);
void collect_containers(struct expo *e, struct pipeline *p);
void collect_modules(struct expo *e, struct pipeline *p);
/* Do the globs of instrumentation.metrics (GROUP, NAME or GROUP/NAME) want it? */
bool collect_wanted(const struct conf_core *core, const char *group, const char *name);

#endif
