/* SPDX-License-Identifier: Apache-2.0 */
/* What conn.c and sync.c share. */
#ifndef SIM_CONN_INTERNAL_H
#define SIM_CONN_INTERNAL_H

#include "core/nri-rp-sim/conn.h"
#include "core/nri-rp-sim/messages.h"
#include "core/wire/trunk.h"

#define CONN_PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define CONN_RUNTIME_SERVICE "nri.pkg.api.v1alpha1.Runtime"

struct tap;

/* Updates that the plugin asked for, until the lock is free. */
struct waiting {
	struct waiting *next;
	struct rpc_request *req;
	Nri__UpdateContainersRequest *msg;
};

struct conn {
	struct sim *s;
	int fd;
	struct loop_io *io;
	struct loop_timer *registration, *sync_timer;
	struct conn_faults faults;
	uint64_t n_active;

	enum conn_state state;
	struct tap *tap;
	struct trunk *trunk;
	struct rpc *rpc; /* the end that asks the plugin */
	char name[128];
	uint32_t events;
	bool no_methods; /* StateChange instead */
	struct waiting *waiting, *last_waiting;

	/* Synchronize under way: the objects that are left to send. */
	struct arena *sync_arena;
	Nri__PodSandbox **pods;
	Nri__Container **ctrs;
	size_t n_pods, n_ctrs, next_pod, next_ctr;
	size_t pods_a_part, ctrs_a_part;
	bool more; /* of the part under way */
};

void conn_carry_out_waiting(struct conn *c);

/* sync.c: from a configured plugin to an active one, or none. */
void sync_begin(struct conn *c);
void sync_abandon(struct conn *c);
void sync_late(void *arg);

#endif
