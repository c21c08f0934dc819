/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the topology-aware policy as a configuration section states them. settings_read()
 * reads and checks a section; plan.h applies the settings to the CPUs of the node.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/policy.h>

#include "modules/lib/private/amount.h"
#include <nri-rp/lib/cpualloc.h>
#include "modules/lib/private/cpuclass.h"
#include <nri-rp/lib/glob.h>
#include "modules/lib/private/irq.h"
#include "modules/lib/private/isolation.h"
#include <nri-rp/lib/relief.h>
#include "modules/lib/private/mempolicy.h"
#include "modules/lib/private/schedclass.h"

#define TA_DOMAIN ".resource-policy.nri.io"
#define TA_TEXT_MAX 160u /* size of a buffer for the text of a CPU set in a message */
#define N_QOS 3u

enum overflow { OVERFLOW_RESERVED, OVERFLOW_REFUSE };

struct namespace_classes {
	struct {
		const char *namespace;
		int32_t class;
	} * list;
	uint32_t n;
};

struct settings {
	rp_cfg section;
	struct blocks memory; /* allocated memory that the lists below point into */
	bool pin_cpu, pin_memory, prefer_isolated, prefer_shared, colocate_pods,
		colocate_namespaces, colocate_strict, test_hints;
	struct relief_settings relief;
	struct isolation_keys isolation;
	uint32_t claim_levels; /* further levels of devices for claims, of 1 << RP_LEVEL_… */
	bool parity; /* compare pools in the order of the original topology-aware policy */
	bool tight; /* packing: containers with exclusive CPUs go to the fullest pool that fits */
	struct texts reserved_namespaces;
	/* patterns of interrupts that may be moved; empty: all interrupts */
	struct texts interrupts;
	/* interrupts of the node that no pattern in `interrupts` matches */
	struct irq_name *denied;
	struct amount available, reserved;
	enum cpualloc_prio prio;
	uint32_t burstable_level; /* RP_LEVEL_… of the configuration, which the topology may lack */
	enum overflow overflow;
	struct schedclasses sched;
	struct mempolicies mempolicies;
	struct namespace_classes sched_ns, mempolicy_ns;
	int32_t sched_qos[N_QOS];
	struct cpuclass_defs *classes; /* CPU classes; NULL: none */
	/* CPU class indices, or CPUCLASS_NONE */
	uint32_t shared_class, reserved_class, exclusive_class;
	/* Configuration nodes that explanations of a placement refer to. */
	rp_cfg isolated_at, shared_at, namespaces_at, overflow_at;
};

extern const struct rp_schema ta_schema;
/* Reads and checks a section. Returns 0, or an error with a message; settings_fini() releases the
 * settings in both cases. */
int32_t settings_read(const struct modhost *h, rp_cfg section, struct settings *ret);
void settings_fini(struct settings *s);
/* Returns the RP_LEVEL_… named by text (system, package, die, numa, l3cache …); 0: unknown name. */
uint32_t level_parse(const char *text);
/*
 * Returns true if a pattern of the list matches text. A malformed pattern ends the search, so later
 * patterns are not tried.
 */
bool strings_match(const struct texts *patterns, const char *text);
