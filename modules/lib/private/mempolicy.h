/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory policy classes: the kernel's memory policy (set_mempolicy(2)) with which a container
 * starts, over nodes that depend on the container's placement. It is set at creation and never
 * changed later. Runtimes need NRI 0.12.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>
#include <nri-rp/lib/section.h>

#define MEMPOLICY_NONE (-1)
#define MEMPOLICY_NODES_MAX 256u /* limit of an explicit list of nodes, bytes */
#define MEMPOLICY_FLAGS_MAX 40u /* limit of all flags as text, bytes */

enum mempolicy_nodes {
	MEMPOLICY_ALLOWED, /* the memory nodes that the container is pinned to */
	MEMPOLICY_ALL,
	MEMPOLICY_CPU_NODES, /* nodes of the container's CPUs */
	MEMPOLICY_CPU_PACKAGES, /* nodes of the packages of its CPUs */
	MEMPOLICY_WITHIN_SOCKET, /* allowed nodes in the packages of its CPUs */
	MEMPOLICY_MAX_DISTANCE, /* nodes at most `distance` from a node of its CPUs */
	MEMPOLICY_LIST
};

struct mempolicy {
	const char *name;
	int64_t mode; /* mode, MPOL_… of Linux */
	enum mempolicy_nodes nodes;
	uint32_t distance;
	const char *list; /* node list as written, with MEMPOLICY_LIST */
	bool relative;
	char flags[MEMPOLICY_FLAGS_MAX]; /* flags as for RP_F_MEMPOLICY_FLAGS */
};

struct mempolicies {
	struct mempolicy *list;
	uint32_t n;
};

/* Rows of a policy's schema. */
#define MEMPOLICY_KEYS                                                                             \
	SECTION_LIST("memoryPolicyClasses",                                                        \
		     "Memory policy classes of containers, set at their start."),                  \
		SECTION_MAP("memoryPolicyClasses[]", "A class."),                                  \
		SECTION_KEY("memoryPolicyClasses[].name", STRING, "Unique name.",                  \
			    .flags = RP_KEY_REQUIRED | RP_KEY_NON_EMPTY),                          \
		SECTION_KEY("memoryPolicyClasses[].mode", STRING,                                  \
			    "default, bind, preferred, preferred-many, interleave, "               \
			    "weighted-interleave or local; or the kernel's name, like "            \
			    "MPOL_INTERLEAVE.",                                                    \
			    .flags = RP_KEY_REQUIRED),                                             \
		SECTION_TEXT(                                                                      \
			"memoryPolicyClasses[].nodes",                                             \
			"all, cpu-nodes, cpu-packages, within-socket, allowed, max-dist:N, or a "  \
			"list of nodes; by default allowed."),                                     \
		SECTION_LIST("memoryPolicyClasses[].flags", "Flags of the mode."),                 \
		SECTION_TEXT("memoryPolicyClasses[].flags[]",                                      \
			     "static, relative or numa-balancing; or the kernel's name, like "     \
			     "MPOL_F_STATIC_NODES.")

/* Reads memoryPolicyClasses of a section. Texts are borrowed from the configuration. Returns 0, or
 * an error with the line of the configuration file. */
int32_t mempolicy_read(const struct modhost *h, struct blocks *memory, rp_cfg section,
		       struct mempolicies *ret);
/* Returns the index of a class, or MEMPOLICY_NONE. */
int32_t mempolicy_find(const struct mempolicies *classes, const char *name);
/*
 * Stages the memory policy of a container that is being created, after its CPUs and memory nodes
 * were staged: by its annotations, else the class `fallback` (MEMPOLICY_NONE: none). A policy that
 * cannot be set is logged and makes the container degraded. Returns 0 or -RP_ENOMEM.
 */
int32_t mempolicy_stage(const struct modhost *h, rp_txn txn, rp_ctr ctr,
			const struct mempolicies *classes, int32_t fallback);
