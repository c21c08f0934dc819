/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of import so far, and the functions that write it. */
#ifndef RPCTL_IMPORT_H
#define RPCTL_IMPORT_H

#include "core/lib/conf/conf.h"
#include "core/lib/util/buf.h"

#define IMPORT_NOTES_MAX 64u

struct import {
	struct buf text; /* the rp.conf */
	char *notes[IMPORT_NOTES_MAX]; /* what is not the same */
	unsigned n_notes;
	const char *source; /* NULL: nothing is known of the documents so far */
};

#endif
