/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotations of pods that count (`annotations` of rp.conf). Whoever may create pods in a namespace
 * writes them, so the operator says what they may ask for there. This is the one place that decides
 * it: all that reads an annotation to act on it goes by pod_heard(), and what is withheld is shown
 * only.
 */
#ifndef CACHE_HEAR_H
#define CACHE_HEAR_H

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"

/* From now on these count, which are the caller's and stay until others are given; NULL: all do.
 * All pods are looked at anew. -ENOMEM: of some pods none counts. Requests that were derived from
 * an annotation stay what they are. */
int cache_hear(struct cache *c, const struct conf_annotations *rules);
/* The same for one pod whose annotations or namespace are new. */
int hear_pod(const struct cache *c, struct pod *pod);

/* What the site calls names of pods and nodes; NULL: as they are. */
const struct prefixes *cache_prefixes(const struct cache *c);

static inline const struct kvs *pod_heard(const struct pod *pod)
{
	return pod->withheld ? &pod->heard : &pod->annotations;
}

/* The next key after `after` (NULL: the first one) that says something to a container and does not
 * count; NULL: there is none. */
const char *withheld_next(const struct ctr *ctr, const char *after);

#endif
