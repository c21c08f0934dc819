/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_WAIT_PLUGIN_QUESTION_H
#define PIPELINE_WAIT_PLUGIN_QUESTION_H

#include "core/nri-rpd/pipeline/wait/plugins.h"

/* Answers; all of it is copied. */
void pipeline_plugins_hinted(struct pipeline *p, uint32_t serial, const struct plugin_hints *list,
			     uint32_t n);
void pipeline_plugins_allocated(struct pipeline *p, uint32_t serial, const void *grants,
				size_t len);
void pipeline_plugins_ready(struct pipeline *p, uint32_t serial);
void pipeline_plugins_failed(struct pipeline *p, uint32_t serial, bool late, const char *why);

/* A request comes: what was asked for another one is of no interest. */
void inquiry_reset(struct pipeline *p);

/* Until when (clock_ms) it has to wait; 0: it need not. */
uint64_t inquiry_wait_pod(struct pipeline *p, const struct request_about *about);
uint64_t inquiry_wait_ctr(struct pipeline *p, const struct request_about *about);

/* The policy has admitted the pod. 0: that is all; 1: plugins have been asked to allocate, and
 * inquiry_granted() tells what came of it; an error refuses it. */
int inquiry_admitted(struct pipeline *p, struct pod *pod, bool known, struct err *err);
int inquiry_granted(struct pipeline *p, struct pod *pod, bool *ret_known, struct err *err);

/* A container whose creation is decided: does anything keep it from coming? */
int inquiry_allows(struct pipeline *p, struct ctr *ctr, struct err *err);
struct inquiry *inquiry_new(void);
struct inquiry *inquiry_free(struct inquiry *q);

#endif
