/* SPDX-License-Identifier: Apache-2.0 */
/* Writes events of pods and of the node for users of kubectl, each once. Temporary failures are
 * retried with growing delays; events that the server refuses for good are lost. */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define REPORT_MAX 64u /* largest number of waiting events; above it the oldest event is dropped */
#define REPORT_AGE_MS                                                                              \
	3600000u /* age in ms at which an event is dropped; API servers keep events no longer */

struct report;

struct report_counts {
	uint32_t waiting;
	uint64_t lost; /* number of events dropped since the start */
};

/* Creates the writer of events. changed() is called when the counts may have changed; it must not
 * start calls. NULL: no memory. */
struct report *report_new(struct kube *k, const char *node, void (*changed)(void *arg), void *arg);
struct report_counts report_counts(const struct report *r);
struct report *report_free(struct report *r); /* accepts NULL; returns NULL */
void report_tell(struct report *r, const Agent__TellRequest *m);
