/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of metrics that make up a scrape. */
#ifndef METRICS_COLLECT_H
#define METRICS_COLLECT_H

#include "core/nri-rpd/metrics/expo.h"
#include "core/nri-rpd/pipeline/pipeline.h"

#endif
