/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pipeline/node/measure.h"

#include <stdlib.h>

#include <utlist.h>

#include "core/cache/usage.h"
#include "core/util/hash.h"

struct used {
	rp_ctr ctr;
	struct series series;
	uint64_t round; /* the last one that saw it */
	UT_hash_handle hh;
};

static void forget(struct measure *m, struct used *u)
{
	HASH_DEL(m->used, u);
	free(u);
}

void measure_forget(struct measure *m)
{
	struct used *u, *next;
	HASH_ITER (hh, m->used, u, next)
		forget(m, u);
	m->node = (struct series){0};
}

static struct used *used_of(struct measure *m, rp_ctr ctr)
{
	struct used *u;
	HASH_FIND(hh, m->used, &ctr, sizeof ctr, u);
	if (u)
		return u;
	u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->ctr = ctr;
	HASH_ADD(hh, m->used, ctr, sizeof u->ctr, u);
	if (u->hh.tbl)
		return u;
	free(u);
	return NULL;
}

/* Where the kernel does not tell it apart, files are counted in. */
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

void measure_ctrs(struct measure *m, struct cache *cache, bool cached, uint64_t window_ms)
{
	struct used *u, *next;
	const struct ctr *ctr;
	m->round++;
	DL_FOREACH (cache_ctrs(cache), ctr) {
		if (!usage_known(ctr->usage, FIG_CPU) || !(u = used_of(m, ctr->handle)))
			continue;
		u->round = m->round;
		measure_put(&u->series, ctr->usage, cached, window_ms);
	}
	HASH_ITER (hh, m->used, u, next)
		if (u->round != m->round)
			forget(m, u);
}

const struct series *measure_ctr(const struct measure *m, rp_ctr ctr)
{
	struct used *u;
	HASH_FIND(hh, m->used, &ctr, sizeof ctr, u);
	return u ? &u->series : NULL;
}
