/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node for one instance of a policy: requests as the daemon makes them, each one transaction, and
 * after each the things that have to hold, looked at anew over all containers. What was decided is
 * written down as text, to be compared.
 */
#ifndef MODCHECK_RIG_H
#define MODCHECK_RIG_H

#include "core/nri-rpd/host/instance.h"
#include "core/nri-rp-modcheck/check.h"
#include "core/nri-rp-modcheck/shim.h"
#include "core/lib/util/loop.h"

#define RIG_NAMES_MAX 64u

struct rig {
	struct check *check;
	struct shim *shim; /* around the module: the case's, or our own */
	struct shim own_shim;
	struct host_env env;
	struct fs_root root;
	struct instance *instance;
	struct conf *conf; /* in force; NULL: none yet, or the check's */
	struct txn *txn;
	struct buf *log; /* NULL: nothing is written down */
	bool open;
	bool dry; /* try each placement first, and drop it */
	bool unmanaged; /* who is refused runs all the same (onPolicyError: unmanaged) */
	/* the policy has refused a change of the machine: sets may have CPUs that are gone */
	bool lost_cpus;
	uint64_t cookie; /* of the timer that goes off */
	uint64_t last_allocate_ns;
	bool late; /* results of jobs are kept back: the case lets them come */
	bool faulty; /* calls are made to fail: sync() and release() may do so too, once */
	struct pod *pod; /* that is being admitted, or ends */
	struct rp_event event; /* that is being delivered */
	struct err posted; /* what was wrong with one that was posted */
	/* Before and after allocate(), in its transaction; NULL: nothing. */
	void (*at_creation)(struct rig *r, bool after);
	unsigned n_refused, n_unmanaged, n_posted;
};

/* What a container is to be like. */
struct wish {
	char id[64], pod[64], ns[32];
	uint32_t qos;
	int64_t cpu_request, cpu_limit, mem_request, mem_limit;
	struct kv annotations[4];
	uint32_t n_annotations;
	uint64_t created_ns;
};

/* The policy said no, with a code that it may give; err has the reason. Everything is as before. */
#define RIG_REFUSED 1

/* For whom a refusal is as good as success. */
static inline int rig_settle(int result)
{
	return result == RIG_REFUSED ? 0 : result;
}

/* shim: NULL for one that only looks. */
int rig_open(struct rig *r, struct check *c, struct shim *shim, struct err *err);
void rig_close(struct rig *r);
/* Creates the instance. Returns RIG_REFUSED when create() fails. */
int rig_create(struct rig *r, struct err *err);
/* prepare, commit, sync. RIG_REFUSED: prepare did not like it. */
int rig_configure(struct rig *r, struct err *err);
/* The configuration read again and put in force. */
int rig_reload(struct rig *r, struct err *err);
/* All three at once; anything but success is an error. */
int rig_start(struct rig *r, struct err *err);
/* Destroys the instance, makes another one, gives it the state of the former, synchronises. */
int rig_restart(struct rig *r, struct err *err);
void rig_destroy(struct rig *r);
/* Lets the loop run until the worker has done what it was given. */
int rig_finish_jobs(struct rig *r, struct err *err);

/* prepare and commit alone. */
int rig_commit(struct rig *r, struct conf *conf, struct err *err);
/* Forgets all containers; the instance is gone before. */
int rig_wipe(struct rig *r, struct err *err);

/* One request in one transaction: fn, the invariants, commit; or all of it undone. */
int rig_decide(struct rig *r, int (*fn)(struct rig *r, struct ctr *ctr, struct err *err),
	       struct ctr *ctr, const char *what, struct err *err);
/* Makes a container as the runtime tells of it, with nothing decided. */
int rig_put(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err);
void rig_drop(struct rig *r, struct ctr *ctr);
int rig_sync(struct rig *r, struct err *err);
int rig_add(struct rig *r, const struct wish *w, struct ctr **ret, struct err *err);
int rig_resize(struct rig *r, struct ctr *ctr, const struct wish *w, struct err *err);
/* For rig_decide(): it runs although allocate() has refused it for the reason in err. */
int rig_call_unmanaged(struct rig *r, struct ctr *ctr, struct err *err);
/* Releases and removes. */
int rig_remove(struct rig *r, struct ctr *ctr, struct err *err);
int rig_release(struct rig *r, struct ctr *ctr, struct err *err);
int rig_set_online(struct rig *r, struct rp_ids cpus, struct err *err);
int rig_timer(struct rig *r, uint64_t cookie, struct err *err);
/* ctr: of RP_EVENT_STARTED. */
int rig_event(struct rig *r, uint32_t type, const struct ctr *ctr, struct err *err);

/* What is decided for all live containers, a line each, by creation. */
void rig_describe(struct rig *r, struct buf *out);
/* Everything that has to hold between requests. */
int rig_check(struct rig *r, struct err *err);
void rig_log(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct rp_ids rig_online(const struct rig *r);

/* The module's own pointer. */
struct rp_instance *rig_instance(const struct rig *r);
/* May a module give this result? Fills err when not. */
int rig_known_code(int code, const char *what, struct err *err);
/* Where two texts of lines part, for people: "line 3: A … instead of B". False: they are equal. */
bool text_differs(struct buf *a, struct buf *b, char *ret, size_t size);

#endif
