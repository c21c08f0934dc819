/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of an earlier version, of any bytes: two pages in front with the right magic, the rest
 * from the input, which is read as the journal, too. Whatever is made of it is a log that can be
 * read.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nri-rpd/store/internal.h"
#include "core/lib/util/fs.h"

#define PAGE 512u
#define MAGIC 0xbeefc0deu
#define LOG_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct reclog_head head = {"state", STORE_FORMAT,
					"11111111-2222-3333-4444-555555555555", "1"};

static int take(void *arg, const void *record, size_t len)
{
	(void)arg;
	assert(record && len >= RECORD_HEAD);
	return 0;
}

static void check_log(const char *path)
{
	char *log;
	size_t size;
	assert(fs_read_own(path, LOG_MAX, &log, &size, NULL) == 0);
	assert(reclog_parse(log, size, &head, take, NULL, NULL) == 0);
	free(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t magic = MAGIC, page = PAGE;
	char path[64];
	struct reclog log;
	struct err err = ERR_INIT;
	if (!size || size > 1 << 16)
		return 0;
	uint8_t *file = malloc(size);
	assert(file);
	memcpy(file, data, size);
	for (size_t at = 16; data[0] % 2 && at <= PAGE + 16 && at + 28 <= size; at += PAGE) {
		memcpy(file + at, &magic, sizeof magic);
		memcpy(file + at + 24, &page, sizeof page);
	}
	(void)snprintf(path, sizeof path, "/tmp/fuzz_former.%d", (int)getpid());
	assert(reclog_init(&log, path, &head, LOG_MAX) == 0);
	int r = store_former_write((struct bytes){file, size}, (struct bytes){file, size},
				   "11111111-2222-3333-4444-555555555555", &log, &err);
	assert(r == 0 || err.text[0]);
	if (r == 0)
		check_log(path);
	(void)unlink(path);
	reclog_fini(&log);
	free(file);
	return 0;
}
