/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running controllers: the hooks that they get, and their reports about containers. Controllers
 * change with a configuration through life.h.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

#define CONTROLLERS_MAX 32u

struct pipeline;

/* States, drawn in life.c. */
enum controller_life { CONTROLLER_IDLE, CONTROLLER_EARLY, CONTROLLER_RUNS, CONTROLLER_LEAVES };

struct controller {
	/* instance of the controller's module; NULL: it could not be created */
	struct instance *instance;
	char name[RP_NAME_MAX];
	uint32_t kind; /* RP_KIND_… in the configuration */
	enum conf_mode mode;
	enum controller_life life;
	char error[ERR_TEXT_MAX]; /* reason why the controller does not run */
	struct { /* state under the configuration that is being activated */
		struct rp_plan *plan; /* prepared plan; NULL: committed already, or refused */
		enum conf_mode mode;
		char error[ERR_TEXT_MAX];
	} next;
	struct applied *applied; /* reports about containers (controllers.c) */
	unsigned results[RP_APPLY_FAILED + 1]; /* number of containers by result */
};

/* ---- controllers.c --------------------------------------------------------------------------- */
/* Notifies running controllers that the list of containers or the topology may have changed. */
void controllers_sync(struct pipeline *p);
/* Runs the post-start hooks and schedules a check of the container's cgroup. */
void controllers_post_start(struct pipeline *p, struct ctr *ctr);
/* Runs the post-stop hooks and drops reports about the container. */
void controllers_post_stop(struct pipeline *p, struct ctr *ctr);
/* Returns RP_TAKES_…: values that running controllers apply themselves. */
uint32_t controllers_take(const struct pipeline *p);
/* Delivers a timer to a controller. */
void controllers_timer(struct pipeline *p, struct instance *i, uint64_t cookie);
/* Records a controller's report about a container (0: about no particular one), and logs new
 * failures. */
void controllers_reported(struct pipeline *p, struct instance *i, rp_ctr ctr, uint32_t result,
			  const char *text);
/* Drops reports about a removed container; forget_all drops all reports of a controller. */
void controllers_forget(struct pipeline *p, rp_ctr ctr);
void controllers_forget_all(struct controller *c);

struct controller_result;

/* Returns a controller's latest report about a container. Returns false if there is none. */
bool pipeline_controller_result(const struct pipeline *p, unsigned i, const struct ctr *ctr,
				struct controller_result *ret);
