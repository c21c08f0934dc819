/* SPDX-License-Identifier: Apache-2.0 */
/* Applications outside of pods (nodeResources.hostApplications): a cgroup each, which the collector
 * reads like that of a container. */
#ifndef PIPELINE_APPS_H
#define PIPELINE_APPS_H

#include "core/nri-rpd/cache/usage.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/noderes/series.h"

#define HOST_APPS_MAX 64u

struct host_app {
	const char *name, *cgroup; /* the configuration's; cgroup: below the mount, from "/" on */
	uint32_t prio; /* RP_PRIO_… */
	struct usage usage;
	struct series series;
};

/* All zeros: none. */
struct host_apps {
	struct host_app *list;
	uint32_t n, generation; /* of the list: counts up */
};

/* -EINVAL with the place. */
int host_apps_check(rp_cfg list, struct err *err);
/* What was measured of those that stay is kept. -ENOMEM: as before. */
int host_apps_configure(struct host_apps *a, rp_cfg list);
/* What the collector has read since. */
void host_apps_measure(struct host_apps *a, bool cached, uint64_t window_ms);
/* Nothing that was measured counts any more. */
void host_apps_forget(struct host_apps *a);
void host_apps_fini(struct host_apps *a);

#endif
