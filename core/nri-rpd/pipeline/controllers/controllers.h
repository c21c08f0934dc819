/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers: what becomes of them when a configuration is put in force, what they are told,
 * and what they say. */
#ifndef PIPELINE_REQUEST_CONTROLLERS_H
#define PIPELINE_REQUEST_CONTROLLERS_H

#include "core/nri-rpd/cache/cache.h"
#include "core/lib/conf/conf.h"
#include "core/nri-rpd/host/instance.h"
#include "core/lib/util/err.h"

#define CONTROLLERS_MAX 32u

struct pipeline;

/* Drawn in controllers_life.c. */
enum controller_life { CONTROLLER_IDLE, CONTROLLER_EARLY, CONTROLLER_RUNS, CONTROLLER_LEAVES };

struct controller {
	struct instance *instance; /* NULL: could not be made */
	char name[RP_NAME_MAX];
	uint32_t kind; /* RP_KIND_… that it is listed as */
	enum conf_mode mode;
	enum controller_life life;
	char error[ERR_TEXT_MAX]; /* why it does not run */
	struct { /* what the configuration says that is being put in force */
		struct rp_plan *plan; /* NULL: committed already, or refused */
		enum conf_mode mode;
		char error[ERR_TEXT_MAX];
	} next;
	struct applied *applied; /* controllers.c: what it said of containers */
	unsigned results[RP_APPLY_FAILED + 1]; /* containers */
};

/* ---- controllers.c: what they are told, and what they say ---- */
/* Tells the running controllers that list or machine may have changed. */
void controllers_sync(struct pipeline *p);
void controllers_post_start(struct pipeline *p, struct ctr *ctr);
void controllers_post_stop(struct pipeline *p, struct ctr *ctr);
uint32_t controllers_take(const struct pipeline *p); /* RP_TAKES_… */
void controllers_timer(struct pipeline *p, struct instance *i, uint64_t cookie);
void controllers_reported(struct pipeline *p, struct instance *i, rp_ctr ctr, uint32_t result,
			  const char *text);
/* Forgets what they said of a container that is gone, or of all (0). */
void controllers_forget(struct pipeline *p, rp_ctr ctr);
void controllers_forget_all(struct controller *c);

struct controller_result;

bool pipeline_controller_result(const struct pipeline *p, unsigned i, const struct ctr *ctr,
				struct controller_result *ret);

#endif
