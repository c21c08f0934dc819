/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cgroups round by round. Directories, and files that are read each time, stay open for the
 * next round. Figures that change slowly or are expensive (memory, events, I/O) are read every
 * eight seconds, spread over the rounds, so that no sample exceeds the age of ten seconds within
 * which it is valid.
 *
 * One thread at a time. A cgroup that no longer exists is closed in the round that notices it,
 * others in the first round that does not include them.
 */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/metrics/figures.h"

struct reader;

/* Creates a reader. The root has to outlive it. files_max: descriptors that may stay open; files
 * beyond that are opened each time. */
struct reader *reader_new(const struct fs_root *root, unsigned files_max);
struct reader *reader_free(struct reader *r); /* accepts NULL; returns NULL */
void reader_begin(struct reader *r, uint64_t now_ms);
/* Reads the figures of a container like figures_read(). waits: FIGURES_…_WAIT that are needed each
 * time. */
int reader_read(struct reader *r, rp_ctr ctr, const struct figures_cgroup *of, uint32_t waits,
		struct figures *ret);
void reader_end(struct reader *r);
void reader_forget(struct reader *r);
