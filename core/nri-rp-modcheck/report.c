/* SPDX-License-Identifier: Apache-2.0 */
/* Results as TAP (version 13) or as one JSON document. */
#include "core/nri-rp-modcheck/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rp-modcheck/check.h"
#include "core/lib/util/json.h"

static const char *const verdict_names[] = {
	[VERDICT_PASSED] = "passed",
	[VERDICT_FAILED] = "failed",
	[VERDICT_SKIPPED] = "skipped",
};

static void begin_json(struct report *r, const struct options *o)
{
	json_init(r->writer, &r->out);
	json_obj(r->writer);
	json_kstr(r->writer, "module", o->path);
	json_kuint(r->writer, "seed", o->seed);
	json_karr(r->writer, "cases");
}

void report_begin(struct report *r, const struct options *o, unsigned planned)
{
	*r = (struct report){.json = o->json, .out = BUF_INIT};
	if (r->json) {
		r->writer = calloc(1, sizeof *r->writer);
		if (r->writer)
			begin_json(r, o);
		return;
	}
	printf("TAP version 13\n1..%u\n# %s, seed %llu\n", planned, o->path,
	       (unsigned long long)o->seed);
}

/* Prints each line of the text as a comment. */
static void report_comment(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		printf("# %.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void tap_case(unsigned n, const char *name, enum verdict verdict, const char *reason,
		     const char *notes)
{
	printf("%s %u - %s%s%s\n", verdict == VERDICT_FAILED ? "not ok" : "ok", n, name,
	       verdict == VERDICT_SKIPPED ? " # SKIP " : "",
	       verdict == VERDICT_SKIPPED ? reason : "");
	if (verdict == VERDICT_FAILED)
		report_comment(reason);
	report_comment(notes);
	(void)fflush(stdout);
}

static void json_case(struct report *r, const char *name, enum verdict verdict, const char *reason,
		      const char *notes, uint64_t took_us)
{
	struct json *j = r->writer;
	json_obj(j);
	json_kstr(j, "name", name);
	json_kstr(j, "result", verdict_names[verdict]);
	if (*reason)
		json_kstr(j, "reason", reason);
	if (*notes)
		json_kstr(j, "notes", notes);
	json_kuint(j, "took_us", took_us);
	json_end_obj(j);
}

void report_case(struct report *r, const char *name, enum verdict verdict, const char *reason,
		 const char *notes, uint64_t took_us)
{
	r->n++;
	r->count[verdict]++;
	if (!r->json)
		tap_case(r->n, name, verdict, reason, notes);
	else if (r->writer)
		json_case(r, name, verdict, reason, notes, took_us);
}

static int end_json(struct report *r)
{
	struct json *j = r->writer;
	if (!j)
		return -ENOMEM;
	json_end_arr(j);
	for (unsigned v = 0; v < 3; v++)
		json_kuint(j, verdict_names[v], r->count[v]);
	json_end_obj(j);
	int failed = r->out.failed;
	if (!failed)
		puts(buf_text(&r->out));
	free(j);
	buf_fini(&r->out);
	return failed;
}

int report_end(struct report *r)
{
	if (r->json) {
		int failed = end_json(r);
		if (failed) {
			(void)fprintf(stderr, "nri-rp-modcheck: out of memory\n");
			return 1;
		}
	} else {
		printf("# %u passed, %u failed, %u skipped\n", r->count[VERDICT_PASSED],
		       r->count[VERDICT_FAILED], r->count[VERDICT_SKIPPED]);
	}
	return r->count[VERDICT_FAILED] ? 1 : 0;
}
