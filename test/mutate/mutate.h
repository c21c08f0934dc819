/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all kinds of mutations share (mutate.c), and the mutations of the store
 * (stores.c). */
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
	const uint8_t *input; /* current input */
	size_t size;
	unsigned long n, refused, accepted;
};

extern struct mutating mutating;

/* Ends the program, with the input kept, unless ok. */
void check(bool ok, const char *what);
/* Below n; 0 for 0. */
uint64_t draw(uint64_t n);
/* Changes the bytes in one to four random ways. */
void mutate_some(struct buf *b);

/* ---- stores.c -------------------------------------------------------------------------------- */

/* A store with pods, containers and decisions, that the others damage. */
void stores_record(void);
/* Damages the bytes of the store's file, as a bad disk would. */
void try_store(void);
/* Damages the records of the store and corrects their checksums, as a faulty program would. */
void try_records(void);
void stores_fini(void);

#endif
