/* SPDX-License-Identifier: Apache-2.0 */
/* What only the platform tells of its frequencies, read in a child and taken over from there. */
#ifndef PIPELINE_CONFIG_SPEEDSELECT_H
#define PIPELINE_CONFIG_SPEEDSELECT_H

#include "core/lib/topo/hotplug.h"
#include "proto/trial.pb-c.h"

struct pipeline;

/* ---- speedselect.c ---- */
/* In a child: what the snapshot's getters tell; NULL: out of memory. It is not freed. */
Trial__SpeedSelect *speedselect_told(struct topo *t);
/* What a child has told of the same snapshot is what its getters tell. -ESTALE: of another one;
 * -EINVAL, -ENOMEM. */
int speedselect_take(struct topo *t, const Trial__SpeedSelect *m);
/* The same of a trial, if that has asked for it; a failure is logged. */
void speedselect_took(struct pipeline *p, const Trial__Report *report);
/*
 * Where the platform is in use it is read before anybody is told of the changed machine: `then` is
 * called later and takes `now` over. False: it is not, and nothing is done.
 */
bool speedselect_first(struct pipeline *p, struct topo *now, const struct topo_change *change,
		       void (*then)(struct pipeline *p, struct topo *now,
				    const struct topo_change *change));
/* The machine has changed again: what is being read is of no use any more. */
void speedselect_overtaken(struct pipeline *p);

#endif
