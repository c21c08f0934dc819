/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority core turbo: what CPU classes have to do with the classes of service (CLOS) of Intel
 * Speed Select. Either the classes say pctPriority and the platform is set up for them (managed),
 * or they say sstClosID and CPUs are only put into CLOSes that somebody else has set up
 * (associated). Here is what a policy wants to know when it looks for CPUs; cpuclass.h makes it so.
 *
 * In a power unit (punit) only so many CPUs can be high at a time and still be fast. The rest of
 * them is its *room*.
 */
#ifndef NRI_RP_LIB_PCT_H
#define NRI_RP_LIB_PCT_H

#include <stdbool.h>

#include "modules/lib/cpualloc.h"
#include "modules/lib/host.h"

#define PCT_PUNITS_MAX 512u

struct pct;
struct cpuclass_defs;

/* Are there classes of that kind, and do they have the platform set up? */
bool pct_is_wanted(const struct cpuclass_defs *defs);
bool pct_is_managed(const struct cpuclass_defs *defs);
/* Why the machine has no Speed Select; NULL: it has. */
const char *pct_missing(const struct modhost *h);
/* What an operator ought to know before such classes are in force. */
void pct_warn(const struct modhost *h, const struct cpuclass_defs *defs);

/* Of high priority: above others when power is short. False for CPUCLASS_NONE. */
bool pct_is_high(const struct pct *p, uint32_t class);
bool pct_has_high(const struct pct *p); /* some class is */

/* What would be good for n more CPUs of a class, in order. Lives as long as the struct pct. */
struct pct_hints {
	bool has_clos, has_avoid;
	struct rp_idset clos; /* free CPUs that are in its CLOS already */
	struct rp_idset avoid; /* punits where high CPUs are in use */
	bool packages; /* what `reserve` are indexes of: packages, else punits */
	uint32_t n_reserve;
	uint16_t reserve[PCT_PUNITS_MAX]; /* room for high ones, best first */
};
/* `high`: CPUs of high classes in use, but for the asker's own. p NULL: no hints. */
void pct_hint(const struct pct *p, uint32_t class, uint32_t n, struct rp_ids free,
	      struct rp_ids high, struct pct_hints *ret);
/* Narrow a set of CPUs that n are wanted from, where that leaves enough. True: something did. */
bool pct_prefer(const struct pct *p, const struct pct_hints *hints, uint32_t n,
		struct rp_idset *from);
bool pct_avoid(const struct pct_hints *hints, uint32_t n, struct rp_idset *from);

/* Of some CPUs of a class, how many had better be elsewhere: high ones for which there is no room,
 * others among high ones. */
uint32_t pct_misses(const struct pct *p, uint32_t class, struct rp_ids high, struct rp_ids cpus);

/* How many CPUs of the class there can be beside `held`, those of other classes: the extended
 * resource. */
int64_t pct_capacity(const struct pct *p, uint32_t class, struct rp_ids held);

/*
 * Priorities of CPUs as Speed Select has them, where it is in use; they are left alone elsewhere,
 * and where classes of a policy change them all the time (`managed`).
 */
void pct_priorities(const struct modhost *h, bool managed, struct cpualloc *a);

#endif
