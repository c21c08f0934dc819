/* SPDX-License-Identifier: Apache-2.0 */
/* A section as it is written. */
#ifndef TOPOLOGY_AWARE_CONFIG_H
#define TOPOLOGY_AWARE_CONFIG_H

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/amount.h"
#include "modules/lib/cpualloc.h"
#include "modules/lib/cpuclass.h"
#include "modules/lib/glob.h"
#include "modules/lib/irq.h"
#include "modules/lib/relief.h"
#include "modules/lib/mempolicy.h"
#include "modules/lib/schedclass.h"

#define TA_DOMAIN ".resource-policy.nri.io"
#define TA_TEXT_MAX 160u /* sets in messages */
#define N_QOS 3u

enum overflow { OVERFLOW_RESERVED, OVERFLOW_REFUSE };

struct sched_rule {
	const char *namespace;
	int32_t class;
};

struct settings {
	rp_cfg section;
	struct blocks memory; /* of the lists below */
	bool pin_cpu, pin_memory, prefer_isolated, prefer_shared, colocate_pods,
		colocate_namespaces, test_hints;
	struct relief_settings relief;
	bool parity; /* the order of the original */
	bool tight; /* packing: exclusive containers leave large holes */
	struct texts reserved_namespaces;
	struct texts interrupts; /* that may be moved; none: all */
	struct irq_names denied; /* those that may not */
	struct amount available, reserved;
	enum cpualloc_prio prio;
	uint32_t burstable_level; /* RP_LEVEL_…, as written */
	enum overflow overflow;
	struct schedclasses sched;
	struct mempolicies mempolicies;
	struct sched_rule *mempolicy_ns; /* memory policies by namespace */
	uint32_t n_mempolicy_ns;
	struct sched_rule *sched_ns;
	uint32_t n_sched_ns;
	int32_t sched_qos[N_QOS];
	struct cpuclass_defs *classes; /* NULL: there are none */
	uint32_t shared_class, reserved_class, exclusive_class; /* or CPUCLASS_NONE */
	/* Where a decision comes from, for explanations. */
	rp_cfg isolated_at, shared_at, namespaces_at, overflow_at;
};

extern const struct rp_schema ta_schema;
int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret);
void settings_fini(struct settings *s);
/* system, package, die, numa, l3cache …; 0: none of these. */
uint32_t level_parse(const char *text);
/* Does a list of patterns have one for this? A malformed one ends the search. */
bool strings_match(const struct texts *patterns, const char *text);

#endif
