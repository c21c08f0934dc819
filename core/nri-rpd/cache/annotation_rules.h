/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for pods' annotations (`annotations` of rp.conf). Users who may create pods in a namespace
 * write annotations, and the operator decides which of them take effect there. pod_heard() returns
 * the annotations that take effect; all code that acts on an annotation uses it. Withheld
 * annotations are only shown.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"

/* Sets the rules (borrowed until the next call; NULL: all annotations take effect) and applies them
 * to all pods. -ENOMEM: no annotation of some pods takes effect. Requests that were derived from an
 * annotation before are unchanged. */
int cache_hear(struct cache *c, const struct conf_annotations *rules);
/* Applies the rules to one pod whose annotations or namespace are new. */
int hear_pod(const struct cache *c, struct pod *pod);

/* Returns the site's prefixes for names of pods and nodes; NULL: the defaults. */
const struct prefixes *cache_prefixes(const struct cache *c);

/* Returns the annotations that take effect. */
static inline const struct kvs *pod_heard(const struct pod *pod)
{
	return pod->withheld ? &pod->heard : &pod->annotations;
}

/* Returns the withheld key that concerns a container and follows the key `after`, or NULL. `after`
 * NULL: returns the first one. */
const char *withheld_next(const struct ctr *ctr, const char *after);
