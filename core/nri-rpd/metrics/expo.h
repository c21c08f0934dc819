/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus' text format, version 0.0.4. The samples of a family have to be adjacent, so they are
 * collected before they are written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

#define EXPO_NAME_MAX 200u /* largest size of a family's name, in bytes */
/* largest size of a sample's labels, in bytes: a balloon's label names all of its containers */
#define EXPO_LABELS_MAX (512u << 10)
#define EXPO_HELP_MAX 1024u /* bytes; longer texts are cut */

enum expo_type { EXPO_GAUGE, EXPO_COUNTER, EXPO_HISTOGRAM };

struct family;

struct expo {
	struct family *families; /* families in order of appearance */
	struct sample_key *seen; /* keys of checked samples */
	int failed; /* -ENOMEM once memory was short; 0: complete */
};

void expo_init(struct expo *e);
void expo_fini(struct expo *e);
int expo_write(const struct expo *e, struct buf *out);

/* Returns the family of that name, created on first use. NULL: invalid name, a family of another
 * type has it, or no memory. */
struct family *expo_family(struct expo *e, const char *name, enum expo_type type, const char *help);
/* Adds a sample: NAME SUFFIX {LABELS} VALUE. Labels are trusted to be well-formed. A NULL family is
 * fine. */
void expo_add(struct expo *e, struct family *f, const char *suffix, const char *labels,
	      double value);
/* Adds a sample with untrusted labels. Returns false, and adds nothing, if they are malformed or
 * the sample exists already. */
bool expo_add_checked(struct expo *e, struct family *f, const char *labels, double value);

/* Adds a family with a single sample: a counter if its name ends in "_total", else a gauge. */
void expo_single(struct expo *e, const char *name, const char *help, double value);
/* Adds a table of such families. */
struct expo_row {
	const char *name, *help;
	double value;
};
void expo_rows(struct expo *e, const struct expo_row *rows, size_t n);
#define EXPO_ROWS(e, rows) expo_rows(e, rows, sizeof(rows) / sizeof(rows)[0])

/* Appends name="value", escaped, with a comma before it unless it is the first. */
void expo_label(struct buf *labels, const char *name, const char *value);
bool expo_labels_valid(const char *labels);
bool expo_name_valid(const char *name);
