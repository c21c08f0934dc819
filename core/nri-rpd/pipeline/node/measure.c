/* SPDX-License-Identifier: Apache-2.0 */
/* Series of measured usage: node, containers and aggregates. */
#include "core/nri-rpd/pipeline/node/measure.h"

#include <stdlib.h>

#include <utlist.h>

#include "core/nri-rpd/cache/usage.h"
#include "core/lib/util/hash.h"

/* age at which a measurement is outdated: twice the longest interval of measurements */
#define OUTDATED_MS 30000u

struct used {
	rp_ctr ctr;
	struct series series;
	uint64_t round; /* last round in which the container existed */
	UT_hash_handle hh;
};

static void measure_do_forget(struct measure *m, struct used *u)
{
	HASH_DEL(m->used, u);
	free(u);
}

void measure_forget(struct measure *m)
{
	struct used *u, *next;
	HASH_ITER (hh, m->used, u, next)
		measure_do_forget(m, u);
	m->node = (struct series){0};
	m->last = (struct series_reading){0};
	m->aggregates = (struct aggregates){.n = 0};
}

/* Returns the used memory. Includes file pages if `cached`, or if the kernel does not report them
 * separately. */
static int64_t memory_of(const struct usage *u, bool cached)
{
	const struct reading *kept = &u->now[FIG_MEMORY_KEPT], *files = &u->now[FIG_MEMORY_FILES];
	const struct reading *anon = &u->now[FIG_MEMORY_ANON], *all = &u->now[FIG_MEMORY];
	if (cached)
		return (int64_t)(kept->at_ms && files->at_ms ? kept->value + files->value
							     : all->value);
	return (int64_t)(kept->at_ms ? kept : anon->at_ms ? anon : all)->value;
}

void measure_put(struct series *s, const struct usage *u, bool cached, uint64_t window_ms)
{
	const struct reading *cpu = &u->now[FIG_CPU];
	if (cpu->at_ms)
		series_put(s,
			   &(struct series_reading){cpu->at_ms, cpu->value, memory_of(u, cached)},
			   window_ms);
}

bool measure_rate(const struct usage *u, bool cached, uint64_t now_ms, int64_t ret[RP_NR_AMOUNTS])
{
	double ns_per_s;
	if (!u || !usage_rate(u, FIG_CPU, &ns_per_s) ||
	    now_ms > u->now[FIG_CPU].at_ms + OUTDATED_MS)
		return false;
	ret[RP_NR_CPU] = (int64_t)(ns_per_s / 1e6);
	ret[RP_NR_MEMORY] = memory_of(u, cached);
	return true;
}

void measure_machine(struct measure *m, const struct series_reading *r, uint64_t window_ms,
		     const int64_t *others)
{
	const struct series_reading last = m->last;
	struct aggregate_point p = {.at_ms = r->at_ms};
	series_put(&m->node, r, window_ms);
	if (last.at_ms && !aggregate_due(&m->aggregates, r->at_ms))
		return;
	m->last = *r;
	if (!last.at_ms || r->at_ms <= last.at_ms || r->cpu_ns < last.cpu_ns)
		return;
	p.node[RP_NR_CPU] = (int64_t)((r->cpu_ns - last.cpu_ns) / 1000 / (r->at_ms - last.at_ms));
	p.node[RP_NR_MEMORY] = r->memory;
	for (uint32_t k = 0; k < RP_NR_AMOUNTS; k++)
		p.system[k] = !others		      ? RP_NOT_SET
			      : p.node[k] > others[k] ? p.node[k] - others[k]
						      : 0;
	aggregate_put(&m->aggregates, &p);
}

void measure_ctrs(struct measure *m, struct cache *cache, bool cached, uint64_t window_ms)
{
	struct used *u, *next;
	const struct ctr *ctr;
	m->round++;
	DL_FOREACH (cache_ctrs(cache), ctr) {
		if (!usage_known(ctr->usage, FIG_CPU) ||
		    !(u = HASH_FIND_OR_ADD(m->used, ctr, ctr->handle)))
			continue;
		u->round = m->round;
		measure_put(&u->series, ctr->usage, cached, window_ms);
	}
	HASH_ITER (hh, m->used, u, next)
		if (u->round != m->round)
			measure_do_forget(m, u);
}

const struct series *measure_ctr(const struct measure *m, rp_ctr ctr)
{
	struct used *u;
	HASH_FIND(hh, m->used, &ctr, sizeof ctr, u);
	return u ? &u->series : NULL;
}
