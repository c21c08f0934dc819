/* SPDX-License-Identifier: Apache-2.0 */
/* Features of each release of NRI, and the runtime that introduced it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/err.h"

struct nri_release {
	unsigned minor; /* minor version in 0.minor */
	const char *containerd,
		/* version strings of these runtimes; for a release that a runtime skipped, of the
		 * release before */
		*crio;
	const char *version; /* version sent in Configure; "": none */
};

/* Finds the release "0.12"; -EINVAL with the list of releases. */
int release_find(const char *name, const struct nri_release **ret, struct err *err);
const struct nri_release *release_latest(void);

static inline uint32_t release_events(const struct nri_release *r)
{
	return r->minor >= 10 ? 0x3fff : 0x7ff;
}

/* Returns true if Configure states the request and registration timeouts, and Synchronize can be
 * split. */
static inline bool release_has_timeouts(const struct nri_release *r)
{
	return r->minor >= 7;
}

static inline bool release_has_times(const struct nri_release *r)
{
	return r->minor >= 10;
}

/* Returns true if every event has a separate method. */
static inline bool release_has_methods(const struct nri_release *r)
{
	return r->minor >= 12;
}

/* Returns true if the runtime checks the names of plugins. */
static inline bool release_checks_names(const struct nri_release *r)
{
	return r->minor >= 12;
}

/* Returns true if the runtime sends whole messages in one frame, of any length. */
static inline bool release_one_frame(const struct nri_release *r)
{
	return r->minor <= 6;
}
