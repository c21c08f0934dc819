/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cgroups round by round, and keeps what it has found of them open for the next round: their
 * directories, and the files that are read each time. What changes slowly or costs much (memory,
 * events, I/O) is read every eight seconds, spread over the rounds, so that no sample gets older
 * than the ten seconds within which others go by it.
 *
 * One thread at a time. A cgroup that is gone is let go in the round that notices it, others in the
 * first round that does not ask for them.
 */
#ifndef METRICS_READER_H
#define METRICS_READER_H

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/metrics/figures.h"

struct reader;

/* root: has to outlive it. files_max: so many descriptors may be kept; what is beyond that is
 * opened anew each time. */
struct reader *reader_new(const struct fs_root *root, unsigned files_max);
struct reader *reader_free(struct reader *r); /* NULL is fine; returns NULL */
void reader_begin(struct reader *r, uint64_t now_ms);
/* Figures of a container, as figures_read() has them. waits: FIGURES_…_WAIT, as
 * far as they are wanted each time. */
int reader_read(struct reader *r, rp_ctr ctr, const struct figures_cgroup *of, uint32_t waits,
		struct figures *ret);
void reader_end(struct reader *r);
void reader_forget(struct reader *r);
#endif
