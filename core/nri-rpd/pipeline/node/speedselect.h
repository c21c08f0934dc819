/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer of Speed Select data from a forked child, where reading takes long, to the daemon. */
#pragma once

#include <nri-rp/speedselect.h>

#include "core/lib/topo/hotplug.h"
#include "proto/trial.pb-c.h"

struct pipeline;

/* A power unit in the bytes of a message. Both processes are the same program. */
struct speedselect_unit {
	struct rp_sst_punit punit; /* the pointers of its sets are not valid */
	struct rp_idset cpus, bf_cpus;
};

/* Reads the snapshot's Speed Select data into a message. Runs in a child, where nothing is freed.
 * NULL: out of memory. */
Trial__SpeedSelect *speedselect_told(struct topo *t);
/* Stores a message in a snapshot. -ESTALE: the message is from another snapshot; -EINVAL,
 * -ENOMEM. */
int speedselect_take(struct topo *t, const Trial__SpeedSelect *m);
/* Stores the data of an attempt's report, if it has any; a failure is logged. */
void speedselect_took(struct pipeline *p, const Trial__Report *report);
/*
 * Reads Speed Select data of a new snapshot in a child, if the present snapshot uses it. Returns
 * true if the read has started: `then` is called later and takes ownership of `now`. Returns false
 * if Speed Select is not used: nothing is done.
 */
bool speedselect_first(struct pipeline *p, struct topo *now, const struct topo_change *change,
		       void (*then)(struct pipeline *p, struct topo *now,
				    const struct topo_change *change));
/* Cancels a running read because the topology has changed again. */
void speedselect_overtaken(struct pipeline *p);
