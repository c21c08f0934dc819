/* SPDX-License-Identifier: Apache-2.0 */
/* Host applications outside of pods (nodeResources.hostApplications): one cgroup each, which the
 * collector reads like that of a container. */
#pragma once

#include "core/nri-rpd/cache/usage.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/noderes/series.h"

#define HOST_APPS_MAX 64u

struct host_app {
	/* texts of the configuration; cgroup: path below the mount, from "/" on */
	const char *name, *cgroup;
	uint32_t prio; /* priority of the application, RP_PRIO_… */
	struct usage usage;
	struct series series;
};

/* List of applications; all zeros: none. */
struct host_apps {
	struct host_app *list;
	uint32_t n, generation; /* generation: incremented with each new list */
};

/* Checks the configured list. -EINVAL with the place in err. */
int host_apps_check(rp_cfg list, struct err *err);
/* Replaces the list; measurements of applications in both lists are kept. -ENOMEM: the list is
 * unchanged. */
int host_apps_configure(struct host_apps *a, rp_cfg list);
/* Adds the collector's latest readings to the series. */
void host_apps_measure(struct host_apps *a, bool cached, uint64_t window_ms);
/* Drops all measurements. */
void host_apps_forget(struct host_apps *a);
void host_apps_fini(struct host_apps *a);
