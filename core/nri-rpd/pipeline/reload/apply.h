/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activation of a configuration: apply_config() switches policy, controllers and adjustments to a
 * new configuration completely or not at all. Forked attempts call the same function in their
 * child. Reading and saving files is done by reload.c.
 */
#pragma once

#include "core/nri-rpd/pipeline/pipeline.h"
#include "proto/trial.pb-c.h"

/* Activates a configuration, completely or not at all. On success takes ownership of conf. With a
 * report this is an attempt in a child: nothing is committed, moves are reported, and the process
 * has to end afterwards, because the report's members and the new instances are not freed. */
int apply_config(struct pipeline *p, struct conf *conf, Trial__Report *report, struct err *err);
/*
 * Hands all containers to another policy in the running transaction. Removes what the previous
 * policy had decided for itself. Containers keep their CPUs until the new policy decides; with
 * `reset` they get all CPUs of the node first.
 *
 * Numbers and memory nodes that the new policy does not set return to the values requested by the
 * runtime. A policy that leaves a container untouched, as policy none does, leaves these values
 * unchanged too.
 */
int apply_other_policy(struct pipeline *p, struct instance *policy, bool reset, struct err *err);
/* Lets the policy adapt to a changed topology. Returns 0 without a policy. */
int apply_topology(struct pipeline *p, struct err *err);

/* Loads a module in one role and passes it its saved state. -ELIBBAD: the module cannot be used.
 * -ENOENT: there is no such module. -EINVAL: the name is not valid or the module has no such role.
 * -ENOMEM. */
int open_instance(struct pipeline *p, const char *name, uint32_t role, struct instance **ret,
		  struct err *err);
