/* SPDX-License-Identifier: Apache-2.0 */
/* What the trial of a configuration, or of a pod, reports from its forked child. */
#ifndef PIPELINE_REPORT_H
#define PIPELINE_REPORT_H

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "proto/trial.pb-c.h"

/* A report takes several times its bytes when it is unpacked; no more than this. */
#define REPORT_MEMORY_MAX ((size_t)128 << 20)

struct report {
	struct arena *arena; /* all of it is there */
	const Trial__Report *message;
	const struct move *moves;
	unsigned n_moves;
	const struct conflict *conflicts;
	unsigned n_conflicts;
};

/* Counts the moves whose CPUs or memory nodes change. The others are listed for their notes. */
unsigned report_count_moved(const struct move *moves, unsigned n);

/* In the child, of what is not freed. NULL: no memory. */
Trial__Move *report_move(const struct ctr *ctr, const struct decision *now, const struct iset *cpus,
			 const struct iset *mems, const char *why);
int report_write(const Trial__Report *report, struct buf *out);

/* In the daemon, which believes nothing. No bytes are a report without anything to report.
 * -EBADMSG: not a report; -E2BIG: larger than the above; -ENOMEM. */
int report_read(const uint8_t *data, size_t size, struct report *ret, struct err *err);
void report_fini(struct report *r); /* zeroed ones are fine */

#endif
