/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of which only the sets are others than those that are stored. They are many at a time: all that share CPUs which have
 * become more or fewer. An urgent commit stores their sets in one go, a record (Moved) for all that have the same ones, which goes
 * over what their own records say. Those follow with the next complete commit, and the records here go with it.
 *
 * What the runtime has acknowledged of such a container is not kept meanwhile: who restores it takes what the runtime says then, or
 * tells it again.
 */
#include "core/cache/store_internal.h"

#include "core/cache/txn.h"

#define SETS (DIFF_CPUS | DIFF_MEMS)

bool store_moved_only(const struct ctr *ctr)
{
	return ctr->stored && ctr->pod->stored && ctr->unstored && !(ctr->unstored & ~SETS);
}

static int make_room(struct moved *m)
{
	uint32_t cap = m->cap ? m->cap * 2 : 64;
	struct ctr **list = realloc(m->list, cap * sizeof *list);
	if (list)
		m->list = list;
	uint64_t *numbers = list ? realloc(m->numbers, cap * sizeof *numbers) : NULL;
	if (!numbers)
		return -ENOMEM;
	m->numbers = numbers;
	m->cap = cap;
	return 0;
}

int store_moved_add(struct moved *m, struct ctr *ctr)
{
	if (m->n == m->cap && make_room(m))
		return -ENOMEM;
	m->list[m->n++] = ctr;
	return 0;
}

void store_moved_forget(struct moved *m, const struct ctr *ctr)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->list[i] != ctr)
			m->list[n++] = m->list[i];
	m->n = n;
}

/* Those like the one at `from` follow it then. Where the others begin. */
static uint32_t gather(struct moved *m, uint32_t from)
{
	const struct decision *like = &m->list[from]->cur;
	uint32_t end = from;
	for (uint32_t i = from; i < m->n; i++) {
		struct ctr *ctr = m->list[i];
		if (ctr->cur.cpus != like->cpus || ctr->cur.mems != like->mems)
			continue;
		m->list[i] = m->list[end];
		m->list[end++] = ctr;
	}
	return end;
}

bool store_moved_fits(struct moved *m)
{
	uint32_t at = 0;
	if (m->next - m->first > MOVED_RECORDS_MAX)
		return false;
	for (unsigned i = 0; i < MOVED_GROUPS_MAX && at < m->n; i++)
		at = gather(m, at);
	return at == m->n;
}

uint32_t store_moved_group(struct moved *m, uint32_t from, struct record *r)
{
	const struct decision *like = &m->list[from]->cur;
	uint32_t end = gather(m, from);
	for (uint32_t i = from; i < end; i++)
		m->numbers[i - from] = m->list[i]->seq;
	record_of_moved(r, like->cpus, like->mems, m->numbers, end - from);
	return end;
}

void store_moved_written(struct moved *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		m->list[i]->moved = m->epoch;
	m->n = 0;
}

void store_moved_settled(struct moved *m)
{
	m->n = 0;
	m->first = m->next;
	m->epoch++;
}

void store_moved_free(struct moved *m)
{
	free(m->list);
	free(m->numbers);
}
