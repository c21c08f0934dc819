/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes of one object, one after the other: what is wanted last is what is written, what is wanted
 * meanwhile is not. What cannot be written is tried again until it can, or something else is
 * wanted. A write of one version of the object (metadata.resourceVersion) that is not the latest
 * any more is dropped.
 */
#ifndef NRI_RP_AGENT_WRITER_H
#define NRI_RP_AGENT_WRITER_H

#include "core/nri-rp-agent/kube.h"

struct writer;

struct writer_config {
	const char *what; /* a constant text, for people */
	const char *method, *path, *content_type; /* copied */
	uint32_t interval_ms; /* between two writes, at least */
	const char *missing; /* what to do where the server has no such kind; a constant, or NULL */
	bool ends_with_it; /* where the object is gone there is nothing to write */
	/* Each outcome; may be NULL. Must not free the writer. */
	void (*written)(const struct kube_answer *answer, void *arg);
	void *arg;
};

struct writer *writer_new(struct kube *k, const struct writer_config *config); /* NULL: no memory */
struct writer *writer_free(struct writer *w); /* NULL is fine; returns NULL */
/* This is wanted now. The same as before is written all the same. 0 or -ENOMEM. */
int writer_put(struct writer *w, const char *body);
bool writer_idle(const struct writer *w); /* all that was wanted has been written, or was refused */
bool writer_writing(const struct writer *w); /* a request is under way */

#endif
