/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of configurations on disk: magic number, CRC-32C and a protobuf message. Parsing limits
 * memory. The files are written by reload.c and pushed.c. */
#include "core/nri-rpd/pipeline/reload/last_good.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/cleanup.h"
#include "core/lib/util/crc32c.h"
#include "core/lib/util/fs.h"
#include "core/lib/util/pb.h"
#include "core/lib/util/str.h"
#include "core/nri-rpd/host/note.h"
#include "proto/kept.pb-c.h"

#define MAGIC_SIZE 8u
#define HEAD_SIZE (MAGIC_SIZE + 4u)
#define ARENA_BLOCK 4096u

static const uint8_t magic[MAGIC_SIZE] = {'n', 'r', 'i', '-', 'r', 'p', '/', 'c'};

/* ---- writing --------------------------------------------------------------------------------- */

static void put_sum(uint8_t *head, const uint8_t *data, size_t size)
{
	uint32_t sum = crc32c(0, data, size);
	for (unsigned i = 0; i < 4; i++)
		head[MAGIC_SIZE + i] = (uint8_t)(sum >> 8 * i);
}

static int last_good_pack(const Kept__Configuration *message, struct buf *out)
{
	size_t size = kept__configuration__get_packed_size(message);
	uint8_t *room = buf_reserve(out, HEAD_SIZE + size);
	if (!room)
		return -ENOMEM;
	memcpy(room, magic, MAGIC_SIZE);
	(void)kept__configuration__pack(message, room + HEAD_SIZE);
	put_sum(room, room + HEAD_SIZE, size);
	buf_commit(out, HEAD_SIZE + size);
	return 0;
}

int kept_write(const struct conf_files *files, uint64_t wall_ns, struct buf *out)
{
	Kept__Configuration message = KEPT__CONFIGURATION__INIT;
	unsigned n = files->n_sources;
	_free_ Kept__Source *sources = calloc(n + 1, sizeof *sources);
	_free_ Kept__Source **list = calloc(n + 1, sizeof *list);
	if (!sources || !list)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		const struct conf_source *from = &files->sources[i];
		kept__source__init(&sources[i]);
		sources[i].name = (char *)from->name;
		sources[i].text = (ProtobufCBinaryData){from->len, (uint8_t *)from->text};
		sources[i].pushed = from->pushed;
		sources[i].keyed = from->keyed;
		sources[i].object = from->object;
		list[i] = &sources[i];
	}
	message.sources = list;
	message.n_sources = n;
	message.wall_ns = wall_ns;
	return last_good_pack(&message, out);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int last_good_copy(const Kept__Configuration *message, struct kept *ret, struct err *err)
{
	struct kept k = {.wall_ns = message->wall_ns};
	if (message->n_sources > CONF_SOURCES_MAX)
		return err_set(err, -E2BIG, "it has more than %u files", CONF_SOURCES_MAX);
	int r = conf_files_append(&k.files, NULL, 0);
	for (size_t i = 0; !r && i < message->n_sources; i++) {
		const Kept__Source *from = message->sources[i];
		const struct conf_source source = {.name = from->name,
						   .text = (const char *)from->text.data,
						   .len = from->text.len,
						   .pushed = from->pushed,
						   .keyed = from->keyed,
						   .object = from->object};
		r = conf_files_append(&k.files, &source, 1);
	}
	if (r) {
		conf_files_fini(&k.files);
		return err_errno(err, r, "a configuration");
	}
	*ret = k;
	return 0;
}

static bool sum_is_right(const uint8_t *data, size_t size)
{
	uint8_t head[HEAD_SIZE];
	put_sum(head, data + HEAD_SIZE, size - HEAD_SIZE);
	return memcmp(head + MAGIC_SIZE, data + MAGIC_SIZE, HEAD_SIZE - MAGIC_SIZE) == 0;
}

int kept_parse(const void *data, size_t size, struct kept *ret, struct err *err)
{
	const uint8_t *bytes = data;
	if (size < HEAD_SIZE || memcmp(bytes, magic, MAGIC_SIZE) != 0)
		return err_set(err, -EBADMSG, "it is not a saved configuration");
	if (!sum_is_right(bytes, size))
		return err_set(err, -EBADMSG, "it is damaged");
	_arena_ struct arena *arena = arena_new(ARENA_BLOCK, 2 * KEPT_MAX);
	if (!arena)
		return err_errno(err, -ENOMEM, "a configuration");
	const Kept__Configuration *message =
		PB_UNPACK(arena, kept__configuration, size - HEAD_SIZE, bytes + HEAD_SIZE);
	return message ? last_good_copy(message, ret, err)
		       : err_set(err, -EBADMSG, "it is damaged");
}

int kept_read(const char *dir, struct kept *ret, struct err *err)
{
	return kept_read_file(dir, KEPT_FILE, ret, err);
}

int kept_read_file(const char *dir, const char *file, struct kept *ret, struct err *err)
{
	_free_ char *path = str_printf("%s/%s", dir, file), *data = NULL;
	size_t size;
	if (!path)
		return err_errno(err, -ENOMEM, "the saved configuration");
	int r = fs_read_own(path, KEPT_MAX, &data, &size, err);
	if (r)
		return r;
	r = kept_parse(data, size, ret, err);
	if (r)
		(void)err_prefix(err, "%s: ", path);
	return r;
}

uint64_t kept_sum(const struct conf_files *files)
{
	uint64_t sum = NOTE_HASH_INIT;
	for (unsigned i = 0; i < files->n_sources; i++) {
		const struct conf_source *s = &files->sources[i];
		const bool flags[] = {s->pushed, s->keyed, s->object};
		sum = note_hash(sum, flags, sizeof flags);
		sum = note_hash(sum, s->name, strlen(s->name) + 1);
		sum = note_hash(sum, &s->len, sizeof s->len);
		sum = note_hash(sum, s->text, s->len);
	}
	return sum ? sum : 1;
}
