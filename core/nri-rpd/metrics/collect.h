/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of metrics that make up a scrape. */
#pragma once

#include "core/nri-rpd/metrics/expo.h"
#include "core/nri-rpd/pipeline/pipeline.h"
