/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Isolation of exclusive CPUs: keeps the rest of the node off them, by the member `isolation` of a
 * policy's section. Each key is off by default.
 *
 *   quota: off              containers that own all their CPUs run without CPU quota
 *   hostTasks: away         cgroups of hostSlices leave exclusive CPUs (cgroup v2)
 *   partition: isolated     no load balancing over a container's exclusive CPUs (cgroup v2)
 *   kernelWork: away        unbound kernel work and interrupts leave exclusive CPUs
 *   siblings: own           exclusive CPUs are whole cores, so that no other container runs on
 *                           another thread of their cores
 *   bestEffort: idle        CPUs that run only pods of class BestEffort count as idle CPUs
 *
 * A policy embeds struct isolation_keys in its plan, reads it with isolation_read(), and names
 * isolation_part as its life_ops.part. The host's worker writes the files and records them with
 * nri-rp.host.settings/1, so that they are restored when a container or the policy ends, and by the
 * next process after a crash. The policy chooses the cores for `siblings` itself.
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/life.h>
#include <nri-rp/lib/section.h>

#define ISOLATION_SLICES_MAX 8u
#define ISOLATION_SLICE_MAX 64u /* size of a buffer for a slice's name, with the NUL */

#define ISOLATION_KEYS                                                                             \
	SECTION_MAP("isolation", "What is kept off the exclusive CPUs of containers."),            \
		SECTION_BOOL("isolation.quota", "true",                                            \
			     "off: containers that own all their CPUs run without CPU quota."),    \
		SECTION_CHOICE("isolation.hostTasks", "stay|away", "stay",                         \
			       "away: cgroups of hostSlices leave exclusive CPUs."),               \
		SECTION_TEXTS("isolation.hostSlices",                                              \
			      "Cgroups below the root that hostTasks is about; by default "        \
			      "system.slice and user.slice.",                                      \
			      "Name of one, as system.slice."),                                    \
		SECTION_CHOICE("isolation.partition", "member|isolated", "member",                 \
			       "isolated: the scheduler does not balance load over exclusive "     \
			       "CPUs (Linux 6.8, cgroup v2)."),                                    \
		SECTION_CHOICE("isolation.kernelWork", "stay|away", "stay",                        \
			       "away: unbound kernel work and interrupts leave exclusive CPUs."),  \
		SECTION_CHOICE("isolation.siblings", "shared|own", "shared",                       \
			       "own: exclusive CPUs are whole cores; a number of CPUs is rounded " \
			       "up to whole cores."),                                              \
		SECTION_CHOICE("isolation.bestEffort", "normal|idle", "normal",                    \
			       "idle: to the scheduler, a CPU that runs only pods of class "       \
			       "BestEffort is idle (cgroup v2).")

struct isolation_keys {
	bool no_quota, host_away, partition, kernel_away, idle;
	bool own_quota; /* the policy lifts quotas itself */
	bool follow; /* containers get the CPUs that a scheduler chose for their pod (follow.h) */
	/* Returns true for a container that has these CPUs, and thus no quota. NULL: none has. */
	bool (*follows)(const struct rp_instance *inst, const struct rp_ctr_info *info);
	uint32_t threads; /* siblings: own: CPUs of the cores that containers get; otherwise 0 */
	uint32_t n_slices;
	char slices[ISOLATION_SLICES_MAX][ISOLATION_SLICE_MAX];
};

/* Reads the keys of a policy's section. A key that the node's kernel cannot apply is an error with
 * the line of the configuration file. */
int32_t isolation_read(const struct modhost *h, rp_cfg section, struct isolation_keys *ret);

/* Returns a number of exclusive CPUs, rounded up to whole cores with siblings: own. */
static inline int64_t isolation_cores(const struct isolation_keys *k, int64_t n)
{
	return k->threads > 1 ? (n + k->threads - 1) / k->threads * k->threads : n;
}

/* Removes the CPUs of cores that are not in the set as a whole, with siblings: own. Cores with
 * fewer CPUs than the largest ones are removed, too, so that each choice of whole cores has a
 * number of CPUs that isolation_cores() returns. */
void isolation_narrow(const struct modhost *h, const struct isolation_keys *k,
		      struct rp_idset *cpus);
/* Returns true if the set consists of such cores, or the key is off. */
bool isolation_permits(const struct modhost *h, const struct isolation_keys *k, struct rp_ids cpus);

/* Checks a number of CPUs. Returns 0, or an error with a message, which begins with `whose`. */
int32_t isolation_check_number(const struct modhost *h, const struct isolation_keys *k,
			       const char *whose, int64_t n);
/* Checks the CPUs that an annotation names. Returns 0, or an error with a message. */
int32_t isolation_check_named(const struct modhost *h, const struct isolation_keys *k,
			      const char *annotation, struct rp_ids cpus);

/* Part of a policy's life. ops.isolation is the offset of the keys in the plan. */
extern const struct life_part isolation_part;

/* For policies that move interrupts themselves (ops.own_interrupts): stores the CPUs that all
 * interrupts must leave. Returns true if these CPUs differ from the result of the last call. */
bool isolation_interrupts(struct rp_instance *inst, struct rp_idset *ret);
