/* SPDX-License-Identifier: Apache-2.0 */
/* Packing and unpacking of reports. The unpacked report is in an arena of limited size, because the
 * child's bytes are not trusted. */
#include "core/nri-rpd/pipeline/reload/report.h"

#include <stdlib.h>
#include <string.h>

#include "core/lib/util/pb.h"

#define ARENA_BLOCK 4096u

const Trial__Report report_none = TRIAL__REPORT__INIT;

static char *text_of(const struct iset *s)
{
	return strdup(s ? s->text : "");
}

Trial__Move *report_move(const struct ctr *ctr, const struct decision *now, const struct iset *cpus,
			 const struct iset *mems, const char *why)
{
	Trial__Move *m = malloc(sizeof *m);
	if (!m)
		return NULL;
	trial__move__init(m);
	m->ctr = strdup(ctr->full_name);
	m->from_cpus = text_of(cpus);
	m->to_cpus = text_of(now->cpus);
	m->from_mems = text_of(mems);
	m->to_mems = text_of(now->mems);
	m->exclusive = text_of(now->exclusive);
	m->note = strdup(now->degraded ? now->degraded->data : "");
	m->why = strdup(why);
	bool whole = m->ctr && m->from_cpus && m->to_cpus && m->from_mems && m->to_mems &&
		     m->exclusive && m->note && m->why;
	return whole ? m : NULL;
}

unsigned report_count_moved(const Trial__Report *report)
{
	unsigned moved = 0;
	for (size_t i = 0; i < report->n_moves; i++)
		moved += report->moves[i]->moved;
	return moved;
}

int report_write(const Trial__Report *report, struct buf *out)
{
	uint8_t *room = buf_reserve(out, trial__report__get_packed_size(report));
	if (!room)
		return -ENOMEM;
	buf_commit(out, trial__report__pack(report, room));
	return 0;
}

struct room {
	struct arena *arena;
	bool failed; /* an allocation failed */
	bool full; /* the report would exceed its limit */
};

static void *report_take(void *room, size_t size)
{
	struct room *r = room;
	void *p = arena_alloc(r->arena, size);
	r->failed |= !p;
	r->full |= !p && size > REPORT_MEMORY_MAX - arena_held(r->arena);
	return p;
}

int report_read(const uint8_t *data, size_t size, struct report *ret, struct err *err)
{
	*ret = (struct report){.arena = arena_new(ARENA_BLOCK, REPORT_MEMORY_MAX)};
	if (!ret->arena)
		return err_set(err, -ENOMEM, "out of memory for the report of a trial");
	struct room room = {.arena = ret->arena};
	ProtobufCAllocator alloc = {
		.alloc = report_take, .free = pb_arena_free, .allocator_data = &room};
	ret->message = trial__report__unpack(&alloc, size, data);
	if (!ret->message) {
		report_fini(ret);
		if (room.full)
			return err_set(err, -E2BIG,
				       "the report of a trial takes more than %zu MiB: it moves "
				       "too many containers, or has too many notes",
				       REPORT_MEMORY_MAX >> 20);
		return room.failed
			       ? err_set(err, -ENOMEM, "out of memory for the report of a trial")
			       : err_set(err, -EBADMSG, "the report of a trial is invalid");
	}
	return 0;
}

void report_fini(struct report *r)
{
	*r = (struct report){.arena = arena_free(r->arena)};
}
