/* SPDX-License-Identifier: Apache-2.0 */
/* What each release of NRI can do, and which runtime brought it. */
#ifndef NRI_RUNTIME_RELEASE_H
#define NRI_RUNTIME_RELEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/err.h"

struct nri_release {
	unsigned minor; /* of 0.minor */
	const char *containerd,
		/* what these called themselves; where they skipped one, the release before */
		*crio;
	const char *version; /* as told in Configure, "" when it is not */
};

/* "0.12"; -EINVAL with what there is. */
int release_find(const char *name, const struct nri_release **ret, struct err *err);
const struct nri_release *release_latest(void);

static inline uint32_t release_events(const struct nri_release *r)
{
	return r->minor >= 10 ? 0x3fff : 0x7ff;
}

/* The lengths of request and registration timeouts are told in Configure, and Synchronize can come
 * in parts. */
static inline bool release_has_timeouts(const struct nri_release *r)
{
	return r->minor >= 7;
}

static inline bool release_has_times(const struct nri_release *r)
{
	return r->minor >= 10;
}

/* Every event has a method of its own. */
static inline bool release_has_methods(const struct nri_release *r)
{
	return r->minor >= 12;
}

/* Plugins' names are looked at. */
static inline bool release_checks_names(const struct nri_release *r)
{
	return r->minor >= 12;
}

/* Whole messages in one frame, however long. */
static inline bool release_one_frame(const struct nri_release *r)
{
	return r->minor <= 6;
}

#endif
