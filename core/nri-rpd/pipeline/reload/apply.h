/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_APPLY_H
#define PIPELINE_APPLY_H

#include "core/nri-rpd/pipeline/pipeline.h"
#include "proto/trial.pb-c.h"

/* Puts a configuration in force, all of it or nothing. With a report this is a trial: nothing is
 * committed, the moves are reported (allocated like the message's other members), and the process
 * is expected to end. Takes over conf when it succeeds. */
int apply_config(struct pipeline *p, struct conf *conf, Trial__Report *report, struct err *err);
/* In the running transaction: another policy decided so far, this one does from now on. What was
 * the former's own goes; containers keep their CPUs until the new one says otherwise, or with
 * `reset` get the whole machine. Numbers and memory nodes that the new one does not set are again
 * those that the runtime asked for, unless it leaves the container alone altogether, as the policy
 * none does. */
int apply_other_policy(struct pipeline *p, struct instance *policy, bool reset, struct err *err);
/* The machine has changed: the policy looks at it. */
int apply_topology(struct pipeline *p, struct err *err);

/* A module in one role, with the state that it kept. -ELIBBAD: the module cannot be used; -ENOENT:
 * it is nowhere; -EINVAL: it is not of that kind, or no module's name. */
int open_instance(struct pipeline *p, const char *name, uint32_t role, struct instance **ret,
		  struct err *err);

#endif
