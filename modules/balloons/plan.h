/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: the configuration applied to the topology of this node. */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/config.h"
#include "modules/lib/private/isolation.h"
#include <nri-rp/lib/relief.h>
#include <nri-rp/lib/reserve.h>

struct rp_plan {
	struct blocks memory;
	rp_cfg section;
	struct amount available, reserved;
	bool pin_cpu, pin_memory, balancing, spread_cores, show_containers;
	struct relief_settings relief;
	struct isolation_keys isolation;
	bool parity; /* balloons start with minCPUs, as in the original policy */
	struct texts reserved_namespaces, controllable;
	struct exprs preserve;
	struct type *types;
	uint32_t n_types;
	struct type *reserved_type, *default_type;
	struct load_class *loads;
	uint32_t n_loads;
	struct schedclasses scheds;
	struct mempolicies mempolicies;
	struct cpuclass_defs classes;
	uint32_t idle_class;
	bool uses_irq, uses_pods;
	/* Values from the topology. */
	struct plan_machine *machine;
	struct cpualloc *alloc;
	struct rp_idset allowed, reserved_cpus,
		sharable; /* sharable: CPUs that balloons may share when idle */
	struct device *devices;
	uint32_t n_devices;
	uint32_t idle_at_start; /* free CPUs after the initial balloons were created */
};

/* ops.fill and ops.plan_fini (life.h). past->hotplug: CPUs went offline under a valid
 * configuration, so missing CPUs are no error. */
int32_t plan_fill(struct rp_instance *inst, rp_cfg section, const struct reserve_past *past,
		  struct rp_plan *p);
void plan_fini(struct rp_plan *p);
/* Stores the reserved CPUs of this plan, for the next plan. */
void plan_past(const struct rp_plan *p, struct reserve_past *ret);
/* Returns the type of that name; NULL: none. */
struct type *plan_type(const struct rp_plan *p, const char *name);
/* Adds an index unless it is present. The caller has reserved the space. */
void plan_add_index(struct indexes *to, uint32_t index);
