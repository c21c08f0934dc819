/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node with one instance of a module on the daemon's own pipeline. The rig plays the runtime: it
 * makes requests, and takes all updates. After each request rig_check verifies the invariants over
 * all containers. Decisions can be logged as text for comparisons.
 */
#pragma once

#include "core/nri-rpd/host/instance.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/nri-rpd/pipeline/pipeline.h"

struct rig {
	struct check *check;
	struct shim *shim; /* covers around the module: of the case, or own_shim */
	struct shim own_shim;
	struct pipeline *pipeline; /* pipeline of the rig; NULL: not open */
	struct host_env *env; /* the pipeline's environment of modules */
	struct instance *instance;
	struct conf *conf; /* active configuration, possibly of the check; NULL: none yet */
	struct buf *log; /* log of the case; NULL: log messages are dropped */
	bool dry; /* try each placement as a trial first, and drop the trial */
	bool unmanaged; /* refused containers run unmanaged (onPolicyError: unmanaged) */
	/* the policy has refused a change of the machine: CPU sets may have CPUs that are
	 * offline */
	bool lost_cpus;
	uint64_t cookie; /* cookie of the timer that expires */
	bool late; /* results of jobs are deferred until the case delivers them */
	bool faulty; /* calls are made to fail: sync() and release() may fail once */
	const char *admitting; /* id of the pod being admitted; NULL: none */
	struct rp_event event; /* event being delivered */
	struct err posted; /* error that delivering a posted event has returned */
	uint64_t n_breaks; /* violated invariants when the running request began */
	unsigned n_refused, n_unmanaged, n_posted;
};

/* Properties of a container to create. */
struct wish {
	char id[64], pod[64], ns[32];
	uint32_t qos;
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
	struct kv annotations[4];
	uint32_t n_annotations;
	uint64_t created_ns;
};

/* Requests and limits of a guaranteed container. */
#define WISH_GUARANTEED(mcpu, bytes)                                                               \
	.qos = RP_QOS_GUARANTEED, .cpu_request = (mcpu), .cpu_limit = (mcpu),                      \
	.mem_request = (bytes), .mem_limit = (bytes)

/* Result: the policy has refused the request with an allowed code; err has the reason. The state is
 * unchanged. */
#define RIG_REFUSED 1

/* Converts a refusal to success. */
static inline int rig_settle(int result)
{
	return result == RIG_REFUSED ? 0 : result;
}

/* Opens the rig. `shim` wraps the module's callbacks for the case (shim.h); NULL: the rig's own
 * wrappers count and check calls but change none. */
int rig_open(struct rig *r, struct check *c, struct shim *shim, struct err *err);
void rig_close(struct rig *r);
/* Creates the instance. Returns RIG_REFUSED when create() fails. */
int rig_create(struct rig *r, struct err *err);
/* Calls prepare, commit and sync. Returns RIG_REFUSED when prepare() fails. */
int rig_configure(struct rig *r, struct err *err);
/* Reads the configuration again and activates it. */
int rig_reload(struct rig *r, struct err *err);
/* Creates and configures the instance; a refusal is an error. */
int rig_start(struct rig *r, struct err *err);
/* Replaces the instance by a new one, passes the saved state to it, and synchronizes. */
int rig_restart(struct rig *r, struct err *err);
void rig_destroy(struct rig *r);
/* Runs the loop until the worker has finished its jobs. */
int rig_finish_jobs(struct rig *r, struct err *err);

/* Calls prepare and commit only. */
int rig_commit(struct rig *r, struct conf *conf, struct err *err);
/* Removes all containers. Call after the instance was destroyed. */
int rig_wipe(struct rig *r, struct err *err);

/* Runs fn in a decision of the pipeline. */
int rig_decide(struct rig *r, int (*fn)(struct rig *r, struct ctr *ctr, struct err *err),
	       struct ctr *ctr, const char *what, struct err *err);
/* Adds a container as the runtime reports it, without a decision. */
int rig_put(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err);
/* Removes a container that does not live, and its pod after the last one. */
int rig_drop(struct rig *r, struct ctr *ctr, struct err *err);
/* Returns the transaction of the running decision. */
struct txn *rig_txn(const struct rig *r);
int rig_sync(struct rig *r, struct err *err);
int rig_add(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err);
int rig_resize(struct rig *r, struct ctr *ctr, const struct wish *w, struct err *err);
/* Releases the container and removes it. */
int rig_remove(struct rig *r, struct ctr *ctr, struct err *err);
int rig_release(struct rig *r, struct ctr *ctr, struct err *err);
int rig_set_online(struct rig *r, struct rp_ids cpus, struct err *err);
int rig_timer(struct rig *r, uint64_t cookie, struct err *err);
/* Delivers an event; ctr: of RP_EVENT_STARTED. */
int rig_event(struct rig *r, uint32_t type, const struct ctr *ctr, struct err *err);

/* Writes the decisions of all live containers, a line each, in the order of creation. */
void rig_describe(struct rig *r, struct buf *out);
/* Verifies the invariants that must hold between requests. */
int rig_check(struct rig *r, struct err *err);
void rig_log(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct rp_ids rig_online(const struct rig *r);

/* Returns the module's own pointer. */
struct rp_instance *rig_instance(const struct rig *r);
/* Returns RIG_REFUSED if a module may return this code; otherwise fills err and returns its
 * code. */
int rig_known_code(int code, const char *what, struct err *err);
/* Compares two texts by lines. If they differ, the error is the formatted text and the first
 * difference: "…: line 3: A … instead of B". */
int text_same(struct buf *expected, struct buf *found, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
