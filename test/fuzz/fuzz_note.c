/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF note reader on arbitrary bytes, and the verdict on whatever it made of them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/host/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct note_facts facts;
	struct err err = ERR_INIT;
	int r = note_parse(data, size, "fuzzed.so", &facts, &err);
	if (r < 0 && !err.text[0])
		abort(); /* every refusal has its sentence */
	if (r < 0)
		return 0;
	if (!memchr(facts.note.name, 0, sizeof facts.note.name) ||
	    facts.build_id.size > NOTE_BUILD_ID_MAX)
		abort();
	(void)note_check(&facts, "fuzzed.so", data[size - 1] & NOTE_INSTRUMENTED, &err);
	return 0;
}
