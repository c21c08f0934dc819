/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration on the machine as it is. */
#ifndef BALLOONS_PLAN_H
#define BALLOONS_PLAN_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/balloons/config.h"
#include "modules/lib/relief.h"
#include "modules/lib/reserve.h"

struct rp_plan {
	struct blocks memory;
	rp_cfg section;
	struct amount available, reserved;
	bool pin_cpu, pin_memory, balancing, spread_cores, show_containers;
	struct relief_settings relief;
	bool parity; /* balloons are created with minCPUs and grow from there, as in the original */
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
	/* From the machine. */
	struct plan_machine *machine;
	struct cpualloc *alloc;
	struct rp_idset allowed, reserved_cpus,
		sharable; /* sharable: what balloons may share when idle */
	struct device *devices;
	uint32_t n_devices;
	uint32_t idle_at_start; /* CPUs left when the first balloons were made */
};

/* past->hotplug: CPUs have gone away under a configuration that was fine; what is missing is no
 * error. */
int32_t plan_new(const struct modhost *h, rp_cfg section, const struct reserve_past *past,
		 struct rp_plan **ret);
void plan_past(const struct rp_plan *p, struct reserve_past *ret); /* for the next one */
struct rp_plan *plan_free(struct rp_plan *p); /* returns NULL */
struct type *plan_type(const struct rp_plan *p, const char *name); /* or NULL */
void plan_add_index(struct indexes *to, uint32_t index); /* there is room; once */

#endif
