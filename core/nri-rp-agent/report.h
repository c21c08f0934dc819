/* SPDX-License-Identifier: Apache-2.0 */
/* Events of pods and of the node, for people who look at them with kubectl. Each is written once;
 * what cannot be written is lost. */
#ifndef NRI_RP_AGENT_REPORT_H
#define NRI_RP_AGENT_REPORT_H

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define REPORT_MAX 64u /* under way at a time; what is more is lost */

struct report;

struct report *report_new(struct kube *k, const char *node); /* NULL: no memory */
struct report *report_free(struct report *r); /* NULL is fine; returns NULL */
void report_tell(struct report *r, const Agent__TellRequest *m);

#endif
