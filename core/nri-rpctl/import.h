/* SPDX-License-Identifier: Apache-2.0 */
/* State of an import, and the functions that write its result. */
#pragma once

#include "core/lib/conf/conf.h"
#include "core/lib/util/buf.h"

#define IMPORT_NOTES_MAX 64u

struct import {
	struct buf text; /* the new rp.conf */
	char *notes[IMPORT_NOTES_MAX]; /* differences from the source */
	unsigned n_notes;
	const char *source; /* name of the source format; NULL: no document was recognised yet */
};
