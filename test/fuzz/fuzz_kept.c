/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration that is kept for later starts. The input is a file; and, with the right head,
 * the message in one. What is read can be gone through, and comes back the same when it is written
 * and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/nri-rpd/pipeline/reload/last_good.h"
#include "core/lib/util/crc32c.h"
#include "test/fuzz/check.h"

#define MESSAGE_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct kept *k)
{
	struct buf out = BUF_INIT;
	struct kept again;
	struct err err = ERR_INIT;
	check(kept_write(&k->files, k->wall_ns, &out) == 0);
	check(kept_parse(buf_text(&out), buf_len(&out), &again, &err) == 0);
	check(again.wall_ns == k->wall_ns && again.files.n_sources == k->files.n_sources);
	check(kept_sum(&again.files) == kept_sum(&k->files));
	for (unsigned i = 0; i < k->files.n_sources; i++) {
		const struct conf_source *a = &k->files.sources[i], *b = &again.files.sources[i];
		check(strcmp(a->name, b->name) == 0 && a->len == b->len &&
		      memcmp(a->text, b->text, a->len) == 0 && a->pushed == b->pushed);
	}
	conf_files_fini(&again.files);
	buf_fini(&out);
}

static void read_one(const uint8_t *data, size_t size)
{
	struct kept k;
	struct err err = ERR_INIT;
	int r = kept_parse(data, size, &k, &err);
	check(r <= 0 && err.code == r && (r == 0) == !*err.text);
	if (r)
		return;
	check(k.files.n_sources <= CONF_SOURCES_MAX);
	check_again(&k);
	conf_files_fini(&k.files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char magic[] = "nri-rp/c";
	read_one(data, size);
	if (size > MESSAGE_MAX)
		return 0;
	uint8_t *file = malloc(12 + size);
	check(file != NULL);
	uint32_t sum = crc32c(0, data, size);
	memcpy(file, magic, 8);
	for (unsigned i = 0; i < 4; i++)
		file[8 + i] = (uint8_t)(sum >> 8 * i);
	if (size)
		memcpy(file + 12, data, size);
	read_one(file, 12 + size);
	free(file);
	return 0;
}
