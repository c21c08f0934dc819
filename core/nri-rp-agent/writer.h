/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one object, one write at a time. Always writes the latest wanted content and skips those
 * replaced in the meantime. Failed writes are retried until they succeed or the content is
 * replaced. A write for a version of the object (metadata.resourceVersion) that is no longer the
 * latest is dropped.
 */
#pragma once

#include "core/nri-rp-agent/kube.h"

struct writer;

struct writer_config {
	const char *what; /* constant text for people */
	const char *method, *content_type; /* parts of the request; constants */
	char *path; /* malloc'd, and freed with the writer; NULL: no memory */
	uint32_t interval_ms; /* minimum time between two writes */
	const char *missing; /* advice if the server does not have the kind; a constant, or NULL */
	bool ends_with_it; /* drop the write if the object does not exist */
	bool versioned; /* writes name a version: no interval follows one that is refused for it */
	/* Called after each attempt; may be NULL. Must not free the writer. */
	void (*written)(const struct kube_answer *answer, void *arg);
	void *arg;
};

/* Takes over the path, also on failure. NULL: no memory. */
struct writer *writer_new(struct kube *k, const struct writer_config *config);
struct writer *writer_free(struct writer *w); /* accepts NULL; returns NULL */
/* Sets the content to write, which is taken over; equal content is written again, too. Returns 0 or
 * -ENOMEM; body NULL: no memory. */
int writer_put(struct writer *w, json_t *body);
bool writer_idle(const struct writer *w); /* all wanted content has been written or was refused */
bool writer_writing(const struct writer *w); /* Returns true while a request is running. */
