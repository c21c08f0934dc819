/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of attempts: the forked child writes one, the daemon checks and reads it. */
#pragma once

#include "core/nri-rpd/cache/cache.h"
#include "core/nri-rpd/pipeline/reload/reload.h"
#include "core/lib/util/arena.h"
#include "core/lib/util/buf.h"
#include "proto/trial.pb-c.h"

/* Limit of memory for an unpacked report, which takes several times the size of its bytes. */
#define REPORT_MEMORY_MAX ((size_t)128 << 20)

struct report {
	struct arena *arena; /* owns everything below */
	const Trial__Report *message;
};

extern const Trial__Report report_none; /* an empty report */

/* Counts the moves whose CPUs or memory nodes change. The others are listed for their notes. */
unsigned report_count_moved(const Trial__Report *report);

/* Builds a move in the child; nothing is freed there. NULL: out of memory. */
Trial__Move *report_move(const struct ctr *ctr, const struct decision *now, const struct iset *cpus,
			 const struct iset *mems, const char *why);
int report_write(const Trial__Report *report, struct buf *out);

/* Reads a report in the daemon and validates the child's bytes. Zero bytes are an empty report.
 * -EBADMSG: not a report. -E2BIG: larger than REPORT_MEMORY_MAX. -ENOMEM. */
int report_read(const uint8_t *data, size_t size, struct report *ret, struct err *err);
void report_fini(struct report *r); /* a zeroed one is fine */
