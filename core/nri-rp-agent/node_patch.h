/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the labels, annotations and taints that the daemon's modules want on the Node. The same
 * write records them in the annotation nri-rp/owned on the Node. By this record, items that are no
 * longer wanted are removed even after a restart, while items of other programs are preserved.
 * Extended resources of foreign domains are recorded before they are written (published.h), until
 * they are gone.
 *
 * Each write is for one version of the Node. The server refuses it if that is not the latest
 * version; the next version then determines what to write.
 */
#pragma once

#include <jansson.h>

#include "core/nri-rp-agent/kube.h"
#include "proto/agent.pb-c.h"

#define WISHES_RECORD "nri-rp/owned"
#define WISHES_INTERVAL_MS 1000u

struct wishes;

struct wishes *wishes_new(struct kube *k, const char *node); /* NULL: no memory */
struct wishes *wishes_free(struct wishes *w); /* accepts NULL; returns NULL */
/* Sets the labels, annotations, taints and resources that are wanted now. Returns 0 or -ENOMEM. */
int wishes_take(struct wishes *w, const Agent__PublishedRequest *m);
/* Call with each version of the Node, borrowed. */
void wishes_seen(struct wishes *w, json_t *node);

/* Returns true if the Node's record lists this resource as the agent's. */
bool wishes_recorded(const json_t *node, const char *resource);
/*
 * Computes, for tests, the patch that gives a Node what is wanted; *ret NULL: no difference. The
 * caller owns it. foreign, of ERR_TEXT_MAX bytes: the item of another program that stays, as a
 * sentence; "": none. -ENOMEM.
 */
int wishes_patch(json_t *node, json_t *wanted, json_t **ret, char *foreign);
