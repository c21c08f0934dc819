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

/* ---- controllers_life.c: what becomes of controllers when a configuration is put in force ---- */
bool controller_runs(const struct controller *c);
struct controller *controller_free(struct controller *c);
/* The controllers of the configuration, in its order, have looked at their sections: nothing has
 * changed yet. Followed by controllers_abort() or by controllers_switch(), after an error too. */
int controllers_prepare(struct pipeline *p, const struct conf *conf, struct err *err);
/* Required ones that do not run yet are started, those that leave are stopped, and the new list is
 * told of containers from now on. What they put back has to come before what the policy sets.
 * Followed by controllers_abort() or by controllers_take_over(). */
int controllers_switch(struct pipeline *p, const struct conf *conf, struct err *err);
/* All is as it was before. */
void controllers_abort(struct pipeline *p);
void controllers_take_over(struct pipeline *p);

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

#endif
