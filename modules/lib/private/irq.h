/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Affinity of interrupts: keeps interrupts on the CPUs of policies' claims, on sinks, or off
 * isolated CPUs.
 *
 * A policy describes the wanted state. irq_commit() passes it to the host's worker, which reads
 * /proc/interrupts and the present affinities, writes those that must change and reads them back.
 * An interrupt that the kernel refuses to move is not tried again.
 *
 * The new affinity is decided from the original one, not from the result of earlier wishes; or from
 * the present one if another program has moved the interrupt since. When no wish concerns an
 * interrupt any more, or the rules are removed, it is restored to its original affinity, or to the
 * one that another module set since (nri-rp.host.settings/1).
 */
#ifndef NRI_RP_LIB_IRQ_H
#define NRI_RP_LIB_IRQ_H

#include <stdbool.h>

#include <nri-rp/lib/blocks.h>

/* largest size of a pattern or a description, in bytes; longer ones are cut */
#define IRQ_TEXT_MAX 256u

/* A list of patterns. A pattern is the number of an interrupt or a glob for its description
 * ("PCI-MSI 524289-edge eth0-rx-1"). */
struct irq_patterns {
	const char *const *list;
	uint32_t n;
};

struct irq_claim {
	struct irq_patterns patterns;
	struct rp_ids cpus; /* empty: the claim is ignored */
};

/* CPUs that interrupts must avoid. */
struct irq_mask {
	struct irq_claim of;
	/* true: the interrupt avoids all CPUs of the mask; false: only those that no claim assigns
	 * to the interrupt */
	bool strict;
};

/* A wanted state, which irq_commit() copies. */
struct irq_wish {
	bool active; /* false: there are no rules, or no longer */
	const struct irq_claim *claims;
	uint32_t n_claims;
	struct rp_ids sink, isolate, allowed;
	struct irq_patterns controllable; /* globs; none: all interrupts */
	const struct irq_mask *masks;
	uint32_t n_masks;
};

struct irq;

/* Returns NULL if out of memory. If the host has no worker, all functions do nothing. */
struct irq *irq_new(const struct modhost *h);
struct irq *irq_free(struct irq *q); /* returns NULL */
/* Submits the wanted state. An unchanged one costs only a comparison. */
void irq_commit(struct irq *q, const struct irq_wish *wish);

/* Restores all interrupts, for rp_policy.stop. Nothing may be committed afterwards. */
void irq_stop(struct irq *q);

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

struct irq_name {
	uint32_t number;
	const char *description;
};

struct irq_names {
	struct irq_name *list;
	uint32_t n, cap;
};

/*
 * For prepare(): stores the existing interrupts that are not controllable. Returns 0, -RP_ENOMEM,
 * or the error of irq_each().
 */
int32_t irq_read_denied(const struct modhost *h, struct blocks *memory,
			const struct texts *controllable, struct irq_names *ret);
/* Returns the first of the denied interrupts that a pattern names by number or description, or
 * NULL. */
const struct irq_name *irq_find_denied(const struct irq_names *denied, const char *pattern);

/* Parses a line of /proc/interrupts below its head, which names n_cpus CPUs. Returns 0 with number
 * and description, or -RP_ENOENT for a line without a number. */
int32_t irq_parse_line(const char *line, size_t len, uint32_t n_cpus, uint32_t *ret_number,
		       char description[IRQ_TEXT_MAX]);

struct irq_stats {
	uint64_t writes, failures;
};
void irq_stats(const struct irq *q, struct irq_stats *ret);

#endif
