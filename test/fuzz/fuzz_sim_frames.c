/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's judge of frames: any bytes, and the same verdict however they are cut. */
#include <stdlib.h>
#include <string.h>

/* frames.c is part of a program, not of the library that fuzz targets are linked with. */
#include "core/nri-rp-sim/frames.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct verdict {
	unsigned n;
	uint64_t hash;
};

static void note(const char *what, void *arg)
{
	struct verdict *v = arg;
	v->n++;
	for (; *what; what++)
		v->hash = v->hash * 31 + (uint8_t)*what;
}

static struct verdict judge(const uint8_t *data, size_t size, size_t piece)
{
	struct verdict v = {0, 0};
	struct frames f;
	frames_init(&f, note, &v);
	for (size_t at = 0; at < size;) {
		size_t part = piece < size - at ? piece : size - at;
		frames_feed(&f, data + at, part);
		at += part;
	}
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct verdict whole = judge(data, size, size);
	struct verdict single = judge(data, size, 1);
	struct verdict cut = judge(data, size, data[0] % 37 + 2);
	if (whole.n != single.n || whole.hash != single.hash || whole.n != cut.n ||
	    whole.hash != cut.hash)
		abort();
	return 0;
}
