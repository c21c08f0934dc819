/* SPDX-License-Identifier: Apache-2.0 */
/* Events of pods and of the node, for people who look at them with kubectl. Each is written once;
 * what the server does not take now waits, and is tried again later and later. What it refuses for
 * good is lost. */
#ifndef NRI_RP_AGENT_REPORT_H
#define NRI_RP_AGENT_REPORT_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define REPORT_MAX 64u /* that wait; the oldest one is lost when there are more */
#define REPORT_AGE_MS                                                                              \
	3600000u /* after which one is lost: the server keeps none for longer either */

struct report;

struct report_counts {
	uint32_t waiting;
	uint64_t lost; /* since the start */
};

/* changed() is called when the counts may have changed; it must not start calls. NULL: no
 * memory. */
struct report *report_new(struct kube *k, const char *node, void (*changed)(void *arg), void *arg);
struct report_counts report_counts(const struct report *r);
struct report *report_free(struct report *r); /* NULL is fine; returns NULL */
void report_tell(struct report *r, const Agent__TellRequest *m);

#endif
