/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Affinity of interrupts: keeps them on the CPUs of those who claim them, on sinks, or off isolated
 * CPUs.
 *
 * A policy describes the wanted state; irq_commit() gives it to the host's worker, which reads
 * /proc/interrupts and the present affinities, writes those that should change and reads them back.
 * An interrupt that the kernel does not let move is left alone from then on.
 *
 * Where an interrupt may be is decided from where it was found, not from what earlier wishes have
 * made of it; or, if somebody else has moved one of ours, from where it is now. When no wish is
 * about it any more, or rules are gone, the affinity that it had before we first changed it is put
 * back, or what another module has made of it since (nri-rp.host.settings/1).
 */
#ifndef NRI_RP_LIB_IRQ_H
#define NRI_RP_LIB_IRQ_H

#include <stdbool.h>

#include "modules/lib/blocks.h"

#define IRQ_TEXT_MAX 256u /* of a pattern or a description; what is longer is cut off */

/* A list of patterns; each the number of an interrupt or a glob over its description ("PCI-MSI
 * 524289-edge eth0-rx-1"). */
struct irq_patterns {
	const char *const *list;
	uint32_t n;
};

struct irq_claim {
	struct irq_patterns patterns;
	struct rp_ids cpus; /* empty: as if it were not there */
};

/* The CPUs that interrupts are kept off. */
struct irq_mask {
	struct irq_claim of;
	bool strict; /* even if these CPUs are claimed for the interrupt */
};

/* What is wanted. Nothing of it is kept beyond the call. */
struct irq_wish {
	bool active; /* false: nobody has rules (any more) */
	const struct irq_claim *claims;
	uint32_t n_claims;
	struct rp_ids sink, isolate, allowed;
	struct irq_patterns controllable; /* globs; none: all */
	const struct irq_mask *masks;
	uint32_t n_masks;
};

struct irq;

/* NULL: out of memory. Without a worker on the host nothing is done. */
struct irq *irq_new(const struct modhost *h);
struct irq *irq_free(struct irq *q); /* returns NULL */
/* Wishes that equal the one before cost a comparison. */
void irq_commit(struct irq *q, const struct irq_wish *wish);

/* Nobody has rules any more, and nobody is going to: rp_policy.stop. */
void irq_stop(struct irq *q);

/*
 * For prepare(): calls `found` with each numbered interrupt until it returns other than 0, and
 * returns that. -errno when the table cannot be read.
 */
int32_t irq_each(const struct modhost *h,
		 int32_t (*found)(void *arg, uint32_t number, const char *description), void *arg);

/*
 * controllableInterrupts of a section: patterns of descriptions. "*" is every interrupt,
 * whatever its description, and so is an empty list; *ret is empty then. 0, or an error with its
 * place.
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
 * For prepare(): the interrupts there are that are not controllable. 0, -RP_ENOMEM, or the
 * error of irq_each().
 */
int32_t irq_read_denied(const struct modhost *h, struct blocks *memory,
			const struct texts *controllable, struct irq_names *ret);
/* Returns the first of them that a pattern names by number or description, or NULL. */
const struct irq_name *irq_find_denied(const struct irq_names *denied, const char *pattern);

/* One line of /proc/interrupts below its head, which names n_cpus CPUs. 0 with number and
 * description, or -RP_ENOENT: none of ours. */
int32_t irq_parse_line(const char *line, size_t len, uint32_t n_cpus, uint32_t *ret_number,
		       char description[IRQ_TEXT_MAX]);

struct irq_stats {
	uint64_t writes, failures;
};
void irq_stats(const struct irq *q, struct irq_stats *ret);

#endif
