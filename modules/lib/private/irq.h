/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Affinity of interrupts: keeps interrupts on the CPUs of policies' claims, on sinks, or off
 * isolated CPUs.
 *
 * A policy describes the wanted state by rules. irq_commit() passes them to the host's worker,
 * which reads /proc/interrupts and the present affinities, writes those that must change and reads
 * them back. An interrupt that the kernel refuses to move is not tried again.
 *
 * The new affinity is decided from the original one, not from the result of earlier rules; or from
 * the present one if another program has moved the interrupt since. When no rule concerns an
 * interrupt any more, or the rules are removed, it is restored to its original affinity, or to the
 * one that another module set since (nri-rp.host.settings/1).
 */
#pragma once

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>

/* largest size of a pattern or a description, in bytes; longer ones are cut */
#define IRQ_TEXT_MAX 256u

enum irq_kind {
	IRQ_CLAIM, /* the interrupt runs on these CPUs */
	IRQ_MASK, /* the interrupt avoids these CPUs, unless a claim assigns them to it */
	IRQ_STRICT_MASK, /* the interrupt avoids these CPUs */
	IRQ_CONTROLLABLE, /* interrupts that may be moved; no such rule: all interrupts */
};

/* The rules of a policy. The creator adds them, fills the sets, and calls irq_commit(). */
struct irq_rules {
	bool active; /* false: there are no rules, or no longer */
	bool limited; /* rules of IRQ_CONTROLLABLE exist */
	bool failed; /* memory was short; the state is not committed */
	uint32_t refs;
	struct rp_idset sink, isolate, allowed;
	struct irq_rule *first;
	struct blocks memory;
};

struct irq;

/* Returns NULL if out of memory. Claims and masks activate inactive rules. */
struct irq_rules *irq_rules_new(bool active, struct rp_ids allowed);
/* Adds a rule. A pattern is the number of an interrupt or a glob for its description
 * ("PCI-MSI 524289-edge eth0-rx-1"). Ignores an empty list, and NULL as rules. */
void irq_rules_add(struct irq_rules *r, enum irq_kind kind, const struct texts *patterns,
		   struct rp_ids cpus);

/* Submits the rules, which it frees, to the host's worker. Unchanged rules cost only a
 * comparison. Rules NULL: out of memory, which is logged. Creates *q with the first active rules;
 * NULL before, and if the host has no worker. */
void irq_commit(struct irq **q, const struct modhost *h, struct irq_rules *rules);

/* Restores all interrupts, for rp_policy.stop. Nothing may be committed afterwards. */
void irq_stop(struct irq *q);
struct irq *irq_free(struct irq *q); /* returns NULL */

/*
 * For prepare(): calls `found` for each numbered interrupt until it returns a result other than 0,
 * which is returned. -errno: the table cannot be read.
 */
int32_t irq_each(const struct modhost *h,
		 int32_t (*found)(void *arg, uint32_t number, const char *description), void *arg);

/*
 * Reads controllableInterrupts of a section: patterns for descriptions. "*" and an empty list mean
 * all interrupts; *ret is empty then. Returns 0, or an error with the line of the configuration
 * file.
 */
int32_t irq_read_controllable(const struct modhost *h, struct blocks *memory, rp_cfg section,
			      struct texts *ret);

/* List of interrupts. */
struct irq_name {
	struct irq_name *next;
	uint32_t number;
	char description[];
};

/*
 * For prepare(): stores the existing interrupts that are not controllable. Returns 0, -RP_ENOMEM,
 * or the error of irq_each().
 */
int32_t irq_read_denied(const struct modhost *h, struct blocks *memory,
			const struct texts *controllable, struct irq_name **ret);
/* Returns the first of the denied interrupts that a pattern names by number or description, or
 * NULL. */
const struct irq_name *irq_find_denied(const struct irq_name *denied, const char *pattern);

/* Parses a line of /proc/interrupts below its head, which names n_cpus CPUs. Returns 0 with number
 * and description, or -RP_ENOENT for a line without a number. */
int32_t irq_parse_line(const char *line, size_t len, uint32_t n_cpus, uint32_t *ret_number,
		       char description[IRQ_TEXT_MAX]);

struct irq_stats {
	uint64_t writes, failures;
};
void irq_stats(const struct irq *q, struct irq_stats *ret);
