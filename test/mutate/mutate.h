/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of mutations share (mutate.c), and those of the store (stores.c). */
#ifndef TEST_MUTATE_MUTATE_H
#define TEST_MUTATE_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lib/util/buf.h"

struct mutating {
	uint64_t random;
	const char *folder; /* for findings */
	char work[64];
	const uint8_t *input; /* what is tried at the moment */
	size_t size;
	unsigned long n, refused, accepted;
};

extern struct mutating mutating;

/* Ends the program, with the input kept, unless ok. */
void check(bool ok, const char *what);
/* Below n; 0 for 0. */
uint64_t draw(uint64_t n);
/* One to four odd things happen to the bytes. */
void mutate_some(struct buf *b);

/* ---- stores.c -------------------------------------------------------------------------------- */

/* A store with pods, containers and decisions, that the others damage. */
void stores_record(void);
/* Its file, as bytes: what comes of a bad disk. */
void try_store(void);
/* Its records, with their checksums made right: what comes of a program with an error. */
void try_records(void);
void stores_fini(void);

#endif
