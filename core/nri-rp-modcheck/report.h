/* SPDX-License-Identifier: Apache-2.0 */
/* Results as TAP or JSON. */
#pragma once

#include "core/nri-rp-modcheck/check.h"

enum verdict { VERDICT_PASSED, VERDICT_FAILED, VERDICT_SKIPPED };

struct report {
	bool json;
	unsigned n, count[3];
	struct buf out;
	struct json *writer;
};

void report_begin(struct report *r, const struct options *o, unsigned planned);
void report_case(struct report *r, const char *name, enum verdict verdict, const char *reason,
		 const char *notes, uint64_t took_us);
/* Prints the summary and returns the exit status. */
int report_end(struct report *r);
